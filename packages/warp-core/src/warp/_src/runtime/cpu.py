"""Run compiled objects on the CPU: load them, bind their tables, call their entry points."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from warp import config
from warp._src.runtime import dlpack
from warp.errors import ArgumentError, LaunchError, ToolchainError

ABI_VERSION: Final = 1
MAX_DIMENSIONS: Final = 4

FLAG_PARALLEL: Final = 1
FLAG_RELEASE_GIL: Final = 2
FLAG_ORDERED: Final = 4
_CHUNK_SHIFT: Final = 8

_WORKERS_VARIABLE: Final = "WARP_CPU_WORKERS"
_LAUNCH: Final = struct.Struct("=q4qiiQQqq")
_FAULT: Final = struct.Struct("=iiqqqdi36s")
FAULT_SIZE: Final = _FAULT.size
_FAULT_TEXT: Final = {
    1: "assertion failed",
    2: "integer division by zero",
    3: "index {index} is out of bounds for {array}, which has {extent} elements{axis}",
    4: "{name} is {value}, not a finite number",
    5: "component {index} of {variable} is out of bounds: there are {extent}",
}

LaunchFunction = Callable[[int, bytes, bytes, int], "bytes | None"]


class Executor:
    """The worker pool of this process, and the objects that run on it.

    `library` is the compiled `native/runtime.cpp`; `symbols` names the table that kernels are bound to.
    """

    def __init__(self, library: str | os.PathLike[str], symbols: Sequence[str]) -> None:
        self._library = _open(library)
        self._libm = _address_table(symbols, (_libm(), ctypes.CDLL(None)))
        self._host = _bind_host(self._library)
        self.launch: LaunchFunction = make_fast_launch(self._library) or make_plain_launch(self._library)
        """Call an entry point: `launch(entry, launch_block, args, flags)`; None, or the fault as bytes."""
        if sys.implementation.name == "cpython":
            dlpack.use_native(
                _make_builtin(self._library, b"export", "wp_dlpack_export"),
                _make_builtin(self._library, b"import", "wp_dlpack_import"),
            )
        self.set_workers(default_workers())

    @property
    def workers(self) -> int:
        """Return the number of threads that may share a launch, the caller included."""
        return int(self._library.wp_get_workers())

    def set_workers(self, count: int) -> None:
        """Share later launches among `count` threads, the caller included; threads start when first needed."""
        if count < 1:
            raise ArgumentError(f"the number of workers must be at least 1, not {count}")
        self._library.wp_set_workers(ctypes.c_int(min(count, 2**16)))

    @property
    def native_launch(self) -> int:
        """Return the address of `wp_launch_plain`, with which native code runs entry points."""
        return _find_symbol(self._library, "wp_launch_plain") or 0

    def load(self, path: str | os.PathLike[str]) -> LoadedObject:
        """Load a compiled object and bind its table.

        Raises ToolchainError for an object that cannot be loaded or was made for another version of Warp.
        """
        library = _open(path)
        library.wp_bind(self._libm)
        return LoadedObject(library, Path(path))

    def run(self, entry: int, launch_block: bytes, args: bytes, flags: int, label: str = "kernel") -> None:
        """Run work items 0 to size - 1 and wait for them.

        Raises LaunchError, naming `label`, line and work item, if a check in the kernel failed.
        """
        fault = self.launch(entry, launch_block, args, flags)
        if fault is not None:
            raise LaunchError(describe_fault(fault, launch_block, label), fault_line(fault))


class LoadedObject:
    """A compiled object in memory. Stays loaded for the life of the process."""

    def __init__(self, library: ctypes.CDLL, path: Path) -> None:
        self._library = library
        self.path = path
        self.forward = _find_symbol(library, "wp_forward")
        """Address of `wp_forward`, or None."""
        self.backward = _find_symbol(library, "wp_backward")
        """Address of `wp_backward`, or None."""

    def address(self, name: str) -> int:
        """Return the address of an exported symbol. Raises ToolchainError if there is none."""
        found = _find_symbol(self._library, name)
        if found is None:
            raise ToolchainError(f"the object {self.path} has no symbol {name!r}")
        return found


@lru_cache(maxsize=4096)
def pack_launch(dim: tuple[int, ...], slots: int = 0, record: int = 0, record_size: int = 0, fault: int = 0) -> bytes:
    """Return the launch block for a grid of 1 to 4 dimensions.

    `slots` limits the checkpoints per loop (0: as many as the arena holds); `record` is the address of a buffer of
    `record_size` bytes, `fault` where a CUDA kernel reports faults. Raises ArgumentError for dimensions that are
    negative, too many or too large.
    """
    if not 1 <= len(dim) <= MAX_DIMENSIONS:
        raise ArgumentError(f"dim must have 1 to {MAX_DIMENSIONS} dimensions, got {len(dim)}: {dim}")
    size = 1
    for extent in dim:
        if extent < 0:
            raise ArgumentError(f"dim must not be negative, got {dim}")
        size *= extent
    if size >= 2**63 or max(dim) >= 2**63:
        raise ArgumentError(f"dim is too large, got {dim}")
    padded = dim + (1,) * (MAX_DIMENSIONS - len(dim))
    return _LAUNCH.pack(size, *padded, len(dim), 0, fault, record, record_size, slots)


def launch_flags(
    *, parallel: bool = False, release_gil: bool = False, ordered: bool = False, smallest_chunk: int = 0
) -> int:
    """Return the flags of a launch.

    `ordered` calls the entry point once, for the whole range, on the calling thread. Otherwise the range is cut into
    at most 128 chunks of at least `smallest_chunk` items (0: 4096), the same with any number of workers; with
    `parallel` workers may share them. A kernel with much work per item wants a small `smallest_chunk`.
    """
    flags = FLAG_PARALLEL * parallel | FLAG_RELEASE_GIL * release_gil | FLAG_ORDERED * ordered
    return flags | min(max(smallest_chunk, 0), 2**40) << _CHUNK_SHIFT


def fault_line(fault: bytes) -> int:
    """Return the line that a fault record names."""
    return int(_FAULT.unpack(fault)[1])


def describe_fault(fault: bytes, launch_block: bytes, label: str) -> str:
    """Say what a fault record means, with the line and the coordinates of the work item."""
    kind, line, item, index, extent, value, axis, padded = _FAULT.unpack(fault)
    name = padded.partition(b"\0")[0].decode("utf-8", "replace")
    fields = _LAUNCH.unpack(launch_block)
    dim = fields[1 : 1 + fields[5]]
    coordinates = []
    rest = item
    for size in reversed(dim):
        rest, coordinate = divmod(rest, max(size, 1))
        coordinates.append(coordinate)
    what = _FAULT_TEXT.get(kind, f"fault {kind}").format(
        index=index,
        extent=extent,
        value=value,
        array=f"array '{name}'" if name else "an array",
        variable=f"'{name}'" if name else "a vector or matrix",
        name=f"'{name}'" if name else "the result of an operation",
        axis=f" in dimension {axis}" if axis else "",
    )
    thread = ", ".join(str(coordinate) for coordinate in reversed(coordinates))
    return f"{label}: {what}, at line {line}, in the thread with index ({thread})"


def default_workers() -> int:
    """Return the configured number of workers: `config.cpu_workers`, `WARP_CPU_WORKERS`, else usable processors."""
    if config.cpu_workers is not None:
        return max(1, int(config.cpu_workers))
    text = os.environ.get(_WORKERS_VARIABLE, "")
    if text:
        try:
            return max(1, int(text))
        except ValueError:
            raise ArgumentError(f"{_WORKERS_VARIABLE} must be a number, not {text!r}") from None
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_METH_FASTCALL: Final = 0x80


def make_fast_launch(library: ctypes.CDLL) -> LaunchFunction | None:
    """Return the library's launcher as a builtin function of CPython, or None on another interpreter."""
    if sys.implementation.name != "cpython":
        return None
    function: LaunchFunction = _make_builtin(library, b"launch", "wp_launch_fast")
    return function


def _make_builtin(library: ctypes.CDLL, name: bytes, symbol: str) -> Any:
    definition = _MethodDefinition(name, _find_symbol(library, symbol), _METH_FASTCALL, None)
    # The function object points into the definition, which must therefore never be freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype = ctypes.py_object
    create.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return create(ctypes.addressof(definition), None, None)


def make_plain_launch(library: ctypes.CDLL) -> LaunchFunction:
    """Return the library's launcher called through ctypes; slower, works on any interpreter, releases the GIL."""
    call = library.wp_launch_plain
    call.restype = ctypes.c_int
    call.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long, ctypes.c_char_p)

    def launch(entry: int, launch_block: bytes, args: bytes, flags: int) -> bytes | None:
        if not entry or len(launch_block) != _LAUNCH.size:
            raise TypeError("launch(): no entry point, or not a launch block")
        fault = ctypes.create_string_buffer(_FAULT.size)
        if call(entry, launch_block, args, flags, fault):
            raise MemoryError
        return fault.raw if any(fault.raw[:4]) else None

    return launch


def _open(path: str | os.PathLike[str]) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(os.fspath(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        version = ctypes.c_int.in_dll(library, "wp_abi").value
    except (OSError, ValueError) as error:
        raise ToolchainError(f"cannot load the compiled object {os.fspath(path)}: {error}") from error
    if version != ABI_VERSION:
        raise ToolchainError(f"{os.fspath(path)} was compiled for ABI {version}; this is ABI {ABI_VERSION}")
    return library


def _bind_host(library: ctypes.CDLL) -> Any:
    # The order of the table has its home in runtime.cpp, which exports it as text.
    address = _find_symbol(library, "wp_host_symbols")
    if address is None:
        raise ToolchainError("the runtime library does not say what it needs")
    names = ctypes.string_at(address).decode("ascii").split()
    process = ctypes.CDLL(None)
    table = _address_table(names, (ctypes.pythonapi, process))
    library.wp_host_bind(table)
    _reset_in_forked_children(library, process)
    return table


def _reset_in_forked_children(library: ctypes.CDLL, process: ctypes.CDLL) -> None:
    # The C library's own hook also sees forks that Python does not; where it is not exported Python's has to do.
    reset = ctypes.c_void_p(_find_symbol(library, "wp_reset_after_fork"))
    if _find_symbol(process, "__register_atfork"):
        process.__register_atfork(None, None, reset, None)
    elif _find_symbol(process, "pthread_atfork"):
        process.pthread_atfork(None, None, reset)
    else:
        os.register_at_fork(after_in_child=library.wp_reset_after_fork)


def _libm() -> ctypes.CDLL:
    for name in ("libm.so.6", "libm.so", "libSystem.B.dylib"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return ctypes.CDLL(None)


def _find_symbol(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(library, name))
    except ValueError:
        return None


def _address_table(names: Sequence[str], libraries: Sequence[ctypes.CDLL]) -> Any:
    found = []
    for name in names:
        addresses = (_find_symbol(library, name) for library in libraries)
        address = next((address for address in addresses if address is not None), None)
        if address is None:
            raise ToolchainError(f"the C library or interpreter of this process has no symbol {name!r}")
        found.append(address)
    return (ctypes.c_void_p * len(found))(*found)
