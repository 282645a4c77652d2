"""JAX as Warp sees it: dtypes, devices and memory."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import warp as wp
from warp.errors import ArgumentError
from warp.plugins import Bridge, TensorMemory

_ALIGNMENT: Final = 64
_KINDS: Final = {
    jnp.float64: wp.float64,
    jnp.float32: wp.float32,
    jnp.float16: wp.float16,
    jnp.bfloat16: wp.bfloat16,
    jnp.int64: wp.int64,
    jnp.int32: wp.int32,
    jnp.int16: wp.int16,
    jnp.int8: wp.int8,
    jnp.uint8: wp.uint8,
    jnp.uint16: wp.uint16,
    jnp.uint32: wp.uint32,
    jnp.uint64: wp.uint64,
    jnp.bool_: wp.bool,
}

DTYPES_FROM: Final[dict[Any, type]] = {**_KINDS, **{np.dtype(kind): scalar for kind, scalar in _KINDS.items()}}
"""Warp scalar types by JAX's scalar types and by the dtypes of its arrays; complex and 8-bit floats have none."""


def read(array: Any) -> TensorMemory:
    """Return where the elements of an array are, which may not be written.

    Raises ArgumentError for an array that is traced, deleted, or spread over several devices: it says what to do.
    """
    if isinstance(array, jax.core.Tracer):
        raise ArgumentError(
            "the array is traced by a transformation of JAX (jit, grad, vmap ...) and has no memory that a kernel "
            "could use; call the kernel through warp.jax_kernel or warp.jax_callable"
        )
    if array.is_deleted():
        raise ArgumentError("the array was deleted or donated, so its memory belongs to another one")
    devices = array.devices()
    if len(devices) != 1:
        raise ArgumentError(
            f"the array is spread over {len(devices)} devices; pass one of its addressable_shards, or use jax_kernel "
            "in jax.shard_map"
        )
    array.block_until_ready()
    # An array without elements has no memory.
    pointer = array.unsafe_buffer_pointer() if array.size else 0
    return TensorMemory(pointer, tuple(array.shape), None, array.dtype, next(iter(devices)), is_writable=False)


def make(array: Any, dtype: Any) -> Any:
    """Return an array of JAX that shares memory. Raises ArgumentError where JAX could only make a copy."""
    if not array.is_contiguous:
        raise ArgumentError(f"{array!r} has gaps or another order of dimensions; JAX needs contiguous() of it")
    if array.size and (array.ptr or 0) % _ALIGNMENT:
        raise ArgumentError(
            f"{array!r} does not begin at a multiple of {_ALIGNMENT} bytes, which JAX needs to share memory; pass a "
            "copy: wp.clone()"
        )
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ArgumentError(
            f"{array!r} holds 64-bit numbers, which JAX does not keep by default; set "
            'jax.config.update("jax_enable_x64", True)'
        )
    made = jnp.from_dlpack(array)
    return made if made.dtype == dtype else made.view(dtype)


def device_from(device: Any) -> str | None:
    """Return Warp's name of a device of JAX, None if Warp has no such device."""
    if not isinstance(device, jax.Device):
        raise wp.errors.DeviceError(f"expected a jax.Device, got {device!r}")
    if device.platform == "cpu":
        return "cpu"
    return f"cuda:{device.local_hardware_id}" if device.platform in ("gpu", "cuda") else None


def device_to(name: str) -> Any:
    """Return JAX's device for Warp's name of one, None if there is none in this process."""
    kind, _, ordinal = name.partition(":")
    for device in jax.local_devices(backend="cpu") if kind == "cpu" else cuda_devices():
        if kind == "cpu" or device.local_hardware_id == int(ordinal or 0):
            return device
    return None


def cuda_devices() -> list[Any]:
    """Return the CUDA devices that JAX has in this process."""
    try:
        return list(jax.local_devices(backend="cuda"))
    except RuntimeError:  # there is no such backend
        return []


BRIDGE: Final = Bridge(
    name="jax",
    tensor_types=(jax.Array,),
    dtypes_from=DTYPES_FROM,
    read=read,
    make=make,
    device_from=device_from,
    device_to=device_to,
    device_types=(jax.Device,),
)
