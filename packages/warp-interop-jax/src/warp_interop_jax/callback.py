"""`register_ffi_callback`: a Python function as a target of `jax.ffi.ffi_call`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np

from warp.errors import ArgumentError, WarpError
from warp.plugins import Bridge, TensorMemory, derive
from warp.recording import recording
from warp_interop_jax.bridge import DTYPES_FROM
from warp_interop_jax.frame import EXECUTE, GRAPH_COMPATIBLE, Frame, attributes_of, buffers_of
from warp_interop_jax.handler import register_target

_HANDLER: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_CODES: Final = ((ValueError, 3), (TypeError, 3), (NotImplementedError, 12), (MemoryError, 8))
_INTERNAL: Final = 13
_lock: Final = threading.Lock()
_registered: Final[dict[str, list[Any]]] = {}
"""Handlers by name; compiled functions refer to them for as long as the process lives."""


@dataclass(frozen=True)
class Buffer:
    """Memory of JAX during a call, which kernels and NumPy take as it is: a read-only input, or an output."""

    pointer: int
    shape: tuple[int, ...]
    dtype: Any
    """NumPy's dtype."""
    device: str
    """Warp's name of the device."""
    is_writable: bool

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface("cpu")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface("cuda")

    def _interface(self, kind: str) -> dict[str, Any]:
        if not self.device.startswith(kind):
            raise AttributeError(f"the memory is on device {self.device!r}")
        # The only dtype that NumPy does not know, bfloat16, is the bits of one that it does.
        typestr = self.dtype.str if self.dtype.kind != "V" else f"<u{self.dtype.itemsize}"
        data = (self.pointer, not self.is_writable)
        return {"version": 3, "shape": self.shape, "typestr": typestr, "data": data, "strides": None}


@dataclass(frozen=True)
class CallContext:
    """Where a call runs."""

    device: str
    """Warp's name of the device."""
    stream: int | None
    """The handle of the CUDA stream to work on; None on the CPU."""


Callback = Callable[[list[Buffer], list[Buffer], dict[str, Any], CallContext], object]


def register_ffi_callback(name: str, func: Callback, graph_compatible: bool = True) -> None:
    """Make a Python function a target of `jax.ffi.ffi_call`, on the CPU and on CUDA devices.

    Args:
        name: The name to give to `jax.ffi.ffi_call`. JAX keeps it for the life of the process.
        func: Called as `func(inputs, outputs, attrs, ctx)`: lists of buffers that kernels and NumPy take, a dictionary
            of the attributes of the call, and a context with `device` and `stream`. What it raises becomes an error of
            the computation.
        graph_compatible: Whether a CUDA graph may capture what it does.

    The function must not wait for another computation of JAX. Raises ArgumentError if the name is taken.
    """
    if not callable(func):
        raise ArgumentError(f"func must be a function, got {type(func).__qualname__}")
    register_callback(name, func, graph_compatible)


def register_callback(name: str, func: Callback, graph_compatible: bool) -> None:
    """Register a handler for every platform there is, once."""
    with _lock:
        if name in _registered:
            raise ArgumentError(f"there is a callback {name!r} already; names cannot be used again")
        handlers = _registered[name] = []
        try:
            for platform in _platforms():
                traits = GRAPH_COMPATIBLE if graph_compatible and platform == "CUDA" else 0
                handlers.append(_HANDLER(_Handler(name, func, platform, traits)))
                register_target(name, ctypes.cast(handlers[-1], ctypes.c_void_p).value or 0, platform)
        except WarpError:
            del _registered[name]
            raise


def _platforms() -> list[str]:
    backends = {device.platform for device in jax.local_devices()}
    return ["cpu", "CUDA"] if backends & {"gpu", "cuda"} else ["cpu"]


class _Handler:
    """What XLA calls, from threads of its own; nothing may be raised."""

    def __init__(self, name: str, func: Callback, platform: str, traits: int) -> None:
        self._name = name
        self._func = func
        self._is_cpu = platform == "cpu"
        self._traits = traits

    def __call__(self, address: int) -> int | None:
        frame = Frame.from_address(address)
        try:
            if frame.answer_metadata(self._traits) or frame.stage != EXECUTE:
                return None
            self._run(frame)
        except BaseException as error:  # noqa: BLE001 - it becomes an error of XLA's, and goes no further
            code = next((code for kind, code in _CODES if isinstance(error, kind)), _INTERNAL)
            return frame.error(code, f"warp: callback {self._name!r}: {type(error).__name__}: {error}")
        return None

    def _run(self, frame: Frame) -> None:
        context = CallContext("cpu", None) if self._is_cpu else _cuda_context(frame)
        inputs = [Buffer(*found, context.device, False) for found in buffers_of(frame.inputs)]
        outputs = [Buffer(*found, context.device, True) for found in buffers_of(frame.results)]
        # JAX may call from the thread, and so on the tape, of the program.
        with recording(None):
            self._func(inputs, outputs, attributes_of(frame.attributes), context)


def _cuda_context(frame: Frame) -> CallContext:
    return CallContext(f"cuda:{frame.find_ordinal()}", frame.find_stream())


# ---------------------------------------------------------------------------------------------------- arrays


def _read(buffer: Buffer) -> TensorMemory:
    return TensorMemory(buffer.pointer, buffer.shape, None, buffer.dtype, buffer.device, buffer.is_writable)


def _no_tensor(_array: Any, _dtype: Any) -> Any:
    raise ArgumentError("a buffer of a call cannot be made")


_BUFFERS: Final = derive(
    Bridge(
        name="jax",
        tensor_types=(Buffer,),
        dtypes_from={np.dtype(kind): scalar for kind, scalar in DTYPES_FROM.items()},
        read=_read,
        make=_no_tensor,
        device_from=lambda device: device,
        device_to=lambda name: name,
    )
)


def array_of(buffer: Buffer, dtype: Any) -> Any:
    """Return a buffer as an array of the same memory with a type of elements."""
    return _BUFFERS["from_jax"](buffer, dtype)
