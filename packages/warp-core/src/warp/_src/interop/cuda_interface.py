"""The CUDA array interface: arrays of CuPy, Numba and others in the memory of a CUDA device."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from warp._src.array.array import array
from warp._src.array.elements import element_layout, infer_element_layout
from warp._src.array.memory import values_at
from warp._src.interop.elements import as_elements, element_for
from warp._src.runtime.device import Device
from warp.errors import ArgumentError

_FUNCTION: Final = "__cuda_array_interface__"


def from_cuda_interface(source: Any, dtype: Any, device: Device) -> array:
    """Return an array of the memory on `device` that an object with `__cuda_array_interface__` describes.

    `dtype` is typing.Any for the source's own type. ArgumentError for masks, byte orders and types Warp does not have.
    """
    interface = source.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ArgumentError(f"{_FUNCTION}: arrays with a mask are not supported")
    scalar = np.dtype(interface["typestr"])
    if scalar.newbyteorder("=") != scalar:
        raise ArgumentError(f"{_FUNCTION}: the elements {interface['typestr']!r} are not in this machine's byte order")
    if dtype is Any:
        element = infer_element_layout(np.empty(0, scalar))
    else:
        element = element_for(_FUNCTION, element_layout(dtype).dtype, scalar, scalar)
    address, readonly = interface["data"]
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    strides = None if strides is None else tuple(strides)
    values = values_at(address, shape, strides, element.scalar, source, readonly)
    made = array.wrap(as_elements(_FUNCTION, values, element), element, device)
    made.owner = source
    return made
