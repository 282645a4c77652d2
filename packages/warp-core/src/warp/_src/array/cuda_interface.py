"""The CUDA array interface: arrays of CuPy, Numba and others in the memory of a CUDA device, and ours for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warp._src.array.contents import use_on
from warp._src.array.convert import split_elements
from warp._src.array.elements import ElementLayout, element_layout, infer_element_layout
from warp._src.array.memory import values_at
from warp._src.runtime.cuda import CudaDevice, find_owner
from warp._src.runtime.device import Device
from warp._src.runtime.stream import Stream, get_stream
from warp.errors import ArgumentError

if TYPE_CHECKING:
    from warp._src.array.array import array

_FUNCTION: Final = "__cuda_array_interface__"
_VERSION: Final = 3


def describe(source: array) -> dict[str, Any]:
    """Return the interface of an array on a CUDA device; consumers wait for its current stream."""
    device = source.device
    assert isinstance(device, CudaDevice)
    stream = use_on(device, (source,))
    values = source._values
    return {
        "version": _VERSION,
        "data": (source.ptr, source.is_readonly),
        "shape": values.shape,
        "strides": None if source.is_contiguous else values.strides,
        "typestr": values.dtype.str,
        "descr": values.dtype.descr if values.dtype.names is not None else [("", values.dtype.str)],
        "stream": stream.handle,
    }


def read(kind: type[array], source: Any, dtype: Any, device: Device | None = None) -> array:
    """Return an array of the memory that an object with `__cuda_array_interface__` describes.

    The current stream of the memory's device waits for the object's stream. `dtype` is typing.Any for the source's own
    type, `device` None for the one that the driver names. ArgumentError for masks, byte orders and types that Warp does
    not have; DeviceError if there is no device.
    """
    interface = source.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ArgumentError(f"{_FUNCTION}: arrays with a mask are not supported")
    scalar = np.dtype(interface["typestr"])
    if scalar.newbyteorder("=") != scalar:
        raise ArgumentError(f"{_FUNCTION}: the elements {interface['typestr']!r} are not in this machine's byte order")
    element = _element(scalar, dtype)
    address, readonly = interface["data"]
    place = find_owner(address) if device is None else device
    if isinstance(place, CudaDevice):
        _wait_for(place, interface.get("stream"))
    strides = interface.get("strides")
    strides = None if strides is None else tuple(strides)
    values = values_at(address, tuple(interface["shape"]), strides, element.scalar, source, readonly)
    try:
        values = split_elements(values, element, None)
    except ArgumentError as error:
        raise ArgumentError(f"{_FUNCTION}: {error}") from None
    made = kind.wrap(values, element, place)
    made.owner = source
    return made


def _element(scalar: np.dtype[Any], dtype: Any) -> ElementLayout:
    if dtype is Any:
        return infer_element_layout(np.empty(0, scalar))
    element = element_layout(dtype)
    is_integer_view = {element.scalar.kind, scalar.kind} <= set("iubV") and element.scalar.itemsize == scalar.itemsize
    if element.scalar != scalar and not is_integer_view:
        name = element.dtype.name
        raise ArgumentError(
            f"{_FUNCTION}: dtype={name} does not fit elements of type {scalar}; they would be converted"
        )
    return element


def _wait_for(device: CudaDevice, handle: int | None) -> None:
    """Let the current stream of a device wait for the stream on which a producer has written."""
    if handle is not None and handle != get_stream(device).handle:
        get_stream(device).wait_stream(Stream(device, cuda_stream=handle))
