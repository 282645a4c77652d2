"""Conversions between arrays and tensors: those that Warp derives from the bridge, and what is particular here."""

from __future__ import annotations

from typing import Any, Final

from warp.plugins import derive
from warp_interop_paddle.bridge import BRIDGE

_FUNCTIONS: Final = derive(BRIDGE)

from_paddle: Final = _FUNCTIONS["from_paddle"]
dtype_to_paddle: Final = _FUNCTIONS["dtype_to_paddle"]
device_from_paddle: Final = _FUNCTIONS["device_from_paddle"]


def to_paddle(a: Any, requires_grad: bool | None = None) -> Any:
    """Return an array as a tensor of the same memory, which the tensor keeps alive.

    Vectors and matrices add trailing dimensions. `requires_grad`, by default the array's, tells whether the tensor is
    to have a gradient (`stop_gradient` is False); it is the array's gradient if that has one. ArgumentError for what
    Paddle has no tensor for.
    """
    tensor = _FUNCTIONS["to_paddle"](a, requires_grad)
    tensor.stop_gradient = not (a.requires_grad if requires_grad is None else requires_grad)
    return tensor
