"""Apache Arrow as Warp sees it: arrays of numbers, which are read-only and without gaps, and tensors with strides."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import warp as wp
from warp.plugins import Bridge, TensorMemory

DTYPES = {
    pa.int8(): wp.int8,
    pa.int16(): wp.int16,
    pa.int32(): wp.int32,
    pa.int64(): wp.int64,
    pa.uint8(): wp.uint8,
    pa.uint16(): wp.uint16,
    pa.uint32(): wp.uint32,
    pa.uint64(): wp.uint64,
    pa.float16(): wp.float16,
    pa.float32(): wp.float32,
    pa.float64(): wp.float64,
}
"""Warp's types by Arrow's. Arrow packs eight booleans into a byte, so they have none."""


def read(data: Any) -> TensorMemory:
    """Return where the elements are. Raises TypeError for an array with nulls, whose memory holds no numbers there."""
    return _read_tensor(data) if isinstance(data, pa.Tensor) else _read_array(data)


def _read_tensor(tensor: Any) -> TensorMemory:
    values = tensor.to_numpy()  # the same memory
    size = tensor.type.bit_width // 8
    address = values.__array_interface__["data"][0]
    strides = tuple(stride // size for stride in tensor.strides)
    return TensorMemory(address, tuple(tensor.shape), strides, tensor.type, "cpu", tensor.is_mutable)


def _read_array(array: Any) -> TensorMemory:
    if array.null_count:
        raise TypeError(f"from_pyarrow: the array has {array.null_count} nulls; fill them first")
    if array.type not in DTYPES:
        return TensorMemory(0, (0,), None, array.type, "cpu")  # refused for its type
    size = array.type.bit_width // 8
    address = array.buffers()[1].address + array.offset * size if len(array) else 0
    return TensorMemory(address, (len(array),), None, array.type, "cpu", is_writable=False)


def make(array: Any, _dtype: Any) -> Any:
    """Return a tensor of the memory of a Warp array, which it keeps alive."""
    return pa.Tensor.from_numpy(array.numpy())


BRIDGE = Bridge(
    name="pyarrow",
    tensor_types=(pa.Tensor, pa.Array),
    dtypes_from=DTYPES,
    read=read,
    make=make,
    device_from=lambda device: "cpu" if device == "cpu" else None,
    device_to=lambda name: name if name == "cpu" else None,
)
