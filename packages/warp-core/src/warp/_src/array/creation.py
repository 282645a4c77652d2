"""Functions that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.array.array import array
from warp._src.array.contents import Part, fill_part
from warp._src.array.elements import (
    ElementLayout,
    dtype_of_value,
    element_layout,
    infer_tensor_dtype,
    normalise_shape,
    numpy_element,
)
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
    return _make(shape, element_layout(dtype), strides, length, True, device, requires_grad, pinned, retain_grad)


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
    return _make(shape, element_layout(dtype), strides, length, False, device, requires_grad, pinned, retain_grad)


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
    filling = numpy_element(element, value, "value")
    made = _make(shape, element, strides, length, False, device, requires_grad, pinned, retain_grad)
    fill_part(Part(made), filling)
    return made


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
    return _make_like(src, True, device, requires_grad, pinned, retain_grad)


def empty_like(
    src: Any,
    device: Any = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return an array with arbitrary contents of the type and shape of `src`, with a gradient if it has one."""
    return _make_like(src, False, device, requires_grad, pinned, retain_grad)


def full_like(
    src: Any,
    value: Any,
    device: Any = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return an array of the type and shape of `src` filled with a value, with a gradient if `src` has one."""
    _, element = _like(src)
    filling = numpy_element(element, value, "value")
    made = _make_like(src, False, device, requires_grad, pinned, retain_grad)
    fill_part(Part(made), filling)
    return made


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


def _make(
    shape: Any,
    element: ElementLayout,
    strides: Any,
    length: int | None,
    zeroed: bool,
    device: Any,
    requires_grad: bool,
    pinned: bool,
    retain_grad: bool,
) -> array:
    if shape is None:
        if length is None:
            raise ArgumentError("shape is missing")
        shape = length
    extents = (shape,) if type(shape) is int and shape >= 0 else normalise_shape(shape)
    steps = None if strides is None else normalise_shape(strides, "strides")
    made = array.new(extents, element, get_device(device), zeroed, steps, pinned)
    if requires_grad:
        made._requires_grad = True
    if retain_grad:
        made.retain_grad = True
    return made


def _like(src: Any) -> tuple[tuple[int, ...], ElementLayout]:
    source = getattr(src, "data", src)
    if not isinstance(source, array):
        raise ArgumentError(f"src must be a warp.array, got {type(src).__qualname__}")
    return src.shape, source.element


def _make_like(
    src: Any, zeroed: bool, device: Any, requires_grad: bool | None, pinned: bool | None, retain_grad: bool
) -> array:
    shape, element = _like(src)
    return _make(
        shape,
        element,
        None,
        None,
        zeroed,
        src.device if device is None else device,
        src.requires_grad if requires_grad is None else requires_grad,
        getattr(src, "pinned", False) if pinned is None else pinned,
        retain_grad,
    )
