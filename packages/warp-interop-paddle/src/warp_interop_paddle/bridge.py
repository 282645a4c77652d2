"""Paddle as Warp sees it: dtypes, devices, memory, gradients and streams."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import paddle

import warp as wp
from warp.errors import ArgumentError
from warp.plugins import Bridge, Gradients, Streams, TensorMemory
from warp_interop_paddle import gradients, writes

DTYPES_FROM: Final[dict[Any, type]] = {
    paddle.float64: wp.float64,
    paddle.float32: wp.float32,
    paddle.float16: wp.float16,
    paddle.bfloat16: wp.bfloat16,
    paddle.int64: wp.int64,
    paddle.int32: wp.int32,
    paddle.int16: wp.int16,
    paddle.int8: wp.int8,
    paddle.uint8: wp.uint8,
    paddle.bool: wp.bool,
    # Tensors of these come from DLPack only.
    paddle.dtype.UINT16: wp.uint16,
    paddle.dtype.UINT32: wp.uint32,
    paddle.dtype.UINT64: wp.uint64,
}
"""Warp scalar types by dtype; complex numbers and float8 have none."""

# Hardly an operation of Paddle takes unsigned types of these widths.
_SIGNED: Final[dict[type, Any]] = {wp.uint16: wp.int16, wp.uint32: wp.int32, wp.uint64: wp.int64}
_SIGNED_NUMPY: Final = {np.dtype(np.uint32): np.int32, np.dtype(np.uint64): np.int64}
DTYPES_TO: Final[dict[type, Any]] = {
    wp.uint16: paddle.int16,
    wp.uint32: paddle.int32,
    wp.uint64: paddle.int64,
}

_to_dlpack: Final = paddle.utils.dlpack.to_dlpack
_empty: Final = paddle._C_ops.empty
_PLACES: Final = (paddle.base.core.Place, paddle.CPUPlace, paddle.CUDAPlace, paddle.CUDAPinnedPlace)
_CPU: Final = paddle.CPUPlace()
_GPU: Final = re.compile(r"(?:gpu|cuda)(?::(\d+))?")


# ---------------------------------------------------------------------------------------------------- memory


def read(tensor: Any) -> TensorMemory:
    """Return where a tensor's elements are. Raises ArgumentError for one that has no such memory."""
    if not tensor.is_dense():
        raise ArgumentError(
            "a sparse or distributed tensor has no memory that a kernel could use; convert it with to_dense(), or take "
            "its local part"
        )
    pointer = tensor.data_ptr()
    if not pointer and tensor.size:
        raise ArgumentError("the tensor's memory was released or never allocated (its address is 0)")
    place = tensor.place
    device = "cpu" if place.is_cpu_place() else place
    # Paddle empties a tensor that is cleared as a gradient, and every other of its memory; the capsule keeps that.
    owner = (tensor, _to_dlpack(tensor))
    return TensorMemory(pointer, tuple(tensor.shape), tuple(tensor.strides), tensor.dtype, device, True, owner)


def make(array: Any, dtype: Any) -> Any:
    """Return a tensor that shares the memory of an array. Raises ArgumentError for what Paddle has no tensor for."""
    if array.is_readonly:
        raise ArgumentError(f"{array!r} is read-only, and Paddle has no read-only tensors; pass a copy: wp.clone()")
    if any(stride < 0 for stride in array.strides):
        raise ArgumentError(f"{array!r} has negative strides, which Paddle does not support; call contiguous()")
    if array.device.is_cpu:
        values = array.numpy()
        return _make_on_cpu(values.view(np.int16) if dtype is paddle.int16 else values)
    signed = _SIGNED.get(array.dtype)
    tensor = paddle.utils.dlpack.from_dlpack(array if signed is None else array.view(signed))
    if tensor.dtype != dtype:
        raise ArgumentError(f"{array!r} has elements that Paddle has no tensor for")
    return tensor


def _make_on_cpu(values: Any) -> Any:
    """Return a tensor of the memory of a NumPy array, whose uint16 is bfloat16 to Paddle.

    Not by DLPack: Paddle holds a lock while it gives memory back, and the memory may be that of another tensor.
    """
    scalar = values.dtype
    if scalar in _SIGNED_NUMPY:
        values = values.view(_SIGNED_NUMPY[scalar])
    if values.flags.c_contiguous:
        return _share(values)
    size = scalar.itemsize
    if any(stride % size for stride in values.strides):
        raise ArgumentError("Paddle has no tensors whose strides are no multiples of an element; call contiguous()")
    steps = [stride // size for stride in values.strides]
    extent = 1 + sum((count - 1) * step for count, step in zip(values.shape, steps, strict=True))
    memory = np.lib.stride_tricks.as_strided(values, (extent,), (size,))
    return paddle.as_strided(_share(memory), list(values.shape), steps)


def _share(values: Any) -> Any:
    """Return a tensor of the memory of a NumPy array without gaps; `paddle.Tensor` takes four times as long."""
    tensor = _empty([0], paddle.float32, _CPU)
    tensor.value().get_tensor().set(values, _CPU, True)
    tensor.stop_gradient = True  # makes it one that can have a gradient
    return tensor


# ---------------------------------------------------------------------------------------------------- devices


def device_from(device: Any) -> str | None:
    """Return Warp's name of a place of Paddle or of its name, None if Warp has no such device.

    Pinned memory is on the CPU.
    """
    if isinstance(device, str):
        return _device_from_name(device)
    if not isinstance(device, _PLACES):
        raise ArgumentError(f"expected a Place of Paddle or the name of a device, got {type(device).__qualname__}")
    if isinstance(device, paddle.CUDAPinnedPlace) or device.is_cpu_place() or device.is_cuda_pinned_place():
        return "cpu"
    return f"cuda:{device.gpu_device_id()}" if device.is_gpu_place() else None


def _device_from_name(name: str) -> str | None:
    if name in ("cpu", "gpu_pinned"):
        return "cpu"
    match = _GPU.fullmatch(name)
    if match is None:
        return None
    if match[1] is None:  # the current one
        match = _GPU.fullmatch(paddle.device.get_device())
    return f"cuda:{match[1] or 0}" if match else "cuda:0"


def device_to(name: str) -> str | None:
    """Return Paddle's name of one of Warp's devices; None if this build of Paddle has no such devices."""
    if name == "cpu":
        return name
    return name.replace("cuda", "gpu") if paddle.is_compiled_with_cuda() else None


# ---------------------------------------------------------------------------------------------------- streams


def stream_handle(stream: Any) -> int:
    """Return the native handle of a stream."""
    return int(getattr(stream, "stream_base", stream).cuda_stream)


def stream_device(stream: Any) -> Any:
    """Return the place of a stream."""
    return getattr(stream, "stream_base", stream).place


BRIDGE: Final = Bridge(
    name="paddle",
    tensor_types=(paddle.Tensor,),
    dtypes_from=DTYPES_FROM,
    dtypes_to=DTYPES_TO,
    read=read,
    make=make,
    device_from=device_from,
    device_to=device_to,
    device_types=_PLACES,
    gradients=Gradients(
        is_required=lambda tensor: not tensor.stop_gradient,
        is_attachable=gradients.is_attachable,
        get=gradients.current,
        new=gradients.make_zeros,
        attach=gradients.attach,
    ),
    streams=Streams(
        types=(paddle.device.Stream, paddle.device.cuda.Stream, paddle.base.core.CUDAStream),
        current=paddle.device.current_stream,
        handle=stream_handle,
        device=stream_device,
        make=paddle.device.get_stream_from_external,
    ),
    on_write=writes.note_write,
    version=writes.version,
)
