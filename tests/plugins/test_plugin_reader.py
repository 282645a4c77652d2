"""The reader of entry points, against directories written by hand and against importlib.metadata."""

from __future__ import annotations

import builtins
import importlib.metadata
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from warp._src.plugin_reader import normalise, scan

GROUP = "warp.plugins"


def _write(directory: Path, name: str, text: str | None) -> None:
    metadata = directory / name
    metadata.mkdir(parents=True)
    if text is not None:
        (metadata / "entry_points.txt").write_text(text)


def _found(*path: Path) -> dict[str, tuple[str, str]]:
    entry_points = scan([str(directory) for directory in path], GROUP).entry_points
    return {entry.name: (entry.target, f"{entry.distribution} {entry.version}") for entry in entry_points}


def test_it_agrees_with_the_standard_library_on_this_installation() -> None:
    for group in (GROUP, "pytest11", "console_scripts"):
        expected = {(entry.name, entry.value) for entry in importlib.metadata.entry_points(group=group)}
        assert {(found.name, found.target) for found in scan(sys.path, group).entry_points} == expected
    versions = {normalise(found.metadata["Name"]): found.version for found in importlib.metadata.distributions()}
    assert scan(sys.path, GROUP).distributions.keys() == versions.keys()


def test_the_text_of_an_entry_point_file(tmp_path: Path) -> None:
    text = (
        "# comment\n[console_scripts]\na = x:y\n\n[ warp.plugins ]\n; comment\n one = m.n:o.p [extra]\ntwo=q\n"
        "[warp.plugins.more]\nb = x:y\n"
    )
    _write(tmp_path, "Some.Thing-2.1.dist-info", text)
    assert _found(tmp_path) == {"one": ("m.n:o.p", "some-thing 2.1"), "two": ("q", "some-thing 2.1")}


def test_the_first_of_two_distributions_wins(tmp_path: Path) -> None:
    _write(tmp_path / "a", "my_dist-1.0.dist-info", "[warp.plugins]\nfirst = a:b\n")
    _write(tmp_path / "b", "My.Dist-2.0.dist-info", "[warp.plugins]\nsecond = a:b\n")
    assert list(_found(tmp_path / "a", tmp_path / "b")) == ["first"]
    assert list(_found(tmp_path / "b", tmp_path / "a")) == ["second"]
    assert list(_found(tmp_path / "a", tmp_path / "a")) == ["first"]


def test_leftovers_and_other_files_are_skipped(tmp_path: Path) -> None:
    _write(tmp_path, "~ist-1.0.dist-info", "[warp.plugins]\ngone = a:b\n")
    _write(tmp_path, "dist-1.0.data", "[warp.plugins]\nother = a:b\n")
    _write(tmp_path, "bare-1.0.dist-info", None)
    (tmp_path / "old-1.0-py3.11.egg-info").write_text("Name: old\n")
    assert _found(tmp_path, tmp_path / "absent") == {}
    assert scan([str(tmp_path)], GROUP).distributions == {"bare": "1.0", "old": "1.0"}


def test_eggs_and_development_installs_are_read(tmp_path: Path) -> None:
    _write(tmp_path / "project", "in_place.egg-info", "[warp.plugins]\na = a:b\n")
    _write(tmp_path / "site", "built-3.0-py3.11.egg-info", "[warp.plugins]\nb = a:b\n")
    _write(tmp_path / "whole-4.0-py3.11.egg", "EGG-INFO", "[warp.plugins]\nc = a:b\n")
    found = _found(tmp_path / "project", tmp_path / "site", tmp_path / "whole-4.0-py3.11.egg")
    assert found == {"a": ("a:b", "in-place "), "b": ("a:b", "built 3.0"), "c": ("a:b", "whole 4.0")}


def test_an_archive_on_the_path_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("dist-5.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dist\nVersion: 5.0\n")
        archive.writestr("dist-5.0.dist-info/entry_points.txt", "[warp.plugins]\nzipped = a:b\n")
    assert _found(tmp_path / "all.zip") == {"zipped": ("a:b", "dist 5.0")}


def test_a_distribution_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(200):
        _write(tmp_path, f"dist_{index}-1.0.dist-info", "[console_scripts]\na = b:c\n" if index % 2 else None)
    opened = []
    real_open = builtins.open

    def counting_open(file: Any, *arguments: Any, **options: Any) -> Any:
        opened.append(file)
        return real_open(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", counting_open)
    assert len(scan([str(tmp_path)], GROUP).distributions) == 200
    assert len(opened) == 200
