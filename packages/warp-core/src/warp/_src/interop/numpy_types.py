"""The correspondence of NumPy's types with Warp's."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.types.scalars import scalar_from
from warp.errors import ArgumentError


def dtype_from_numpy(numpy_dtype: Any) -> type:
    """Return the Warp scalar type of a NumPy data type, of either byte order.

    ArgumentError, a TypeError, if there is none.
    """
    try:
        dtype = np.dtype(numpy_dtype)
    except TypeError as error:
        raise ArgumentError(f"dtype_from_numpy: {numpy_dtype!r} is not a NumPy data type") from error
    scalar = scalar_from(dtype)
    if scalar is None:
        raise ArgumentError(f"dtype_from_numpy: NumPy type {dtype} has no counterpart in Warp")
    return scalar


def dtype_to_numpy(warp_dtype: Any) -> type:
    """Return the NumPy scalar type of a Warp scalar type, as `numpy.float32`.

    ArgumentError, a TypeError, if there is none.
    """
    scalar = scalar_from(warp_dtype)
    if scalar is None:
        name = getattr(warp_dtype, "name", warp_dtype)
        raise ArgumentError(f"dtype_to_numpy: {name} has no counterpart in NumPy; only scalar types have")
    found: type = scalar.dtype.type
    return found
