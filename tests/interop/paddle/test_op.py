"""`paddle_op` beyond what the kit tests: Paddle's own graphs, optimisers and memory."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import paddle
import pytest

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def rosenbrock(xy: wp.array(dtype=wp.vec2d), z: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x = xy[i][0]
    y = xy[i][1]
    one = wp.float64(1.0)
    z[i] = (one - x) * (one - x) + wp.float64(100.0) * (y - x * x) * (y - x * x)


@wp.kernel
def mix(
    a: wp.array2d(dtype=wp.float64),
    b: wp.array2d(dtype=wp.float64),
    scale: wp.float64,
    product: wp.array2d(dtype=wp.float64),
    rows: wp.array(dtype=wp.float64),
):
    i, j = wp.tid()
    product[i, j] = scale * a[i, j] * wp.sin(b[i, j])
    wp.atomic_add(rows, i, a[i, j] * b[i, j])


@wp.kernel
def overwrite_output(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]
    y[i] = wp.sin(y[i]) * x[i]


@wp.kernel
def square_and_cube(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64), z: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]
    z[i] = y[i] * x[i]


@wp.kernel
def scaled_sine(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i]


def twice_sine(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)) -> None:
    middle = wp.zeros_like(y)
    wp.launch(scaled_sine, dim=len(x), inputs=[x], outputs=[middle])
    wp.launch(scaled_sine, dim=len(x), inputs=[middle], outputs=[y])


rosenbrock_op = wp.paddle_op(rosenbrock)
mix_op = wp.paddle_op(mix, num_outputs=2, output_dims={"rows": lambda a, b, scale: a.shape[0]})
overwrite_op = wp.paddle_op(overwrite_output)
both_op = wp.paddle_op(square_and_cube, num_outputs=2)
function_op = wp.paddle_op(twice_sine)


def rosenbrock_reference(p: Any) -> Any:
    return (1 - p[..., 0]) ** 2 + 100 * (p[..., 1] - p[..., 0] ** 2) ** 2


def numbers(*shape: int) -> Any:
    return paddle.to_tensor(np.random.default_rng(sum(shape)).standard_normal(shape))


def leaf(tensor: Any) -> Any:
    made = tensor.clone().detach()
    made.stop_gradient = False
    return made


def assert_close(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_only_some_inputs_are_differentiated() -> None:
    a, b = leaf(numbers(3, 4)), numbers(3, 4)
    sum(y.sum() for y in mix_op(a, b, 2.0)).backward()
    assert b.grad is None
    assert_close(a.grad, 2.0 * paddle.sin(b) + b)
    assert mix_op(b, b, 2.0)[0].stop_gradient


def test_only_some_outputs_are_used() -> None:
    a, b = leaf(numbers(2, 3)), numbers(2, 3)
    mix_op(a, b, 2.0)[1].sum().backward()
    assert_close(a.grad, b)


def test_one_graph_twice_and_a_shared_input() -> None:
    x = leaf(numbers(4))
    y = overwrite_op(overwrite_op(x) + x)
    want = paddle.sin((paddle.sin(x * x) * x + x) ** 2) * (paddle.sin(x * x) * x + x)
    expected = paddle.grad(want.sum(), x)[0]
    for _ in range(2):
        assert_close(paddle.grad(y.sum(), x, retain_graph=True)[0], expected)


def test_nothing_is_counted_twice() -> None:
    x = leaf(numbers(3, 2))
    optimizer = paddle.optimizer.SGD(learning_rate=1e-3, parameters=[x])
    for set_to_zero in (True, False, True):
        optimizer.clear_grad(set_to_zero=set_to_zero)
        rosenbrock_op(x).sum().backward()
        assert_close(x.grad, paddle.grad(rosenbrock_reference(x).sum(), x)[0])
        optimizer.step()


@pytest.mark.parametrize("op", [overwrite_op, function_op])
def test_incoming_adjoints_stay_as_they_were(op: Any) -> None:
    adjoint = paddle.full([4], 2.0, dtype="float64")
    paddle.autograd.backward([op(leaf(numbers(4)))], [adjoint])
    assert adjoint.tolist() == [2.0] * 4


def test_integer_outputs_have_no_gradient() -> None:
    @wp.kernel
    def count(x: wp.array(dtype=float), above: wp.array(dtype=int), y: wp.array(dtype=float)):
        i = wp.tid()
        above[i] = int(x[i] > 2.0)
        y[i] = x[i] * x[i]

    x = leaf(paddle.to_tensor([1.0, 3.0]))
    above, y = wp.paddle_op(count, num_outputs=2)(x)
    assert above.tolist() == [0, 1]
    assert above.stop_gradient
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 6.0]


def test_second_derivatives_are_refused() -> None:
    x = leaf(numbers(3, 2))
    first = paddle.grad(rosenbrock_op(x).sum(), x, create_graph=True)[0]
    assert_close(first, paddle.grad(rosenbrock_reference(x).sum(), x)[0])
    with pytest.raises((RuntimeError, OSError), match="first derivatives only"):
        first.sum().backward()


WRITERS = {
    "warp": lambda t: wp.from_paddle(t.detach()).zero_(),
    "paddle": lambda t: t.detach().zero_(),
    "a view": lambda t: t.detach()[1:].zero_(),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_an_input_that_was_written_meanwhile_is_refused(writer: str) -> None:
    y = leaf(numbers(3)) * 1.0
    loss = overwrite_op(y).sum()
    WRITERS[writer](y)
    with pytest.raises((RuntimeError, OSError), match="'x' was modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("writer", WRITERS)
def test_an_output_that_was_written_meanwhile_is_refused(writer: str) -> None:
    y, z = both_op(leaf(numbers(3)))
    WRITERS[writer](y)
    with pytest.raises((RuntimeError, OSError), match="'y' was modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("is_used", [True, False])
def test_graphs_are_freed(is_used: bool) -> None:
    x = leaf(numbers(3))
    y = overwrite_op(x)
    result = weakref.ref(y)
    if is_used:
        y.sum().backward()
    del y
    gc.collect()
    assert result() is None


def test_a_layer_that_holds_an_operator_can_be_copied() -> None:
    layer = paddle.nn.Linear(2, 2)
    layer.op = rosenbrock_op
    assert copy.deepcopy(layer).op is rosenbrock_op
    assert repr(rosenbrock_op) == "<paddle operator rosenbrock(xy)>"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # of Paddle, by its own compiler
def test_a_compiled_function_calls_the_operator_between_graphs() -> None:
    def use(function: Any) -> Any:
        return lambda x: paddle.sin(function(x + 1)) * 2

    compiled = paddle.jit.to_static(use(rosenbrock_op))
    for _ in range(2):
        x, expected = leaf(numbers(3, 2)), leaf(numbers(3, 2))
        y, reference = compiled(x), use(rosenbrock_reference)(expected)
        assert_close(y, reference)
        y.sum().backward()
        reference.sum().backward()
        assert_close(x.grad, expected.grad)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # of Paddle, by its own compiler
def test_a_static_graph_is_refused() -> None:
    def use(points: Any) -> Any:
        return rosenbrock_op(points)

    with pytest.raises(ArgumentError, match="it cannot be part of a static graph"):
        paddle.jit.to_static(use, full_graph=True)(numbers(3, 2))
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            points = paddle.static.data("points", [3, 2], "float64")
            with pytest.raises(ArgumentError, match="static graph"):
                rosenbrock_op(points)
            with pytest.raises(ArgumentError, match="Value"):
                wp.from_paddle(points)
    finally:
        paddle.disable_static()
