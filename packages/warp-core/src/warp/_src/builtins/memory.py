"""Builtins about memory: the shape of an array, the bits of a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.builtins.declare import NonDifferentiable, builtin
from warp._src.builtins.patterns import T, X
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


__all__ = ["GROUP", "array_ptr", "array_shape", "array_stride"]
