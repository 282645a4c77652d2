"""Builtins that ask an array for its shape."""

from __future__ import annotations

import numpy as np

from warp._src.builtins.declare import NonDifferentiable, builtin
from warp._src.builtins.patterns import T
from warp._src.types.scalars import int32, uint64

GROUP = "Arrays"


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


__all__ = ["GROUP", "array_ptr", "array_shape", "array_stride"]
