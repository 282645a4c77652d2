"""Functions that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.array.array import array
from warp._src.array.elements import (
    ElementLayout,
    dtype_of_value,
    element_layout,
    infer_tensor_dtype,
    normalise_shape,
    numpy_element,
)
from warp._src.array.memory import Values, allocate, allocate_strided
from warp._src.runtime.device import get_device
from warp.errors import ArgumentError


def zeros(
    shape: Any = None,
    dtype: Any = float,
    device: Any = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    *,
    strides: Any = None,
    length: int | None = None,
) -> array:
    """Return an array of zeros. `shape` is an int or a sequence of up to four; `strides` are in bytes."""
    element = element_layout(dtype)
    return _make(_new(shape, element, strides, length, True), element, device, requires_grad, pinned, retain_grad)


def empty(
    shape: Any = None,
    dtype: Any = float,
    device: Any = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    *,
    strides: Any = None,
    length: int | None = None,
) -> array:
    """Return an array with arbitrary contents."""
    element = element_layout(dtype)
    return _make(_new(shape, element, strides, length, False), element, device, requires_grad, pinned, retain_grad)


def full(
    shape: Any = None,
    value: Any = 0,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    *,
    strides: Any = None,
    length: int | None = None,
) -> array:
    """Return an array with every element set to `value`, which also gives the type by default."""
    element = element_layout(dtype_of_value(value) if dtype is None else dtype)
    values = _new(shape, element, strides, length, False)
    values[...] = numpy_element(element, value, "value")
    return _make(values, element, device, requires_grad, pinned, retain_grad)


def ones(
    shape: Any = None,
    dtype: Any = float,
    device: Any = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    *,
    strides: Any = None,
    length: int | None = None,
) -> array:
    """Return an array with every component of every element set to one."""
    return full(shape, 1, dtype, device, requires_grad, pinned, retain_grad, strides=strides, length=length)


def zeros_like(
    src: Any,
    device: Any = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return zeros of the type and shape of `src`, with a gradient if it has one."""
    return _make_like(src, allocate(*_like(src), True), device, requires_grad, pinned, retain_grad)


def empty_like(
    src: Any,
    device: Any = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return an array with arbitrary contents of the type and shape of `src`, with a gradient if it has one."""
    return _make_like(src, allocate(*_like(src), False), device, requires_grad, pinned, retain_grad)


def full_like(
    src: Any,
    value: Any,
    device: Any = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return an array of the type and shape of `src` filled with a value, with a gradient if `src` has one."""
    values = allocate(*_like(src), False)
    values[...] = numpy_element(src.element, value, "value")
    return _make_like(src, values, device, requires_grad, pinned, retain_grad)


def ones_like(
    src: Any,
    device: Any = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return ones of the type and shape of `src`, with a gradient if it has one."""
    return full_like(src, 1, device, requires_grad, pinned, retain_grad)


def from_numpy(
    arr: Any,
    dtype: Any = None,
    shape: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    retain_grad: bool = False,
) -> array:
    """Return a copy of a NumPy array.

    Without `dtype` and `shape`, two dimensions give vectors and three give matrices of NumPy's scalar type.
    """
    if not isinstance(arr, np.ndarray):
        raise ArgumentError(f"arr must be a NumPy array, got {type(arr).__qualname__}")
    if dtype is None:
        dtype = Any if shape is not None else infer_tensor_dtype(arr)
    made: array = array(
        arr, dtype=dtype, shape=shape, device=device, requires_grad=requires_grad, retain_grad=retain_grad
    )
    return made


def from_ptr(ptr: int, length: int | None = None, dtype: Any = float, shape: Any = None, device: Any = None) -> array:
    """Return an array around memory at an address, which the caller keeps alive."""
    made: array = array(ptr=ptr, dtype=dtype, shape=shape, length=None if shape is not None else length, device=device)
    return made


def _new(shape: Any, element: ElementLayout, strides: Any, length: int | None, zeroed: bool) -> Values:
    if shape is None:
        if length is None:
            raise ArgumentError("shape is missing")
        shape = length
    extents = (shape,) if type(shape) is int and shape >= 0 else normalise_shape(shape)
    if strides is None:
        return allocate(extents, element, zeroed)
    return allocate_strided(extents, normalise_shape(strides, "strides"), element)


def _make(
    values: Values, element: ElementLayout, device: Any, requires_grad: bool, pinned: bool, retain_grad: bool
) -> array:
    made = array.wrap(values, element, get_device(device), requires_grad)
    if pinned:
        made.pinned = True
    if retain_grad:
        made.retain_grad = True
    return made


def _like(src: Any) -> tuple[tuple[int, ...], ElementLayout]:
    source = getattr(src, "data", src)
    if not isinstance(source, array):
        raise ArgumentError(f"src must be a warp.array, got {type(src).__qualname__}")
    return src.shape, source.element


def _make_like(
    src: Any, values: Values, device: Any, requires_grad: bool | None, pinned: bool | None, retain_grad: bool
) -> array:
    return _make(
        values,
        getattr(src, "data", src).element,
        src.device if device is None else device,
        src.requires_grad if requires_grad is None else requires_grad,
        getattr(src, "pinned", False) if pinned is None else pinned,
        retain_grad,
    )
