"""Arithmetic on gradients held in NumPy arrays, structured ones included."""

from __future__ import annotations

from typing import Any

import numpy as np


def accumulate(target: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
    """Add `values` to `target` in every floating-point component."""
    if target.dtype.names is not None:
        for name in target.dtype.names:
            accumulate(target[name], values[name])
    elif target.dtype.kind == "f":
        target += values


def clear(target: np.ndarray[Any, Any]) -> None:
    """Set every component to zero."""
    target[...] = np.zeros((), target.dtype)
