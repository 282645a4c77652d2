"""`python -m warp plugins`: the plugins, whether they are active, and why not."""

from __future__ import annotations

import argparse
import warnings

from warp._src.plugin_host import plugin_conflicts, plugin_states
from warp.errors import PluginWarning

HELP = "list the plugins, whether they are active, and why not"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(_arguments: argparse.Namespace) -> int:
    """Print a line per plugin and per conflict; return 1 if a plugin is broken or two conflict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # the table says the same
        states = plugin_states()
    conflicts = plugin_conflicts()
    width = max(len(state.name) for state in states)
    for state in states:
        details = ": ".join(part for part in (state.provider.partition(" of ")[2], state.reason) if part)
        print(f"{state.name:{width}}  {state.status:13}  {details}".rstrip())
    for conflict in conflicts:
        print(f"conflict: {conflict}")
    return 1 if conflicts or any(state.status == "broken" for state in states) else 0
