"""Command line of Warp: `python -m warp info`, `cache`, `compile` and `plugins`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from warp._src.commands import cache, compile, info, plugins

COMMANDS = {"info": info, "cache": cache, "compile": compile, "plugins": plugins}


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m warp", description="Ask Warp about its installation and kernels.")
    subparsers = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.add_arguments(subparsers.add_parser(name, help=command.HELP, description=command.HELP))
    parsed = parser.parse_args(arguments)
    status: int = COMMANDS[parsed.command].run(parsed)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
