"""How Paddle's tensors hold their gradients, and how Warp shares them."""

from __future__ import annotations

from typing import Any, Final

import paddle

from warp.errors import ArgumentError

_KEPT: Final = "_warp_gradient"


def is_attachable(tensor: Any) -> bool:
    """Tell whether Warp may share `tensor.grad`.

    Inside the forward function of a PyLayer differentiation is off, and autograd itself adds what the backward function
    returns to `.grad`: a buffer shared there would be counted twice.
    """
    return bool(paddle.is_grad_enabled() and tensor.is_leaf and tensor.is_floating_point())


def current(tensor: Any) -> Any:
    """Return a tensor of the memory of another's gradient, the same one as long as that memory is used; None if none.

    Paddle makes a new `tensor.grad` whenever it is asked.
    """
    gradient = tensor.grad
    if gradient is None:
        vars(tensor).pop(_KEPT, None)
        return None
    pointer = gradient.data_ptr()
    kept = getattr(tensor, _KEPT, None)
    if kept is None or kept[0] != pointer:
        kept = (pointer, gradient)
        setattr(tensor, _KEPT, kept)
    return kept[1]


def make_zeros(tensor: Any) -> Any:
    """Return zeros of the type, shape and device of a tensor, row-major without gaps."""
    return paddle.zeros_like(tensor.detach())


def attach(tensor: Any, gradient: Any) -> None:
    """Make the memory of a tensor that of another's gradient."""
    if gradient.size and not gradient.is_contiguous():
        raise ArgumentError(
            "Paddle cannot share a gradient whose elements are not in row-major order without gaps; convert "
            "contiguous() of the array, or pass requires_grad=False"
        )
    if tensor.grad is None:
        tensor.grad = gradient
    if gradient.size:
        # The assignment has copied; this is what lets both have the same memory.
        gradient._share_buffer_to(tensor.grad)
