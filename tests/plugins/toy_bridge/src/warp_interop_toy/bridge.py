"""The toy framework as Warp sees it."""

from __future__ import annotations

from typing import Any

import toy

import warp as wp
from warp.plugins import Bridge, Gradients, TensorMemory


def read(tensor: toy.Tensor) -> TensorMemory:
    """Return where the elements of a tensor are."""
    return TensorMemory(tensor.address, tensor.shape, tensor.strides, tensor.dtype, tensor.place)


def make(array: Any, dtype: toy.DType) -> toy.Tensor:
    """Return a tensor of the memory of a Warp array; vectors and matrices are trailing dimensions of its values."""
    values = array.numpy()
    strides = [stride // dtype.size for stride in values.strides]
    return toy.Tensor(array.ptr, values.shape, strides, dtype, array)


def attach(tensor: toy.Tensor, gradient: toy.Tensor) -> None:
    """Make a tensor the gradient of another."""
    tensor.needs_gradient, tensor.gradient = True, gradient


BRIDGE = Bridge(
    name="toy",
    tensor_types=(toy.Tensor,),
    dtypes_from={
        toy.float32: wp.float32,
        toy.float64: wp.float64,
        toy.int16: wp.int16,
        toy.int32: wp.int32,
        toy.int64: wp.int64,
        toy.truth: wp.bool,
    },
    dtypes_to={wp.uint32: toy.int32},
    read=read,
    make=make,
    device_types=(toy.Place,),
    device_from=lambda place: "cpu" if place in (toy.HOST, "host") else None,
    device_to=lambda name: toy.HOST if name == "cpu" else None,
    gradients=Gradients(
        is_required=lambda tensor: tensor.needs_gradient,
        is_attachable=lambda tensor: tensor.dtype.name.startswith("float"),
        get=lambda tensor: tensor.gradient,
        new=toy.zeros_like,
        attach=attach,
    ),
)
