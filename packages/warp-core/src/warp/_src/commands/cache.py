"""`python -m warp cache`: where compiled kernels are kept and how much room they take."""

from __future__ import annotations

import argparse
import contextlib

from warp._src import build

HELP = "show the cache of compiled kernels, or clear it"
_UNITS = ("B", "KiB", "MiB", "GiB")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to its parser."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--clear", action="store_true", help="remove all compiled kernels")
    group.add_argument("--path", action="store_true", help="print the directory alone")


def run(arguments: argparse.Namespace) -> int:
    """Print the cache's directory, number of objects and size, after clearing it if asked to."""
    if arguments.path:
        print(build.cache_directory())
        return 0
    if arguments.clear:
        build.clear()
    print(describe_cache())
    return 0


def describe_cache() -> str:
    """Give directory, number of objects and size of the cache in one line."""
    sizes = []
    for path in build.cache_entries():
        with contextlib.suppress(FileNotFoundError):  # another process may clear the cache
            sizes.append(path.stat().st_size)
    plural = "" if len(sizes) == 1 else "s"
    return f"{build.cache_directory()} ({len(sizes)} object{plural}, {_readable(sum(sizes))})"


def _readable(size: float) -> str:
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size} {_UNITS[unit]}"
