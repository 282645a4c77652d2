"""Derivatives of derivatives of operators: in both modes and all four combinations that there are rules for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import warp as wp
from warp.errors import AutogradError

# PyTorch's own forward mode warns when it is loaded, by whichever test uses it first.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*deprecated")


@wp.kernel
def wave(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * wp.sin(x[i])


@wp.kernel
def product(x: wp.array(dtype=wp.float64), w: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * w[i]


@wp.kernel
def powers(x: wp.array(dtype=wp.float64), a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64)):
    i = wp.tid()
    a[i] = x[i] * x[i]
    b[i] = x[i] * x[i] * x[i]


@wp.kernel
def squared_lengths(x: wp.array(dtype=wp.vec3d), scale: wp.float64, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = scale * wp.dot(x[i], x[i]) * x[i][0]


@wp.kernel
def gather(x: wp.array(dtype=wp.float64), place: wp.array(dtype=int), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.exp(x[place[i]])


@wp.kernel
def add_up(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i] * x[i])


@wp.kernel
def couple(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    total = wp.float64(0.0)
    for j in range(x.shape[0]):
        total += x[i] * x[j] * x[j]
    y[i] = total


@wp.kernel
def square_in_place(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] * x[i]


def twice(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    between = wp.zeros_like(x)
    wp.launch(wave, len(x), inputs=[x], outputs=[between])
    wp.launch(wave, len(x), inputs=[between], outputs=[y])


def numbers(*shape: int, seed: int = 0) -> Any:
    values = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return values.requires_grad_()


wave_op, product_op, powers_op = wp.torch_op(wave), wp.torch_op(product), wp.torch_op(powers, num_outputs=2)
lengths_op, gather_op = wp.torch_op(squared_lengths), wp.torch_op(gather)
sum_op, couple_op, twice_op = wp.torch_op(add_up, output_dims=1), wp.torch_op(couple), wp.torch_op(twice)
PLACES = torch.tensor([0, 2, 2, 1], dtype=torch.int32)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one input": (wave_op, (numbers(4),)),
    "two inputs": (product_op, (numbers(4), numbers(4, seed=1))),
    "the same twice": (lambda x: product_op(x, x), (numbers(4),)),
    "overlapping views": (lambda x: product_op(x[:3], x[1:]), (numbers(4),)),
    "one of two": (lambda x: product_op(x, numbers(4, seed=1).detach()), (numbers(4),)),
    "two outputs": (powers_op, (numbers(4),)),
    "one of two outputs": (lambda x: powers_op(x)[1], (numbers(4),)),
    "vectors and a value": (lambda x: lengths_op(x, 2.0), (numbers(4, 3),)),
    "rows with gaps": (lambda x: lengths_op(x[:, 1:4], 2.0), (numbers(4, 5),)),
    "transposed": (lambda x: lengths_op(x.t(), 2.0), (numbers(3, 4),)),
    "integers": (lambda x: gather_op(x, PLACES), (numbers(4),)),
    "atomics": (sum_op, (numbers(4),)),
    "coupled": (couple_op, (numbers(4),)),
    "a function": (twice_op, (numbers(3),)),
    "composed": (lambda x: wave_op(torch.tanh(product_op(x, 2.0 * x))), (numbers(3),)),
    "nothing": (wave_op, (numbers(0),)),
}


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_equal_differences(name: str) -> None:
    function, inputs = CASES[name]
    assert torch.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("name", ["one input", "two inputs", "the same twice", "overlapping views", "two outputs"])
def test_forward_over_reverse_and_batches_equal_differences(name: str) -> None:
    function, inputs = CASES[name]
    assert torch.autograd.gradgradcheck(function, inputs, check_fwd_over_rev=True, check_batched_grad=True)


def _loss(x: Any) -> Any:
    return couple_op(x).pow(2).sum() + wave_op(x).sum()


def _formula(x: Any) -> Any:
    return (x * (x * x).sum()).pow(2).sum() + (x * x * torch.sin(x)).sum()


func = torch.func
HESSIANS: dict[str, Callable[[Any, Any], Any]] = {
    "hessian": lambda loss, x: func.hessian(loss)(x),
    "reverse of reverse": lambda loss, x: func.jacrev(func.jacrev(loss))(x),
    "reverse of forward": lambda loss, x: func.jacrev(func.jacfwd(loss))(x),
    "functional": lambda loss, x: torch.autograd.functional.hessian(loss, x),
    "batch": lambda loss, x: torch.vmap(func.hessian(loss))(torch.stack([2.0 * x, x]))[1],
    "directions": lambda loss, x: torch.stack(
        [func.jvp(func.grad(loss), (x,), (unit,))[1] for unit in torch.eye(len(x), dtype=x.dtype)]
    ),
    "gradients": lambda loss, x: torch.stack(
        [func.grad(lambda v, u=unit: func.jvp(loss, (v,), (u,))[1])(x) for unit in torch.eye(len(x), dtype=x.dtype)]
    ),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_equal_those_of_the_formula(name: str) -> None:
    x = numbers(4).detach()
    torch.testing.assert_close(HESSIANS[name](_loss, x), func.hessian(_formula)(x))


def test_a_gradient_penalty_trains_as_with_the_formula() -> None:
    weights = [numbers(4), numbers(4)]
    for weight, operator in zip(weights, (product_op, lambda x, w: x * x * w), strict=True):
        x = numbers(4, seed=1)
        (gradient,) = torch.autograd.grad(operator(x, weight).sum(), x, create_graph=True)
        ((gradient.norm() - 1.0) ** 2 + operator(x, weight).sum()).backward()
    torch.testing.assert_close(weights[0].grad, weights[1].grad)


def test_compiled_functions_have_second_derivatives() -> None:
    compiled = torch.compile(lambda x: 2.0 * wave_op(x), backend="eager", fullgraph=True)
    x = numbers(4)
    (gradient,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    hessian = func.hessian(lambda v: 2.0 * (v * v * torch.sin(v)).sum())(x.detach())
    torch.testing.assert_close(second, torch.diagonal(hessian))


def test_a_direction_of_one_of_two_tensors_in_the_same_memory() -> None:
    x, direction = numbers(4).detach(), numbers(4, seed=1).detach()
    _, along = func.jvp(lambda first: product_op(first, x), (x,), (direction,))
    torch.testing.assert_close(along, 2.0 * x * x * direction)


def test_what_there_is_no_rule_for_is_refused() -> None:
    x = numbers(2).detach()

    def loss(v: Any) -> Any:
        return wave_op(v).sum()

    with pytest.raises(AutogradError, match="a third derivative"):
        func.grad(lambda a: func.grad(lambda b: func.grad(loss)(b).sum())(a).sum())(x)
    with pytest.raises(AutogradError, match="tangent of a tangent"):
        func.jvp(lambda v: func.jvp(loss, (v,), (x,))[1], (x,), (x,))


def test_kernels_that_overwrite_what_they_read() -> None:
    changing = wp.torch_op(square_in_place, in_out_argnames=["x"])
    leaf = numbers(3)
    weights = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    (gradient,) = torch.autograd.grad((weights * torch.sin(changing(leaf))).sum(), leaf, create_graph=True)
    torch.testing.assert_close(gradient, weights * torch.cos(leaf**2) * 2 * leaf)
    gradient.sum().backward()
    square = leaf.detach() ** 2
    torch.testing.assert_close(leaf.grad, weights * (2 * torch.cos(square) - 4 * square * torch.sin(square)))
    assert torch.autograd.gradgradcheck(changing, (numbers(3),))
