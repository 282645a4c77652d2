"""Conversions between arrays of Warp and of JAX: those that Warp derives from the bridge, with JAX's signatures."""

from __future__ import annotations

from typing import Any, Final

import jax

from warp.plugins import derive
from warp_interop_jax.bridge import BRIDGE

__all__ = [
    "device_from_jax",
    "device_to_jax",
    "dtype_from_jax",
    "dtype_to_jax",
    "from_jax",
    "get_jax_device",
    "to_jax",
]

_FUNCTIONS: Final = derive(BRIDGE)

dtype_from_jax: Final = _FUNCTIONS["dtype_from_jax"]
dtype_to_jax: Final = _FUNCTIONS["dtype_to_jax"]
device_from_jax: Final = _FUNCTIONS["device_from_jax"]
device_to_jax: Final = _FUNCTIONS["device_to_jax"]


def from_jax(
    jax_array: Any, dtype: Any = None, *, requires_grad: bool | None = None, return_ctype: bool = False
) -> Any:
    """Return an array of JAX as a Warp array of the same memory, which kernels may read but not write.

    Waits until JAX has computed it. Vector and matrix types as `dtype` take trailing dimensions. Raises ArgumentError
    (a TypeError) for what has no memory of its own, such as an array inside `jax.jit`.
    """
    return _FUNCTIONS["from_jax"](jax_array, dtype, requires_grad=requires_grad, return_ctype=return_ctype)


def to_jax(warp_array: Any) -> Any:
    """Return a Warp array as an array of JAX of the same memory, which JAX's array keeps alive.

    JAX takes arrays to be constant: write the memory again only when nothing will read JAX's array any more. Raises
    ArgumentError where JAX could only make a copy.
    """
    return _FUNCTIONS["to_jax"](warp_array)


def get_jax_device() -> Any:
    """Return the device that JAX uses by default in this thread."""
    device = jax.config.jax_default_device
    if device is None:
        return jax.local_devices()[0]
    return jax.local_devices(backend=device)[0] if isinstance(device, str) else device
