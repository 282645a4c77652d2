"""The platforms of JAX that native code launches kernels on."""

from __future__ import annotations

from functools import cache
from typing import Final

from warp_interop_jax.handler import Handler
from warp_interop_jax.handler_cpu import CpuHandler
from warp_interop_jax.handler_cuda import CudaHandler

_HANDLERS: Final = {"cpu": CpuHandler, "cuda": CudaHandler}
PLATFORMS: Final = tuple(_HANDLERS)
"""Their names in JAX."""


@cache
def handler(platform: str) -> Handler:
    """Return the handler for a platform in this process, compiled and registered at first use."""
    made: Handler = _HANDLERS[platform]()
    return made
