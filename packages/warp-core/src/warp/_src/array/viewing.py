"""Seeing the memory of an array as elements of another type."""

from __future__ import annotations

import numpy as np

from warp._src.array.elements import ElementLayout
from warp._src.array.memory import ForeignMemory, Values, address_of, span, view_bytes
from warp.errors import ArgumentError


def reinterpret(values: Values, old: ElementLayout, new: ElementLayout) -> tuple[Values, ElementLayout]:
    """Return the memory of `values` as elements of `new`; ArgumentError if it does not divide up."""
    outer = values.ndim - len(old.shape)
    shape, strides = values.shape[:outer], values.strides[:outer]
    if new.size == old.size:
        return _as_elements(values, shape, strides, old, new), new
    if shape and new.size == shape[-1] * old.size and strides[-1] == old.size:
        return _as_elements(values, shape[:-1], strides[:-1], old, new), new
    if not new.shape and new.scalar == old.scalar:
        return values.view(), new
    raise ArgumentError(
        f"dtype: elements of {old.dtype.name} ({old.size} bytes) in shape {shape} cannot be seen as "
        f"{new.dtype.name} ({new.size} bytes)"
    )


def _as_elements(
    values: Values, shape: tuple[int, ...], strides: tuple[int, ...], old: ElementLayout, new: ElementLayout
) -> Values:
    if values.flags.c_contiguous:
        return view_bytes(values.reshape(-1).view(np.uint8), shape, strides, new)
    outer = values.ndim - len(old.shape)
    size = span(values.shape[:outer], values.strides[:outer], old.size)
    memory = ForeignMemory(address_of(values), size, values, None, not values.flags.writeable)
    return view_bytes(np.asarray(memory), shape, strides, new)
