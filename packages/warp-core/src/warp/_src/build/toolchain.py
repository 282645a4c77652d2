"""Find a C++ compiler and run it: source text in, bytes of a shared object out."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from warp import config
from warp._src.build.flags import DEFAULT_OPTIONS, BuildOptions, Family, Platform, compiler_flags, host_platform
from warp.errors import ToolchainError

_VARIABLE: Final = "WARP_CXX"
_ADVICE: Final = (
    "install one with `pip install warp-core[compiler]`, or clang++ or g++ with the system's package manager, "
    f"or name one in the environment variable {_VARIABLE}"
)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: how to call it, and what tells its version from another's."""

    name: str
    command: tuple[str, ...]
    identity: str
    family: Family

    def __str__(self) -> str:
        return f"{self.name} ({' '.join(self.command)})"


def find_compiler(name: str | None = None) -> Compiler:
    """Return the compiler to use, without starting it.

    `name` is "ziglang", "clang++", "g++", a path or a command; None means `config.cpu_compiler`, else `WARP_CXX` of
    the environment, else the first of ziglang, clang++ and g++ that is installed. Raises ToolchainError.
    """
    host_platform()
    wanted = name or config.cpu_compiler or os.environ.get(_VARIABLE) or ""
    return _find(wanted, os.environ.get("PATH", ""))


def available_compilers() -> tuple[Compiler, ...]:
    """Return the compilers that are installed, in order of preference."""
    host_platform()
    path = os.environ.get("PATH", "")
    return tuple(found for find in _FINDERS.values() if (found := find(path)) is not None)


def compile_shared(
    source: str,
    *,
    compiler: Compiler,
    options: BuildOptions = DEFAULT_OPTIONS,
    include_dirs: Sequence[Path] = (),
    target: Platform | None = None,
) -> bytes:
    """Compile C++ source to a shared object, for this machine unless `target` is given, and return its bytes.

    Raises ToolchainError, with the compiler's log, if it refuses the source.
    """
    target = target or host_platform()
    with tempfile.TemporaryDirectory(prefix="warp-build-") as name:
        directory = Path(name)
        output = directory / f"unit{target.suffix}"
        (directory / "unit.cpp").write_text(source, encoding="utf-8")
        command = [
            *compiler.command,
            *compiler_flags(compiler.family, target, options),
            *(f"-I{path}" for path in include_dirs),
            "unit.cpp",
            "-o",
            output.name,
        ]
        log = _run(command, compiler, directory)
        try:
            return output.read_bytes()
        except OSError as error:
            raise ToolchainError(f"{compiler} made no object", log) from error


def _run(command: list[str], compiler: Compiler, directory: Path) -> str:
    # zig insists on writable cache directories; the unit's own leave nothing behind and cost no time.
    environment = os.environ | {"LC_ALL": "C"}
    if compiler.family == "zig":
        environment |= {
            "ZIG_LOCAL_CACHE_DIR": str(directory / "zig-local"),
            "ZIG_GLOBAL_CACHE_DIR": str(directory / "zig-global"),
        }
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise ToolchainError(f"cannot start the compiler {compiler}: {error}; {_ADVICE}") from error
    log = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise ToolchainError(f"{compiler} refused the generated code (exit status {done.returncode})", log)
    return log


@lru_cache(maxsize=16)
def _find(wanted: str, path: str) -> Compiler:
    if wanted in _FINDERS:
        found = _FINDERS[wanted](path)
        if found is None:
            raise ToolchainError(f"the C++ compiler {wanted!r} is not installed; {_ADVICE}")
        return found
    if wanted:
        return _find_command(wanted, path)
    for find in _FINDERS.values():
        found = find(path)
        if found is not None:
            return found
    raise ToolchainError(f"no C++ compiler found; {_ADVICE}")


def _find_ziglang(_path: str) -> Compiler | None:
    specification = importlib.util.find_spec("ziglang")
    if specification is None or not specification.submodule_search_locations:
        return None
    executable = Path(specification.submodule_search_locations[0]) / "zig"
    if os.access(executable, os.X_OK):
        # `python -m ziglang` does the same after starting an interpreter.
        return Compiler("ziglang", (str(executable), "c++"), _identity_of(executable), "zig")
    if specification.origin is None:
        return None
    command = (sys.executable, "-m", "ziglang", "c++")
    return Compiler("ziglang", command, _identity_of(Path(specification.origin)), "zig")


def _find_named(name: str, family: Family, path: str) -> Compiler | None:
    executable = shutil.which(name, path=path)
    return Compiler(name, (executable,), _identity_of(Path(executable)), family) if executable else None


def _find_command(wanted: str, path: str) -> Compiler:
    # A path may contain spaces; a command may have arguments ("python -m ziglang c++").
    words = (wanted,) if os.path.exists(wanted) else tuple(shlex.split(wanted))
    executable = shutil.which(words[0], path=path) if words else None
    if executable is None:
        raise ToolchainError(f"the C++ compiler {wanted!r} does not exist or is not executable; {_ADVICE}")
    family = _family_of(executable, words)
    command = (executable, *words[1:])
    if family == "zig" and len(words) == 1:
        command = (executable, "c++")
    return Compiler(wanted, command, f"{_identity_of(Path(executable))}:{' '.join(words[1:])}", family)


def _family_of(executable: str, words: Sequence[str]) -> Family:
    program = os.path.basename(os.path.realpath(executable))
    for family, marks in _FAMILY_MARKS.items():
        if any(mark in word for word in (program, os.path.basename(words[0]), *words[1:]) for mark in marks):
            return family
    return "gcc" if sys.platform != "darwin" else "clang"


def _identity_of(executable: Path) -> str:
    # Asking for --version would start the compiler at every warm start.
    resolved = executable.resolve()
    status = resolved.stat()
    return f"{resolved}:{status.st_size}:{status.st_mtime_ns}"


_FAMILY_MARKS: Final[dict[Family, tuple[str, ...]]] = {"zig": ("zig",), "clang": ("clang",), "gcc": ("g++", "gcc")}
_FINDERS: Final[dict[str, Callable[[str], Compiler | None]]] = {
    "ziglang": _find_ziglang,
    "clang++": lambda path: _find_named("clang++", "clang", path),
    "g++": lambda path: _find_named("g++", "clang" if sys.platform == "darwin" else "gcc", path),
}
