"""Conversions between arrays and tensors: those that Warp derives from the bridge, and what is particular here."""

from __future__ import annotations

from typing import Any, Final

from warp.plugins import derive
from warp_interop_torch.bridge import BRIDGE

_FUNCTIONS: Final = derive(BRIDGE)

from_torch: Final = _FUNCTIONS["from_torch"]
dtype_to_torch: Final = _FUNCTIONS["dtype_to_torch"]
device_from_torch: Final = _FUNCTIONS["device_from_torch"]


def to_torch(a: Any, requires_grad: bool | None = None) -> Any:
    """Return an array as a tensor of the same memory, which the tensor keeps alive.

    Vectors and matrices add trailing dimensions. `requires_grad`, by default the array's, tells whether the tensor
    requires a gradient; it is the array's gradient if that has one. ArgumentError for what PyTorch has no tensor for.
    """
    tensor = _FUNCTIONS["to_torch"](a, requires_grad)
    is_required = a.requires_grad if requires_grad is None else requires_grad
    return tensor.requires_grad_() if is_required else tensor
