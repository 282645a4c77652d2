"""Run by .ci/run where warp-core and warp-interop-torch are installed with PyTorch, but not warp-autograd."""

from __future__ import annotations

import torch

import warp as wp
from warp.errors import MissingPluginError


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    wp.launch(square, dim=x.shape, inputs=[x], outputs=[y])


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
wp.torch_op(square)(x).sum().backward()
assert x.grad is not None
assert x.grad.tolist() == [2.0, 4.0, 6.0], x.grad
assert wp.from_torch(x).grad.numpy().tolist() == [2.0, 4.0, 6.0]
message = ""
try:
    wp.torch_op(twice)(x).sum().backward()
except MissingPluginError as error:
    message = str(error)
assert "warp-core[autograd]" in message, message
print("warp-interop-torch works alone")
