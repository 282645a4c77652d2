"""Command line of Warp: `python -m warp plugins` lists the plugins and why some are not active."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from warp._src.plugin_host import plugin_conflicts, plugin_states
from warp.errors import PluginWarning


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m warp", description="Ask Warp about its installation.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("plugins", help="list the plugins, whether they are active, and why not")
    parser.parse_args(arguments)
    return print_plugins()


def print_plugins() -> int:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
