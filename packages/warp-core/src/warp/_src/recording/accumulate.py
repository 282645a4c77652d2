"""Arithmetic on gradients held in NumPy arrays, structured ones included."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.types.scalars import bfloat16
from warp._src.types.signature import is_array, is_differentiable, scalar_of
from warp._src.types.structs import StructType


def accumulate(target: np.ndarray[Any, Any], values: np.ndarray[Any, Any], dtype: Any) -> None:
    """Add `values` to `target` in every floating-point component; `dtype` is Warp's type of the elements."""
    if isinstance(dtype, StructType):
        for name, field in dtype.fields.items():
            accumulate(target[name], values[name], field)
    elif not is_array(dtype) and is_differentiable(dtype):
        with np.errstate(all="ignore"):
            if scalar_of(dtype) is bfloat16:
                target[...] = bfloat16.encode_array(bfloat16.decode_array(target) + bfloat16.decode_array(values))
            else:
                target += values


def clear(target: np.ndarray[Any, Any]) -> None:
    """Set every component to zero."""
    target[...] = np.zeros((), target.dtype)
