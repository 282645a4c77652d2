"""The names under which programs import what is in `warp` itself: `warp.jax_kernel`, `warp.jax_callable`."""

from __future__ import annotations

from warp_interop_jax.callback import register_ffi_callback as register_ffi_callback
from warp_interop_jax.function import jax_callable as jax_callable
from warp_interop_jax.kernel import jax_kernel as jax_kernel

__all__ = ["jax_callable", "jax_kernel", "register_ffi_callback"]
