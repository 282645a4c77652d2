"""Gradients that PyTorch's autograd returns are float64 central differences, for drawn kernels, types and layouts."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

import warp as wp


@wp.kernel
def wave(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    y[i, j] = wp.sin(x[i, j]) * x[i, j]


@wp.kernel
def iterate(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    value = x[i, j]
    for _ in range(i + j + 1):
        value = wp.sin(value) + x[i, j] * value
        if value > x[i, j]:
            value = value * x[i, j]
    y[i, j] = value


@wp.kernel
def scatter(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    wp.atomic_add(y, j % x.shape[0], i % x.shape[1], x[i, j] * x[i, j])


@wp.kernel
def neighbours(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    y[i, j] = x[i, j]
    y[i, j] = y[i, j] * x[(i + 1) % x.shape[0], j]


@wp.kernel
def running(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    total = x[i, 0] - x[i, 0]
    for k in range(j + 1):
        total += x[i, k] * x[i, k]
        y[i, j] = total * x[i, j]


def two_launches(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)) -> None:
    middle = wp.zeros_like(y)
    wp.launch(wave, dim=x.shape, inputs=[x], outputs=[middle])
    wp.launch(neighbours, dim=x.shape, inputs=[middle], outputs=[y])


OPERATORS = {
    function.__name__: wp.torch_op(function, launch_dims=lambda x: x.shape)
    for function in (wave, iterate, scatter, neighbours, running, two_launches)
}
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.t().contiguous().t(),
    "gaps": lambda x: torch.stack([x, -x], dim=-1)[..., 0],
    "computed": lambda x: torch.tanh(2 * x),
    "turned": lambda x: x.flip(0).t(),
    "repeated": lambda x: x[:1].expand(3, -1),
}
STEP = 1e-5


@st.composite
def points(draw: st.DrawFn) -> torch.Tensor:
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    # Steps of 1/16 keep apart the branches that a kernel chooses between.
    numbers = draw(st.lists(st.integers(-24, 24), min_size=rows * columns, max_size=rows * columns))
    return torch.tensor(numbers, dtype=torch.float64).reshape(rows, columns) / 16 + 0.01


def differences(function: Any, x: torch.Tensor) -> torch.Tensor:
    found = torch.zeros_like(x)
    for place in range(x.numel()):
        step = torch.zeros_like(x)
        step.view(-1)[place] = STEP
        found.view(-1)[place] = (function(x + step) - function(x - step)).item() / (2 * STEP)
    return found


def weighted(y: torch.Tensor) -> torch.Tensor:
    return (y * torch.arange(1.0, y.numel() + 1, dtype=y.dtype).reshape(y.shape)).sum()


@given(
    x=points(),
    name=st.sampled_from(sorted(OPERATORS)),
    layout=st.sampled_from(sorted(LAYOUTS)),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_gradients_are_central_differences(x: torch.Tensor, name: str, layout: str, dtype: torch.dtype) -> None:
    def loss(x: torch.Tensor) -> torch.Tensor:
        return weighted(torch.sin(OPERATORS[name](LAYOUTS[layout](x))))

    leaf = x.to(dtype).requires_grad_()
    loss(leaf).backward()
    wanted = differences(loss, leaf.detach().double())
    tolerance = 1e-5 if dtype is torch.float64 else 2e-2
    scale = 1 + wanted.abs().max().item()
    torch.testing.assert_close(leaf.grad.double(), wanted, rtol=tolerance, atol=tolerance * scale)
    torch.testing.assert_close(torch.func.grad(loss)(leaf.detach()), leaf.grad)
