"""A tape in an autograd Function takes the gradient that autograd gives, and leaves it as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import warp as wp


@wp.kernel
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x, ctx.y, ctx.tape = wp.from_torch(x, requires_grad=True), wp.zeros(len(x), requires_grad=True), wp.Tape()
        with ctx.tape:
            wp.launch(cube, len(x), inputs=[ctx.x], outputs=[ctx.y])
        return wp.to_torch(ctx.y)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        ctx.y.grad = wp.from_torch(gradient)
        ctx.tape.backward()
        return wp.to_torch(ctx.x.grad)


LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda f, x, w: f(x).sum(),
    "mean": lambda f, x, w: f(x).mean(),
    "used with another": lambda f, x, w: (f(x) + w).sum(),
    "used twice": lambda f, x, w: (f(x) + f(x)).sum(),
    "weighted": lambda f, x, w: (f(x) * w).sum(),
    "a slice": lambda f, x, w: f(x)[::2].sum(),
    "reversed": lambda f, x, w: (f(x).flip(0) * w).sum(),
    "stacked": lambda f, x, w: torch.stack([f(x), f(w)]).sum(),
    "nested": lambda f, x, w: f(f(x)).sum(),
    "added to itself": lambda f, x, w: (lambda y: y + y)(f(x)).sum(),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_gradients_are_those_of_autograd(kind: str) -> None:
    loss = LOSSES[kind]
    found = [torch.tensor([0.5, -1.0, 1.5], requires_grad=True), torch.tensor([2.0, 0.25, -1.0], requires_grad=True)]
    wanted = [tensor.detach().clone().requires_grad_() for tensor in found]
    loss(Cube.apply, *found).backward()
    loss(lambda x: x**3, *wanted).backward()
    for tensor, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(tensor.grad, other.grad)


def test_the_gradient_that_was_given_is_left_alone() -> None:
    x = torch.tensor([0.5, -1.0, 1.5], requires_grad=True)
    gradient = torch.tensor([1.0, 2.0, 3.0])
    y = Cube.apply(x) + Cube.apply(x)
    y.backward(gradient)
    torch.testing.assert_close(gradient, torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(x.grad, 6 * x.detach() ** 2 * gradient)
