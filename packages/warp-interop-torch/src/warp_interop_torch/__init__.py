"""Warp and PyTorch: shared memory, shared gradients, and kernels as differentiable operators of PyTorch.

The names are loaded when first used, because Warp imports this package to learn what it contributes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from warp_interop_torch._version import __version__ as __version__

if TYPE_CHECKING:
    from warp_interop_torch.bridge import BRIDGE as BRIDGE
    from warp_interop_torch.op import TorchOp as TorchOp
    from warp_interop_torch.op import torch_op as torch_op

__all__ = ["BRIDGE", "TorchOp", "torch_op"]

_HOMES = {
    "BRIDGE": "warp_interop_torch.bridge",
    "TorchOp": "warp_interop_torch.op",
    "torch_op": "warp_interop_torch.op",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
