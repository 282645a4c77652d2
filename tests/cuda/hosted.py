"""CUDA text compiled for the host, one kernel or several, as a stand-in for what the driver loads."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from warp._src import build
from warp._src.emit.prelude import native_text

HOST_CUDA = (Path(__file__).parent / "host_cuda.h").read_text(encoding="utf-8")
_ENTRY = re.compile(
    r'extern "C" __global__ void(?: __launch_bounds__\([^)]*\))? (\w+)\('
    r"const __grid_constant__ wp_launch launch, const __grid_constant__ ([\w:]+) args\)"
)
_BARRIER = re.compile(r"\b__sync(?:threads|warp)")
_CONTEXTS = ("getcontext", "makecontext", "swapcontext")


def compile_hosted(text: str) -> bytes:
    """Take the place of NVRTC: what the stand-in of the driver loads is the text itself."""
    return text.encode()


def load_hosted(text: str) -> ctypes.CDLL:
    """Compile CUDA text and load it; each kernel `k` is a function `host_k(grid, block, launch, arguments)`."""
    fibres = "#define HOST_FIBRES 1" if _BARRIER.search(text) else ""
    launchers = "\n".join(
        f"HOST_LAUNCH(host_{name}, {name}, {type})\nWP_EXPORT const unsigned size_of_{name} = sizeof({type});"
        for name, type in _ENTRY.findall(text)
    )
    parts = [native_text("freestanding.h"), build.libm_header(), fibres, HOST_CUDA, text, launchers]
    library = ctypes.CDLL(str(build.build_object("\n".join(parts))))
    process = ctypes.CDLL(None)
    libraries = (ctypes.CDLL("libm.so.6"), process)
    library.wp_bind(_table(build.LIBM, libraries))
    if fibres:
        library.host_bind(_table(_CONTEXTS, (process,)))
    return library


def parameter_size(library: ctypes.CDLL, name: str) -> int:
    """Return the size of the struct of arguments of a kernel of a loaded text."""
    return ctypes.c_uint.in_dll(library, f"size_of_{name}").value


def _table(names: tuple[str, ...], libraries: tuple[ctypes.CDLL, ...]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(names))(*(_address(name, libraries) for name in names))


def _address(name: str, libraries: tuple[ctypes.CDLL, ...]) -> int:
    for library in libraries:
        if hasattr(library, name):
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    raise LookupError(name)
