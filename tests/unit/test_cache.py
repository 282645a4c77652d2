from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from warp import config
from warp._src.build import cache as cache_module
from warp._src.build.cache import KernelCache, cache_directory, make_key
from warp._src.build.flags import BuildOptions
from warp._src.build.toolchain import Compiler
from warp.errors import WarpWarning

COMPILER = Compiler("g++", ("/usr/bin/g++",), "/usr/bin/g++:1:2", "gcc")
KEY = "0123456789" * 4
OBJECT = b"\x7fELF" + bytes(range(256)) * 8

# Each process makes its own bytes, slowly, so that all of them miss; what they find must be one process's in full.
RACER = """
import os, sys, time
from pathlib import Path
from warp._src.build.cache import KernelCache
cache = KernelCache(Path(sys.argv[1]))
def build():
    time.sleep(0.05)
    return os.getpid().to_bytes(4, "little") * 50_000
print("ready", flush=True)
sys.stdin.readline()
for _ in range(5):
    data = cache.get_or_build(sys.argv[2], build).read_bytes()
    assert data[:200_000] == data[:4] * 50_000, "mixed or truncated object"
"""


def build_nothing() -> bytes:
    raise AssertionError("the object should have been found")


def snapshot(directory: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in (directory, *directory.iterdir())}


def test_a_warm_cache_builds_and_writes_nothing(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "new" / "cache")
    path = cache.get_or_build(KEY, lambda: OBJECT)
    assert path.read_bytes().startswith(OBJECT)
    before = snapshot(cache.directory)
    assert KernelCache(cache.directory).get_or_build(KEY, build_nothing) == path
    assert snapshot(cache.directory) == before
    assert set(before) == {"cache", path.name}


def test_entries_and_directory_are_private(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "cache")
    path = cache.get_or_build(KEY, lambda: OBJECT)
    for made in (path, cache.directory):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda _: b"",
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: data + b"x",
        lambda _: OBJECT,
    ],
    ids=["half", "one byte short", "empty", "flipped bit", "longer", "no sum"],
)
def test_a_damaged_entry_is_rebuilt(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    cache = KernelCache(tmp_path)
    path = cache.get_or_build(KEY, lambda: OBJECT)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert cache.get_or_build(KEY, lambda: OBJECT) == path
    assert path.read_bytes() == whole


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> bytes:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        KernelCache(tmp_path).get_or_build(KEY, fail)
    assert list(tmp_path.iterdir()) == []


def test_many_processes_may_share_a_cold_cache(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RACER, str(tmp_path), KEY]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(6)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    for racer in racers:
        racer.communicate(timeout=60)
        assert racer.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == [f"{KEY}{cache_module.host_platform().suffix}"]


def test_an_unusable_directory_is_reported_and_replaced(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    cache = KernelCache(blocker / "cache")
    with pytest.warns(WarpWarning, match="cannot be written"):
        path = cache.get_or_build(KEY, lambda: OBJECT)
    assert path.read_bytes().startswith(OBJECT)
    assert cache.get_or_build(KEY, build_nothing) == path
    path.unlink()


def test_clear_removes_objects_and_nothing_else(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    cache.get_or_build(KEY, lambda: OBJECT)
    (tmp_path / ".partial-left-by-a-crash").write_bytes(b"")
    (tmp_path / "thesis.txt").write_text("mine")
    cache.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    KernelCache(tmp_path / "missing").clear()


def test_everything_that_changes_the_object_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    release = BuildOptions(march="x86-64-v2")
    keys = [
        make_key("source", compiler=COMPILER, options=release),
        make_key("other", compiler=COMPILER, options=release),
        make_key("source", compiler=COMPILER, options=release, prelude="prelude"),
        make_key("source", compiler=replace(COMPILER, identity="newer"), options=release),
        make_key("source", compiler=replace(COMPILER, command=("/usr/bin/g++", "-pipe")), options=release),
        make_key("source", compiler=COMPILER, options=replace(release, mode="debug")),
        make_key("source", compiler=COMPILER, options=replace(release, fast_math=True)),
        make_key("source", compiler=COMPILER, options=replace(release, march="x86-64-v3")),
    ]
    monkeypatch.setattr(cache_module, "ABI_VERSION", 2)
    keys.append(make_key("source", compiler=COMPILER, options=release))
    assert len(set(keys)) == len(keys)
    monkeypatch.undo()
    assert make_key("source", compiler=COMPILER, options=release) == keys[0]


def test_parts_of_the_key_do_not_run_together() -> None:
    options = BuildOptions()
    first = make_key("bc", compiler=COMPILER, options=options, prelude="a")
    assert first != make_key("c", compiler=COMPILER, options=options, prelude="ab")


def test_the_directory_follows_config_then_environment_then_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "environment"))
    monkeypatch.setattr(config, "kernel_cache_dir", str(tmp_path / "config"))
    assert cache_directory() == tmp_path / "config"
    monkeypatch.setattr(config, "kernel_cache_dir", None)
    assert cache_directory() == tmp_path / "environment"
    monkeypatch.delenv("WARP_CACHE_PATH")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_directory() == tmp_path / "warp-core"


def test_without_caching_the_configured_directory_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(config, "cache_kernels", False)
    path = cache_module.get_or_build("f" * 40, lambda: OBJECT)
    assert path.is_file()
    assert os.listdir(tmp_path) == []
    path.unlink()
