"""Read installed distributions and their entry points straight from the metadata directories on `sys.path`.

`importlib.metadata` parses every distribution's metadata for the same answer and takes several times as long to
import as this takes to run; it serves only the path entries that are not directories (zip files).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True)
class EntryPoint:
    """An announced plugin: its name, the object it refers to, and who announces it."""

    name: str
    target: str
    distribution: str
    version: str


@dataclass(frozen=True)
class Scan:
    """What one pass over a path found: versions by normalised distribution name, and the group's entry points."""

    distributions: dict[str, str]
    entry_points: tuple[EntryPoint, ...]


@dataclass(frozen=True)
class _Metadata:
    name: str
    version: str
    entry_points: str


def scan(path: Sequence[str], group: str) -> Scan:
    """List the distributions on `path` and the entry points of `group`; the first of two same-named ones wins."""
    distributions: dict[str, str] = {}
    entry_points: list[EntryPoint] = []
    for entry in dict.fromkeys(path):
        for metadata in _distributions_of(entry or os.curdir):
            normalised = normalise(metadata.name)
            if normalised in distributions:
                continue
            distributions[normalised] = metadata.version
            if group in metadata.entry_points:
                entry_points += (
                    EntryPoint(name, target, normalised, metadata.version)
                    for name, target in parse_group(metadata.entry_points, group)
                )
    return Scan(distributions, tuple(entry_points))


def normalise(name: str) -> str:
    """Return a distribution's name in the normal form of the packaging specifications."""
    return _SEPARATORS.sub("-", name).lower()


def parse_group(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Yield name and target of each entry of `group` in the text of an `entry_points.txt`."""
    in_group = False
    for raw_line in text.splitlines():
        line = raw_line.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            in_group = line.strip("[] ") == group
        elif in_group and "=" in line:
            name, _, target = line.partition("=")
            yield name.strip(), target.partition("[")[0].strip()


def _distributions_of(entry: str) -> Iterator[_Metadata]:
    try:
        names = sorted(os.listdir(entry))
    except NotADirectoryError:
        yield from _distributions_of_archive(entry)
        return
    except OSError:
        return
    is_egg = entry.rstrip(os.sep).lower().endswith(".egg")
    for name in names:
        if name.startswith("~"):  # what pip leaves of a distribution that it could not remove
            continue
        if name.endswith((".dist-info", ".egg-info")):
            yield _metadata(os.path.join(entry, name), name.rpartition(".")[0])
        elif is_egg and name.upper() == "EGG-INFO":
            egg = os.path.basename(entry.rstrip(os.sep))
            yield _metadata(os.path.join(entry, name), egg.rpartition(".")[0])


def _metadata(directory: str, stem: str) -> _Metadata:
    name, _, rest = stem.partition("-")
    try:
        # A text file takes twice as long to open.
        with open(os.path.join(directory, "entry_points.txt"), "rb", buffering=0) as file:
            entry_points = file.read().decode("utf-8", "replace")
    except OSError:  # no entry points, or an .egg-info that is a plain file
        entry_points = ""
    return _Metadata(name, rest.partition("-")[0], entry_points)


def _distributions_of_archive(entry: str) -> Iterable[_Metadata]:
    # Imported here for its cost; on an ordinary installation no path entry is an archive.
    import importlib.metadata

    for distribution in importlib.metadata.distributions(path=[entry]):
        entry_points = distribution.read_text("entry_points.txt") or ""
        yield _Metadata(distribution.metadata["Name"], distribution.version, entry_points)
