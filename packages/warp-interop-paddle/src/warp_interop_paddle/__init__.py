"""Warp and Paddle: shared memory, shared gradients, and kernels as differentiable operators of Paddle.

The names are loaded when first used, because Warp imports this package to learn what it contributes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from warp_interop_paddle._version import __version__ as __version__

if TYPE_CHECKING:
    from warp_interop_paddle.bridge import BRIDGE as BRIDGE
    from warp_interop_paddle.op import PaddleOp as PaddleOp
    from warp_interop_paddle.op import paddle_op as paddle_op

__all__ = ["BRIDGE", "PaddleOp", "paddle_op"]

_HOMES = {
    "BRIDGE": "warp_interop_paddle.bridge",
    "PaddleOp": "warp_interop_paddle.op",
    "paddle_op": "warp_interop_paddle.op",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
