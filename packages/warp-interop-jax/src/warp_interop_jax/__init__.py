"""Warp and JAX: shared memory, and kernels as differentiable operations inside `jax.jit`.

The names are loaded when first used, because Warp imports this package to learn what it contributes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from warp_interop_jax._version import __version__ as __version__

if TYPE_CHECKING:
    from warp_interop_jax.bridge import BRIDGE as BRIDGE
    from warp_interop_jax.callback import register_ffi_callback as register_ffi_callback
    from warp_interop_jax.function import jax_callable as jax_callable
    from warp_interop_jax.kernel import jax_kernel as jax_kernel

__all__ = ["BRIDGE", "jax_callable", "jax_kernel", "register_ffi_callback"]

_HOMES = {
    "BRIDGE": "warp_interop_jax.bridge",
    "jax_callable": "warp_interop_jax.function",
    "jax_kernel": "warp_interop_jax.kernel",
    "register_ffi_callback": "warp_interop_jax.callback",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
