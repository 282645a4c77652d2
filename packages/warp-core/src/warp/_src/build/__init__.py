"""Turn C++ text into loadable objects: compilers, their flags, and the cache. Knows nothing of kernels or devices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from warp._src.build.cache import cache_directory, cache_entries, clear, get_or_build, make_key, read_object
from warp._src.build.flags import DEFAULT_OPTIONS, BuildOptions, Platform
from warp._src.build.libm import LIBM, libm_header
from warp._src.build.nvrtc import (
    NvrtcOptions,
    build_cubin,
    build_image,
    compile_cubin,
    compile_ptx,
    find_nvrtc,
    nvrtc_version,
    supported_architectures,
)
from warp._src.build.toolchain import Compiler, available_compilers, compile_shared, find_compiler

__all__ = [
    "DEFAULT_OPTIONS",
    "LIBM",
    "NATIVE_DIRECTORY",
    "BuildOptions",
    "Compiler",
    "NvrtcOptions",
    "Platform",
    "available_compilers",
    "build_cubin",
    "build_image",
    "build_object",
    "build_runtime_library",
    "cache_directory",
    "cache_entries",
    "clear",
    "compile_cubin",
    "compile_ptx",
    "compile_shared",
    "find_compiler",
    "find_nvrtc",
    "get_or_build",
    "libm_header",
    "make_key",
    "native_text",
    "nvrtc_version",
    "read_object",
    "supported_architectures",
]

NATIVE_DIRECTORY: Final = Path(__file__).resolve().parents[2] / "native"
_RUNTIME_INCLUDES: Final = ("abi.h", "freestanding.h", "dlpack.h")


def build_object(
    source: str,
    *,
    compiler: Compiler | None = None,
    options: BuildOptions = DEFAULT_OPTIONS,
    include_dirs: Sequence[Path] = (),
    prelude: str = "",
) -> Path:
    """Return the path of the shared object of this source, compiled now or found in the cache.

    `prelude` is the text of what the source includes, as part of the key. Raises ToolchainError.
    """
    chosen = compiler or find_compiler()
    key = make_key(source, compiler=chosen, options=options, prelude=prelude)
    return get_or_build(
        key, lambda: compile_shared(source, compiler=chosen, options=options, include_dirs=include_dirs)
    )


def build_runtime_library(compiler: Compiler | None = None) -> Path:
    """Return the path of the worker pool and launcher, compiled now or found in the cache."""
    return build_object(
        native_text("runtime.cpp"),
        compiler=compiler,
        include_dirs=(NATIVE_DIRECTORY,),
        prelude="".join(native_text(name) for name in _RUNTIME_INCLUDES),
    )


@lru_cache
def native_text(name: str) -> str:
    """Return the text of a file of `warp/native`, for pasting into a translation unit."""
    return (NATIVE_DIRECTORY / name).read_text(encoding="utf-8")
