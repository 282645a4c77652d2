"""Runs emitted kernels without the launcher: packs arguments by hand and calls the entry point through ctypes."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit import ir_programs

from warp._src import build
from warp._src.build import LIBM
from warp._src.build.libm import libm_header
from warp._src.emit.cpp import emit_kernel
from warp._src.emit.options import EmitOptions
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value

ARENA_SIZE = 1 << 20
FAMILIES = {compiler.family: compiler for compiler in build.available_compilers()}
each_compiler = pytest.mark.parametrize("compiler", [FAMILIES[name] for name in sorted(FAMILIES)], ids=sorted(FAMILIES))


class Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("grad", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * 4),
        ("strides", ctypes.c_int64 * 4),
        ("grad_strides", ctypes.c_int64 * 4),
        ("ndim", ctypes.c_int32),
        ("flags", ctypes.c_int32),
    )


class IndexedArray(ctypes.Structure):
    _fields_ = (("base", Array), ("indices", ctypes.c_void_p * 4), ("shape", ctypes.c_int64 * 4))


class Fault(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("item", ctypes.c_int64),
        ("index", ctypes.c_int64),
        ("extent", ctypes.c_int64),
        ("value", ctypes.c_double),
        ("axis", ctypes.c_int32),
        ("name", ctypes.c_char * 36),
    )


class Launch(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_int64),
        ("dim", ctypes.c_int64 * 4),
        ("ndim", ctypes.c_int32),
        ("flags", ctypes.c_int32),
        ("fault", ctypes.c_void_p),
        ("record", ctypes.c_void_p),
        ("record_size", ctypes.c_int64),
        ("slots", ctypes.c_int64),
    )


class Worker(ctypes.Structure):
    _fields_ = (
        ("arena", ctypes.c_void_p),
        ("arena_size", ctypes.c_int64),
        ("index", ctypes.c_int32),
        ("pad", ctypes.c_int32),
    )


def describe(data: np.ndarray, grad: np.ndarray | None = None, ndim: int | None = None) -> Array:
    """Give the descriptor of an array; trailing axes beyond `ndim` belong to the element."""
    ndim = data.ndim if ndim is None else ndim
    shape, strides = list(data.shape[:ndim]), list(data.strides[:ndim])
    grad_strides = [0] * ndim if grad is None else list(grad.strides[:ndim])
    pad = 4 - ndim
    return Array(
        data.ctypes.data,
        None if grad is None else grad.ctypes.data,
        (ctypes.c_int64 * 4)(*shape, *[1] * pad),
        (ctypes.c_int64 * 4)(*strides, *[0] * pad),
        (ctypes.c_int64 * 4)(*grad_strides, *[0] * pad),
        ndim,
        0,
    )


class Compiled:
    """A kernel compiled by one compiler."""

    def __init__(self, function: Function, compiler: build.Compiler, **options: Any) -> None:
        chosen = EmitOptions(libm=libm_header(), **options)
        self.text = emit_kernel(function, chosen)
        self.library = ctypes.CDLL(str(build.build_object(self.text, compiler=compiler)))
        self.entry = getattr(self.library, chosen.entry)
        self.entry.restype = None
        self.entry.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        libc = ctypes.CDLL("libm.so.6"), ctypes.CDLL(None)
        addresses = (ctypes.c_void_p * len(LIBM))(*[_address(libc, name) for name in LIBM])
        self.library.wp_bind(addresses)

    def __call__(
        self, dim: Sequence[int], *args: Any, slots: int = 0, chunks: int = 1, arena_size: int = ARENA_SIZE
    ) -> Fault:
        """Run every work item in `chunks` pieces; gives the fault, of kind 0 if there was none."""
        size = int(np.prod(dim))
        fault = Fault()
        pad = [1] * (4 - len(dim))
        launch = Launch(size, (ctypes.c_int64 * 4)(*dim, *pad), len(dim), 0, ctypes.addressof(fault), None, 0, slots)
        arena = ctypes.create_string_buffer(arena_size + 64)
        arena.raw = b"\xff" * (arena_size + 64)
        worker = Worker((ctypes.addressof(arena) + 63) // 64 * 64, arena_size, 0, 0)
        packed = pack(args)
        bounds = [size * index // chunks for index in range(chunks + 1)]
        for begin, end in itertools.pairwise(bounds):
            self.entry(begin, end, ctypes.addressof(launch), packed, ctypes.addressof(worker))
        return fault


def make(types: Sequence[Any], body: Callable[..., object]) -> Function:
    """Build a kernel by `body(builder, *parameters)`."""
    return ir_programs.kernel(types, lambda builder, params: body(builder, *params))


def region(builder: Builder, types: Sequence[Any], body: Callable[..., Sequence[Value]]) -> Region:
    """Build a region by `body(*arguments)`, which gives what the region yields."""
    return ir_programs.region(builder, types, lambda _, args: body(*args))


def saxpy(builder: Builder, a: Value, x: Value, y: Value) -> None:
    (i,) = builder.thread_index(1)
    product = ir_programs.call(builder, "mul", a, builder.load(x, (i,)))
    builder.store(y, ir_programs.call(builder, "add", product, builder.load(y, (i,))), (i,))


def pack(args: Sequence[Any]) -> bytes:
    """Lay arguments out as a C struct: ctypes structures, NumPy scalars, or records."""
    data = b""
    for arg in args:
        is_structure = isinstance(arg, ctypes.Structure)
        alignment = ctypes.alignment(arg) if is_structure else np.dtype(arg.dtype.base).alignment
        data += bytes(-len(data) % alignment)
        data += bytes(arg) if is_structure else arg.tobytes()
    return data


def _address(libraries: Sequence[ctypes.CDLL], name: str) -> int:
    for library in libraries:
        if hasattr(library, name):
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    raise LookupError(name)
