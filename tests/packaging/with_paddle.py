"""Run by .ci/run where warp-core and warp-interop-paddle are installed with Paddle, but not warp-autograd."""

from __future__ import annotations

import paddle

import warp as wp
from warp.errors import MissingPluginError


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    wp.launch(square, dim=x.shape, inputs=[x], outputs=[y])


x = paddle.to_tensor([1.0, 2.0, 3.0])
x.stop_gradient = False
wp.paddle_op(square)(x).sum().backward()
assert x.grad is not None
assert x.grad.tolist() == [2.0, 4.0, 6.0], x.grad
assert wp.from_paddle(x).grad.numpy().tolist() == [2.0, 4.0, 6.0]
message = ""
try:
    wp.paddle_op(twice)(x).sum().backward()
except (MissingPluginError, OSError) as error:  # Paddle raises an OSError of the text
    message = str(error)
assert "warp-core[autograd]" in message, message
print("warp-interop-paddle works alone")
