"""Runs batches of kernels on packed arguments: those for the CPU, and those for CUDA through the shim of threads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.builtins.native_calls import _address
from tests.cuda.kernels import COUNT, Case
from tests.device.emitted import Fault, Launch, Worker, describe

from warp._src import build
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import is_scalar
from warp._src.types.signature import align_of, size_of

ARENA = 1 << 20
PLACES = 1 << 12  # bytes per work item that may be recorded, and as many in the stream


class Record(ctypes.Structure):
    _fields_ = (
        ("places", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("used", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("missing", ctypes.c_int64),
        ("is_full", ctypes.c_int32),
        ("pad", ctypes.c_int32),
    )


class Arguments:
    """Arguments of a case with gradients, the same for every instance."""

    def __init__(self, case: Case) -> None:
        random = np.random.default_rng(5)
        self.types = [type for _, type in case.kernel.parameters]
        self.shape = case.shape
        self.size = int(np.prod(case.shape))
        self.arrays: list[Any] = []
        self.packed = self._pack(self.types, case.arguments(random), random)
        self.memory = [
            np.zeros(self.size * PLACES // 8),
            np.zeros(self.size, np.int64),
            np.zeros(self.size * PLACES // 8),
        ]
        places, starts, stream = (block.ctypes.data for block in self.memory)
        self.record = Record(places, starts, stream, 0, self.memory[2].nbytes, 0, 1, 0)
        self.fault = Fault()

    def launch(self, slots: int = 0) -> Launch:
        """Describe the launch; the record's stream is empty again."""
        self.record.used = 0
        dim = (ctypes.c_int64 * 4)(*self.shape, *[1] * (4 - len(self.shape)))
        pointers = ctypes.addressof(self.fault), ctypes.addressof(self.record)
        return Launch(self.size, dim, len(self.shape), 0, *pointers, 0, slots)

    def _pack(self, types: Sequence[Any], values: Sequence[Any], random: np.random.Generator) -> bytes:
        data = b""
        for type, value in zip(types, values, strict=True):
            data += bytes(-len(data) % align_of(type)) + self._bytes_of(type, value, random)
        return data

    def _bytes_of(self, type: Any, value: Any, random: np.random.Generator) -> bytes:
        if isinstance(type, ArrayType):
            gradient = _noise(value, random)
            self.arrays += [value, gradient]
            return bytes(describe(value, gradient, type.ndim))
        if isinstance(value, dict):
            data = self._pack(list(type.fields.values()), list(value.values()), random)
            return data + bytes(size_of(type) - len(data))
        scalar = type if is_scalar(type) else type.scalar
        return np.asarray(value, dtype=scalar.dtype).tobytes()


def _noise(like: Any, random: np.random.Generator) -> Any:
    """Give a gradient for an array: random numbers where it has floats."""
    result = np.zeros_like(like)
    if like.dtype.names:
        for name in like.dtype.names:
            result[name] = _noise(like[name], random)
    elif like.dtype.kind == "f":
        result[...] = random.uniform(-1, 1, like.shape)
    return result


def load(source: str, compiler: build.Compiler) -> ctypes.CDLL:
    """Compile and load a batch."""
    library = ctypes.CDLL(str(build.build_object(source, compiler=compiler)))
    symbols = (ctypes.CDLL("libm.so.6"), ctypes.CDLL(None))
    library.wp_bind((ctypes.c_void_p * len(build.LIBM))(*[_address(name, symbols) for name in build.LIBM]))
    return library


def run_cpu(library: ctypes.CDLL, name: str, arguments: Arguments) -> None:
    """Run a kernel of `batches.cpp_text`."""
    arena = (ctypes.c_int64 * (ARENA // 8 + 8))()
    worker = Worker((ctypes.addressof(arena) + 63) // 64 * 64, ARENA, 0, 0)
    size = ctypes.c_int64(arguments.size)
    library[name](ctypes.c_int64(0), size, ctypes.byref(arguments.launch()), arguments.packed, ctypes.byref(worker))


def run_hosted(library: ctypes.CDLL, name: str, arguments: Arguments, grid: int, block: int, slots: int) -> None:
    """Run a kernel of `batches.hosted_text` over a grid of blocks."""
    library[name](grid, block, ctypes.byref(arguments.launch(slots)), arguments.packed)


__all__ = ["COUNT", "Arguments", "load", "run_cpu", "run_hosted"]
