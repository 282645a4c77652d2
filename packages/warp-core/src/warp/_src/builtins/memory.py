"""Builtins that ask an array for its shape."""

from __future__ import annotations

import numpy as np

from warp._src.builtins.declare import NonDifferentiable, builtin
from warp._src.builtins.patterns import T
from warp._src.types.scalars import int32

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


__all__ = ["GROUP", "array_shape"]
