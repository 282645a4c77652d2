"""The optimisation examples of the documentation: the gradient of one step, then whole runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import warp as wp


@wp.kernel()
def loss(xs: wp.array(dtype=float, ndim=2), l: wp.array(dtype=float)):
    tid = wp.tid()
    wp.atomic_add(l, 0, xs[tid, 0] ** 2.0 + xs[tid, 1] ** 2.0)


@wp.func
def rosenbrock(x: float, y: float):
    return (1.0 - x) ** 2.0 + 100.0 * (y - x**2.0) ** 2.0


@wp.kernel
def eval_rosenbrock(
    xs: wp.array(dtype=wp.vec2),
    # outputs
    z: wp.array(dtype=float),
):
    i = wp.tid()
    x = xs[i]
    z[i] = rosenbrock(x[0], x[1])


def rosenbrock_gradient(xy: torch.Tensor) -> np.ndarray:
    x, y = xy.detach().double().numpy().T
    return np.stack([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)], axis=1)


def starting_points(count: int) -> torch.Tensor:
    rng = np.random.default_rng(42)
    torch_device = wp.device_to_torch(wp.get_device())
    return torch.tensor(rng.normal(size=(count, 2)), dtype=torch.float32, requires_grad=True, device=torch_device)


def test_from_torch() -> None:
    torch.manual_seed(0)
    xs = torch.randn(100, 2, requires_grad=True)
    l = torch.zeros(1, requires_grad=True)
    opt = torch.optim.Adam([xs], lr=0.1)

    wp_xs = wp.from_torch(xs)
    wp_l = wp.from_torch(l)

    tape = wp.Tape()
    with tape:
        wp.launch(loss, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)

    for i in range(500):
        tape.zero()
        tape.backward(loss=wp_l)
        if i in (0, 1, 300):
            np.testing.assert_allclose(xs.grad.numpy(), 2 * xs.detach().numpy(), rtol=1e-6)
        opt.step()

        wp_l.zero_()
        wp.launch(loss, dim=len(xs), inputs=[wp_xs], outputs=[wp_l], device=wp_xs.device)
    assert l.item() < 1e-6


def test_to_torch() -> None:
    rng = np.random.default_rng(0)
    xs = wp.array(rng.standard_normal((100, 2)), dtype=wp.float32, requires_grad=True)
    l = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    opt = torch.optim.Adam([wp.to_torch(xs)], lr=0.1)

    tape = wp.Tape()
    with tape:
        wp.launch(loss, dim=len(xs), inputs=[xs], outputs=[l], device=xs.device)

    for i in range(500):
        tape.zero()
        tape.backward(loss=l)
        if i in (0, 1, 300):
            np.testing.assert_allclose(xs.grad.numpy(), 2 * xs.numpy(), rtol=1e-6)
        opt.step()

        l.zero_()
        wp.launch(loss, dim=len(xs), inputs=[xs], outputs=[l], device=xs.device)
    assert l.numpy()[0] < 1e-6


class Rosenbrock(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, xy: Any, num_points: int) -> Any:
        ctx.xy = wp.from_torch(xy, dtype=wp.vec2, requires_grad=True)
        ctx.num_points = num_points

        # allocate output
        ctx.z = wp.zeros(num_points, requires_grad=True)

        wp.launch(kernel=eval_rosenbrock, dim=ctx.num_points, inputs=[ctx.xy], outputs=[ctx.z])

        return wp.to_torch(ctx.z)

    @staticmethod
    def backward(ctx: Any, adj_z: Any) -> Any:
        # map incoming Torch grads to our output variables
        ctx.z.grad = wp.from_torch(adj_z)

        wp.launch(
            kernel=eval_rosenbrock,
            dim=ctx.num_points,
            inputs=[ctx.xy],
            outputs=[ctx.z],
            adj_inputs=[ctx.xy.grad],
            adj_outputs=[ctx.z.grad],
            adjoint=True,
        )

        # return adjoint w.r.t. inputs
        return (wp.to_torch(ctx.xy.grad), None)


@torch.library.custom_op("wp::warp_rosenbrock", mutates_args=())
def warp_rosenbrock(xy: torch.Tensor, num_points: int) -> torch.Tensor:
    wp_xy = wp.from_torch(xy, dtype=wp.vec2)
    wp_z = wp.zeros(num_points, dtype=wp.float32)

    wp.launch(kernel=eval_rosenbrock, dim=num_points, inputs=[wp_xy], outputs=[wp_z])

    return wp.to_torch(wp_z)


@warp_rosenbrock.register_fake
def _(xy: Any, num_points: int) -> Any:
    return torch.empty(num_points, dtype=torch.float32)


@torch.library.custom_op("wp::warp_rosenbrock_backward", mutates_args=())
def warp_rosenbrock_backward(xy: torch.Tensor, num_points: int, z: torch.Tensor, adj_z: torch.Tensor) -> torch.Tensor:
    wp_xy = wp.from_torch(xy, dtype=wp.vec2)
    wp_z = wp.from_torch(z, requires_grad=False)
    wp_adj_z = wp.from_torch(adj_z, requires_grad=False)

    wp.launch(
        kernel=eval_rosenbrock,
        dim=num_points,
        inputs=[wp_xy],
        outputs=[wp_z],
        adj_inputs=[wp_xy.grad],
        adj_outputs=[wp_adj_z],
        adjoint=True,
    )

    return wp.to_torch(wp_xy.grad)


@warp_rosenbrock_backward.register_fake
def _(xy: Any, num_points: int, z: Any, adj_z: Any) -> Any:
    return torch.empty_like(xy)


def backward(ctx: Any, adj_z: Any) -> Any:
    ctx.xy.grad = warp_rosenbrock_backward(ctx.xy, ctx.num_points, ctx.z, adj_z)
    return ctx.xy.grad, None


def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.xy, ctx.num_points = inputs
    ctx.z = output


warp_rosenbrock.register_autograd(backward, setup_context=setup_context)


@torch.compile(fullgraph=True, backend="aot_eager")
def compiled_custom_op(xy: Any, num_points: int) -> Any:
    return warp_rosenbrock(xy, num_points)


# Outside a compiled function the assignment to `ctx.xy.grad`, which autograd then adds to, is a slip of the page.
mended_rosenbrock = torch.library.custom_op("wp::mended_rosenbrock", warp_rosenbrock._init_fn, mutates_args=())
mended_rosenbrock.register_autograd(
    lambda ctx, adj_z: (warp_rosenbrock_backward(ctx.xy, ctx.num_points, ctx.z, adj_z), None),
    setup_context=setup_context,
)


@pytest.mark.parametrize("function", [Rosenbrock.apply, mended_rosenbrock, compiled_custom_op])
@pytest.mark.parametrize("set_to_none", [True, False])
def test_operators(function: Any, set_to_none: bool) -> None:
    xy = starting_points(50)
    opt = torch.optim.Adam([xy], lr=5e-2)
    first = 0.0
    for i in range(400):
        opt.zero_grad(set_to_none=set_to_none)
        z = function(xy, len(xy))
        z.backward(torch.ones_like(z))
        first = z.mean().item() if i == 0 else first
        if i in (0, 1, 300):
            # Adam would hide a factor of two.
            np.testing.assert_allclose(xy.grad.numpy(), rosenbrock_gradient(xy), rtol=1e-4, atol=1e-4)
        opt.step()
    assert z.mean().item() < 1e-2 * first


def test_the_last_example_as_one_call() -> None:
    op = wp.torch_op(eval_rosenbrock)
    xy = starting_points(50)
    op(xy).sum().backward()
    np.testing.assert_allclose(xy.grad.numpy(), rosenbrock_gradient(xy), rtol=1e-4, atol=1e-4)
