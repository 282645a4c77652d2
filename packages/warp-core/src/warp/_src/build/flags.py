"""The one table of compiler flags, per compiler family and platform, and what this machine's processor can do."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from warp.errors import ToolchainError

Family = Literal["zig", "clang", "gcc"]
Mode = Literal["release", "debug"]


@dataclass(frozen=True)
class BuildOptions:
    """What a translation unit is compiled for.

    `march` is a level such as "x86-64-v3"; empty means this machine's. A symbol that nothing defines is an error
    unless `allow_undefined`.
    """

    mode: Mode = "release"
    fast_math: bool = False
    march: str = ""
    allow_undefined: bool = False


DEFAULT_OPTIONS: Final = BuildOptions()


@dataclass(frozen=True)
class Platform:
    """An operating system and processor architecture that objects are built for."""

    system: str
    machine: str

    def __str__(self) -> str:
        return f"{self.system}-{self.machine}"

    @property
    def suffix(self) -> str:
        """File name suffix of a shared object."""
        return ".dylib" if self.system == "macos" else ".so"


# The last three are not style: without them `a + 1 > a` folds to true, float and int views of one memory are
# miscompiled, and endless loops disappear.
_COMMON: Final = (
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-stack-protector",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-finite-loops",
)
_FAMILY: Final[dict[Family, tuple[str, ...]]] = {
    "zig": ("-fno-sanitize=all",),
    "clang": (),
    "gcc": (),
}
# A name that nothing defines is an error of the build, not of the first call.
_NO_UNDEFINED: Final = ("-Wl,-z,defs",)
_PLATFORM: Final[dict[tuple[Family, str], tuple[str, ...]]] = {
    ("zig", "linux-x86_64"): ("-target", "x86_64-linux-gnu"),
    ("zig", "linux-aarch64"): ("-target", "aarch64-linux-gnu", "-mno-outline-atomics"),
    ("zig", "macos-x86_64"): ("-target", "x86_64-macos"),
    ("zig", "macos-aarch64"): ("-target", "aarch64-macos"),
    ("clang", "linux-x86_64"): (),
    ("clang", "linux-aarch64"): ("-mno-outline-atomics",),
    ("clang", "macos-x86_64"): ("-Wl,-undefined,dynamic_lookup",),
    ("clang", "macos-aarch64"): ("-Wl,-undefined,dynamic_lookup",),
    ("gcc", "linux-x86_64"): (),
    ("gcc", "linux-aarch64"): ("-mno-outline-atomics",),
}
_OPTIMISE: Final[dict[tuple[Family, Mode], tuple[str, ...]]] = {
    ("zig", "release"): ("-O2",),
    ("clang", "release"): ("-O2",),
    ("gcc", "release"): ("-O3",),
    ("zig", "debug"): ("-O1", "-g"),
    ("clang", "debug"): ("-O1", "-g"),
    ("gcc", "debug"): ("-O1", "-g"),
}
# -ffast-math itself would also link start-up code that changes how the whole process rounds denormal numbers.
_FAST_MATH: Final = ("-fassociative-math", "-fno-signed-zeros", "-freciprocal-math", "-ffinite-math-only")

_X86_LEVELS: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("x86-64-v3", frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "sse4_2", "popcnt"})),
    ("x86-64-v2", frozenset({"sse4_1", "sse4_2", "ssse3", "popcnt", "cx16"})),
)
_MACHINES: Final = {"x86_64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


@cache
def host_platform() -> Platform:
    """Return the platform of this process.

    Linux on x86-64 and aarch64 is supported, macOS is experimental. Raises ToolchainError elsewhere.
    """
    if sys.platform == "win32":
        raise ToolchainError("Warp does not compile kernels on Windows yet; use WSL 2 there")
    machine = _MACHINES.get(os.uname().machine)
    if machine is None or sys.platform not in ("linux", "darwin") or sys.maxsize <= 2**32:
        raise ToolchainError(
            f"Warp compiles kernels on 64-bit Linux (x86-64, aarch64) and macOS; "
            f"this is {sys.platform} on {os.uname().machine}"
        )
    return Platform("linux" if sys.platform == "linux" else "macos", machine)


@cache
def host_march() -> str:
    """Return the richest instruction-set level that kernels may use here; "" is the architecture's baseline.

    Levels instead of the exact processor keep a cache usable on all machines that share it.
    """
    target = host_platform()
    if str(target) != "linux-x86_64":
        return ""
    return _level_of(Path("/proc/cpuinfo"))


def _level_of(cpuinfo: Path) -> str:
    try:
        with cpuinfo.open(encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return ""
    features = set(flags.partition(":")[2].split())
    return next((level for level, needed in _X86_LEVELS if needed <= features), "")


def compiler_flags(family: Family, target: Platform, options: BuildOptions) -> tuple[str, ...]:
    """Return the flags for one translation unit, without input and output.

    Raises ToolchainError for a combination of compiler and platform that nobody has tried.
    """
    try:
        for_platform = _PLATFORM[family, str(target)]
    except KeyError:
        raise ToolchainError(f"the compiler family {family} is not supported on {target}") from None
    march = options.march or (host_march() if target == host_platform() else "")
    return (
        *for_platform,
        *_COMMON,
        *_OPTIMISE[family, options.mode],
        *_FAMILY[family],
        *_march_flags(family, target, march),
        *(_FAST_MATH if options.fast_math else ()),
        *(_NO_UNDEFINED if target.system == "linux" and not options.allow_undefined else ()),
    )


def _march_flags(family: Family, target: Platform, march: str) -> tuple[str, ...]:
    if family != "zig":
        return (f"-march={march}",) if march else ()
    if march:
        return (f"-mcpu={march.replace('-', '_')}",)
    # zig would otherwise compile for the very processor it runs on.
    return ("-mcpu=baseline",) if target.system == "linux" else ()
