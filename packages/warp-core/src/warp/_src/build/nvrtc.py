"""CUDA C++ text to the code of one GPU architecture, by NVIDIA's run-time compiler. Needs no GPU and no driver."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from warp._src.build.cache import get_or_build, make_cuda_key, read_object
from warp.errors import ToolchainError

_ADVICE: Final = "install it with `pip install warp-core[cuda12]` or `warp-core[cuda13]`"
_REAL: Final = re.compile(r"sm_\d+[af]?")
_VIRTUAL: Final = re.compile(r"compute_\d+[af]?")
# Functions of ours and of snippets are for the device without saying so.
_COMMON: Final = ("--std=c++17", "--device-as-default-execution-space", "--diag-suppress=177,550")


@dataclass(frozen=True)
class NvrtcOptions:
    """What a translation unit is compiled for.

    `fmad` lets a product and a sum round once; without it results are those of the CPU. `fast_compile` gives up
    speed of the code for speed of the compiler, from version 12.8 on. `max_registers` limits those of a thread; 0
    leaves that to the compiler.
    """

    mode: Literal["release", "debug"] = "release"
    fast_math: bool = False
    fmad: bool = True
    fast_compile: bool = False
    max_registers: int = 0

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags, the architecture apart."""
        return (
            *_COMMON,
            *(("--generate-line-info",) if self.mode == "debug" else ()),
            *(("--use_fast_math",) if self.fast_math else ()),
            *(() if self.fmad else ("--fmad=false",)),
            *(("--Ofast-compile=max",) if self.fast_compile else ()),
            *((f"--maxrregcount={self.max_registers}",) if self.max_registers else ()),
        )


DEFAULT_OPTIONS: Final = NvrtcOptions()


@cache
def find_nvrtc() -> Any:
    """Return the module of the compiler's bindings. Raises ToolchainError if it or the library is not installed."""
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise ToolchainError(f"NVRTC, the compiler for CUDA, cannot be used ({error}); {_ADVICE}") from error
    return nvrtc


def nvrtc_version() -> tuple[int, int]:
    """Return the version of the compiler, that of its CUDA toolkit. Raises ToolchainError."""
    nvrtc = find_nvrtc()
    major, minor = _checked(nvrtc, nvrtc.nvrtcVersion())
    return int(major), int(minor)


def supported_architectures() -> tuple[str, ...]:
    """Return the architectures that the compiler knows, "sm_75" and later ones. Raises ToolchainError."""
    nvrtc = find_nvrtc()
    numbers = _checked(nvrtc, nvrtc.nvrtcGetSupportedArchs())
    return tuple(f"sm_{number}" for number in numbers)


def compile_cubin(source: str, architecture: str, options: NvrtcOptions = DEFAULT_OPTIONS) -> bytes:
    """Compile CUDA C++ for a real architecture such as "sm_90" and return the bytes of the CUBIN.

    Raises ToolchainError, with the compiler's log, if it refuses the source or the architecture.
    """
    if not _REAL.fullmatch(architecture):
        raise ToolchainError(f"a CUBIN is for an architecture such as 'sm_90', not {architecture!r}")
    return _compile(source, architecture, options, "CUBIN")


def compile_ptx(source: str, architecture: str, options: NvrtcOptions = DEFAULT_OPTIONS) -> bytes:
    """Compile CUDA C++ for a virtual architecture such as "compute_90" and return the PTX text.

    A driver older than the compiler refuses its PTX. Raises ToolchainError as `compile_cubin` does.
    """
    if not _VIRTUAL.fullmatch(architecture):
        raise ToolchainError(f"PTX is for an architecture such as 'compute_90', not {architecture!r}")
    return _compile(source, architecture, options, "PTX").rstrip(b"\0")


def build_cubin(source: str, architecture: str, options: NvrtcOptions = DEFAULT_OPTIONS) -> bytes:
    """Return the CUBIN of this source, compiled now or found in the cache. Raises ToolchainError."""
    key = make_cuda_key(source, architecture=architecture, flags=options.flags, version=nvrtc_version())
    return read_object(get_or_build(key, lambda: compile_cubin(source, architecture, options), ".cubin"))


def build_image(source: str, capability: int, options: NvrtcOptions = DEFAULT_OPTIONS) -> bytes:
    """Return code for a device of a compute capability such as 90: a CUBIN, from the cache if it is there.

    For a device that is newer than the compiler it is PTX, which the driver finishes. Raises ToolchainError.
    """
    known = sorted(int(name.removeprefix("sm_")) for name in supported_architectures() if name[3:].isdigit())
    if capability in known:
        return build_cubin(source, f"sm_{capability}", options)
    older = [architecture for architecture in known if architecture < capability]
    if not older:
        raise ToolchainError(f"NVRTC {'.'.join(map(str, nvrtc_version()))} cannot compile for sm_{capability}")
    key = make_cuda_key(source, architecture=f"compute_{older[-1]}", flags=options.flags, version=nvrtc_version())
    return read_object(get_or_build(key, lambda: compile_ptx(source, f"compute_{older[-1]}", options) + b"\0", ".ptx"))


def _compile(source: str, architecture: str, options: NvrtcOptions, kind: Literal["CUBIN", "PTX"]) -> bytes:
    nvrtc = find_nvrtc()
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), b"unit.cu", 0, [], []))
    try:
        flags = [f"--gpu-architecture={architecture}", *options.flags]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            message = f"NVRTC {'.'.join(map(str, nvrtc_version()))} refused the generated code for {architecture}"
            raise ToolchainError(f"{message} ({status.name})", _log(nvrtc, program))
        size = _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}Size")(program))
        data = bytearray(size)
        _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{kind}")(program, data))
        return bytes(data)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, program: Any) -> str:
    log = bytearray(_checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program)))
    _checked(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    return log.rstrip(b"\0").decode("utf-8", "replace").strip()


def _checked(nvrtc: Any, answer: tuple[Any, ...]) -> Any:
    """Give what follows the status in an answer of the bindings."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ToolchainError(f"NVRTC failed: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
