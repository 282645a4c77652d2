"""A tape in a PyLayer takes the gradient that Paddle gives, and leaves it as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest

import warp as wp


@wp.kernel
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


class Cube(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        size = x.shape[0]
        ctx.x, ctx.y, ctx.tape = wp.from_paddle(x, requires_grad=True), wp.zeros(size, requires_grad=True), wp.Tape()
        with ctx.tape:
            wp.launch(cube, size, inputs=[ctx.x], outputs=[ctx.y])
        return wp.to_paddle(ctx.y, requires_grad=False)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        ctx.y.grad = wp.from_paddle(gradient)
        ctx.tape.backward()
        return wp.to_paddle(ctx.x.grad)


LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda f, x, w: f(x).sum(),
    "used with another": lambda f, x, w: (f(x) + w).sum(),
    "used twice": lambda f, x, w: (f(x) + f(x)).sum(),
    "weighted": lambda f, x, w: (f(x) * w).sum(),
    "joined": lambda f, x, w: paddle.concat([f(x), f(w)]).sum(),
    "nested": lambda f, x, w: f(f(x)).sum(),
}


def _leaf(*values: float) -> Any:
    tensor = paddle.to_tensor(values)
    tensor.stop_gradient = False
    return tensor


@pytest.mark.parametrize("kind", LOSSES)
def test_gradients_are_those_of_autograd(kind: str) -> None:
    loss = LOSSES[kind]
    found = [_leaf(0.5, -1.0, 1.5), _leaf(2.0, 0.25, -1.0)]
    wanted = [_leaf(0.5, -1.0, 1.5), _leaf(2.0, 0.25, -1.0)]
    loss(Cube.apply, *found).backward()
    loss(lambda x: x**3, *wanted).backward()
    for tensor, other in zip(found, wanted, strict=True):
        if other.grad is not None:
            np.testing.assert_allclose(tensor.grad.numpy(), other.grad.numpy(), rtol=1e-5)
