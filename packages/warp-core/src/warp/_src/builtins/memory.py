"""Builtins about memory: the shape of an array, the bits of a value."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from warp._src.builtins.declare import NonDifferentiable, builtin
from warp._src.builtins.patterns import T, X
from warp._src.types.scalars import int32, int64, uint64

GROUP = "Arrays"
W = TypeVar("W", int32, int64)


@builtin(
    cpp="(int32)({array}).shape[{dimension}]",
    adjoint=NonDifferentiable("a shape is an integer"),
    reference=lambda array, dimension: np.int32(array.shape[int(dimension)]),
    group=GROUP,
    bounded=True,
    internal=True,
)
def array_shape(array: T, dimension: int32) -> int32:
    """Give the extent of an array in one dimension."""


@builtin(
    cpp="({index} < 0 && {index} + ({extent}) >= 0 ? {index} + ({extent}) : {index})",
    adjoint=NonDifferentiable("an index is an integer"),
    reference=lambda index, extent: index + type(index)(extent) if -int(extent) <= int(index) < 0 else index,
    group=GROUP,
    bounded=True,
    internal=True,
)
def index_from_start(index: W, extent: int32) -> W:
    """Count a negative index into an axis of `extent` elements from its end; what is out of bounds stays as it is."""


@builtin(
    cpp="(int32)wp::array_stride({array}, {dimension})",
    adjoint=NonDifferentiable("a stride is an integer"),
    reference=lambda array, dimension: np.int32(array.primal.strides[int(dimension)]),
    group=GROUP,
    bounded=True,
    internal=True,
)
def array_stride(array: T, dimension: int32) -> int32:
    """Give the bytes from one element of an array to the next in one dimension."""


@builtin(
    cpp="wp::array_ptr({array})",
    adjoint=NonDifferentiable("an address is an integer"),
    reference=lambda array: np.uint64(array.primal.__array_interface__["data"][0]),
    group=GROUP,
    bounded=True,
    internal=True,
)
def array_ptr(array: T) -> uint64:
    """Give the address of the first element of an array."""


def _bit_cast(value: Any, like: Any) -> Any:
    data = np.asarray(value).tobytes()
    found = np.frombuffer(data, dtype=np.asarray(like).dtype).reshape(np.shape(like)).copy()
    return found if found.ndim else found[()]


@builtin(
    cpp="wp::bit_cast<{X}>({value})",
    adjoint=NonDifferentiable("reinterprets bits"),
    reference=_bit_cast,
    group=GROUP,
    bounded=True,
    internal=True,
)
def bit_cast(value: T, like: X) -> X:
    """Reinterpret the bits of a value as the type of `like`, which has the same size."""


def _array_at(address: Any, _: Any, ndim: Any, *rest: Any) -> Any:
    *extents, like = rest
    shape = tuple(int(extent) for extent in extents[: int(ndim)])
    inner = like.primal.shape[int(ndim) :]
    dtype = like.primal.dtype
    count = int(np.prod(shape)) * int(np.prod(inner, dtype=int))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(address))
    return replace(like, primal=np.frombuffer(memory, dtype).reshape(*shape, *inner))


@builtin(
    cpp="wp::array_at({address}, {size}, {ndim}, {a}, {b}, {c}, {d})",
    adjoint=NonDifferentiable("memory at an address has no gradient"),
    reference=_array_at,
    group=GROUP,
    bounded=True,
    internal=True,
)
def array_at(address: uint64, size: int32, ndim: int32, a: int32, b: int32, c: int32, d: int32, like: X) -> X:
    """Make an array of the memory at an address, row by row, with elements of `size` bytes; it has no gradient."""


__all__ = ["GROUP", "array_at", "array_ptr", "array_shape", "array_stride", "index_from_start"]
