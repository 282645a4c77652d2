"""PyTorch as Warp sees it: dtypes, devices, memory, gradients and streams."""

from __future__ import annotations

from typing import Any, Final

import torch

import warp as wp
from warp.errors import ArgumentError
from warp.plugins import Bridge, Gradients, Streams
from warp_interop_torch.tensors import read

DTYPES_FROM: Final[dict[Any, type]] = {
    torch.float64: wp.float64,
    torch.float32: wp.float32,
    torch.float16: wp.float16,
    torch.bfloat16: wp.bfloat16,
    torch.int64: wp.int64,
    torch.int32: wp.int32,
    torch.int16: wp.int16,
    torch.int8: wp.int8,
    torch.uint8: wp.uint8,
    torch.uint16: wp.uint16,
    torch.uint32: wp.uint32,
    torch.uint64: wp.uint64,
    torch.bool: wp.bool,
}
"""Warp scalar types by dtype; complex and quantized numbers have none."""

# Few operations of PyTorch take its own unsigned types of these widths.
DTYPES_TO: Final[dict[type, Any]] = {wp.uint16: torch.int16, wp.uint32: torch.int32, wp.uint64: torch.int64}


def make(array: Any, dtype: Any) -> Any:
    """Return a tensor that shares the memory of an array. Raises ArgumentError for what PyTorch has no tensor for."""
    if array.is_readonly:
        raise ArgumentError(f"{array!r} is read-only, and PyTorch has no read-only tensors; pass a copy: wp.clone()")
    if any(stride < 0 for stride in array.strides):
        raise ArgumentError(f"{array!r} has negative strides, which PyTorch does not support; call contiguous()")
    tensor = torch.from_numpy(array.numpy()) if array.device.is_cpu else torch.from_dlpack(array)
    return tensor if tensor.dtype is dtype else tensor.view(dtype)


def device_from(device: Any) -> str | None:
    """Return Warp's name of a device of PyTorch, None if Warp has no such device."""
    if not isinstance(device, (torch.device, str)):
        raise ArgumentError(f"expected a torch.device or its name, got {type(device).__qualname__}")
    place = torch.device(device)
    if place.type != "cuda":
        return "cpu" if place.type == "cpu" else None
    index = torch.cuda.current_device() if place.index is None and torch.cuda.is_available() else place.index
    return f"cuda:{index or 0}"


def device_to(name: str) -> str:
    """Return PyTorch's name of one of Warp's devices, which is the same."""
    return name


def version(tensor: Any) -> tuple[int, int] | None:
    """Return the address of a tensor's storage and the count of writes to it; tensors of inference mode have none."""
    return None if tensor.is_inference() else (tensor.untyped_storage().data_ptr(), tensor._version)


# ---------------------------------------------------------------------------------------------------- gradients


def is_attachable(tensor: Any) -> bool:
    """Tell whether Warp may share `tensor.grad`.

    Inside the forward function of an operator differentiation is off, and autograd itself adds what the backward
    function returns to `.grad`: a buffer shared there would be counted twice.
    """
    return bool(torch.is_grad_enabled() and tensor.is_leaf and tensor.dtype.is_floating_point)


def new_gradient(tensor: Any) -> Any:
    """Return zeros like a tensor, with its strides where elements do not share memory."""
    return torch.zeros_like(tensor.detach())


def attach(tensor: Any, gradient: Any) -> None:
    """Make a tensor the gradient of another."""
    tensor.grad = gradient


# ---------------------------------------------------------------------------------------------------- streams


def make_stream(handle: int, device: Any) -> Any:
    """Return a stream for a native handle."""
    return torch.cuda.ExternalStream(handle, torch.device(device))


BRIDGE: Final = Bridge(
    name="torch",
    tensor_types=(torch.Tensor,),
    dtypes_from=DTYPES_FROM,
    dtypes_to=DTYPES_TO,
    read=read,
    make=make,
    device_from=device_from,
    device_to=device_to,
    device_types=(torch.device,),
    gradients=Gradients(
        is_required=lambda tensor: bool(tensor.requires_grad),
        is_attachable=is_attachable,
        get=lambda tensor: tensor.grad,
        new=new_gradient,
        attach=attach,
    ),
    streams=Streams(
        types=(torch.Stream, torch.cuda.Stream),
        current=torch.cuda.current_stream,
        handle=lambda stream: int(stream.cuda_stream),
        device=lambda stream: stream.device,
        make=make_stream,
    ),
    # Autograd then refuses to use values saved before.
    on_write=torch.autograd.graph.increment_version,
    version=version,
)
