"""Whatever shares its memory, as an argument of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.array import cuda_interface
from warp._src.array.array import array
from warp._src.array.deferred import ArrayDescriptor
from warp._src.interop.dlpack import from_dlpack
from warp._src.plugin_host import array_adapter
from warp._src.runtime.device import Device
from warp.errors import ArgumentError


def adapt(value: Any, device: Device) -> array | np.ndarray[Any, Any] | None:
    """Return a foreign array as one of the same memory; None if `value` is none or may not share its memory.

    Asked in this order: NumPy arrays, plugins, the CUDA array interface, the array interface, DLPack, buffers.
    """
    if isinstance(value, (array, np.ndarray)):
        return value
    if isinstance(value, ArrayDescriptor):
        return value.as_array()
    adapter = array_adapter(value.__class__)
    if adapter is not None:
        adapted: array = adapter(value)
        return adapted
    if hasattr(value, "__cuda_array_interface__"):
        if not device.is_cuda:
            raise ArgumentError(f"the array is on device 'cuda', the launch on '{device}'")
        return cuda_interface.read(array, value, Any)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    return _from_buffer(value)


def copied(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the values of an object that has only `__array__`, whose memory need not be shared; None if none."""
    return np.asarray(value) if hasattr(value, "__array__") else None


def _from_buffer(value: Any) -> np.ndarray[Any, Any] | None:
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        return None
