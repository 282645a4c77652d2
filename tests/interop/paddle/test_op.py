"""`paddle_op`: outputs and gradients, against Paddle's own arithmetic."""

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
def pick(table: wp.array(dtype=wp.float64), index: wp.array(dtype=int), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = table[index[i]] * table[index[i]]


@wp.kernel
def square_in_place(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = y[i] * y[i] * x[i]


@wp.kernel
def overwrite_output(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]
    y[i] = wp.sin(y[i]) * x[i]


@wp.kernel
def write_input(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = wp.float64(0.0)
    y[i] = x[i]


@wp.kernel
def turn(v: wp.array(dtype=wp.vec3d), axis: wp.vec3d, sign: bool, y: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    c = wp.cross(axis, v[i])
    if sign:
        c = -c
    y[i] = c


@wp.kernel
def double_any(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] + x[i]


@wp.kernel
def count_above(
    x: wp.array(dtype=wp.float64), limit: wp.float64, above: wp.array(dtype=int), total: wp.array(dtype=wp.float64)
):
    i = wp.tid()
    if x[i] > limit:
        above[i] = 1
        wp.atomic_add(total, 0, x[i] * x[i])


@wp.kernel
def step_kernel(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i]


def three_steps(x: wp.array(dtype=wp.float64), steps: int, y: wp.array(dtype=wp.float64)) -> None:
    state = x
    for _ in range(steps):
        following = wp.zeros_like(y)
        wp.launch(step_kernel, dim=len(state), inputs=[state], outputs=[following])
        state = following
    wp.copy(y, state)


rosenbrock_op = wp.paddle_op(rosenbrock)
mix_op = wp.paddle_op(mix, num_outputs=2, output_dims={"rows": lambda a, b, scale: a.shape[0]})
pick_op = wp.paddle_op(pick, launch_dims=lambda table, index: index.shape[0])
in_place_op = wp.paddle_op(square_in_place, in_out_argnames=["y"])
overwrite_op = wp.paddle_op(overwrite_output)
turn_op = wp.paddle_op(turn)
steps_op = wp.paddle_op(three_steps)


def steps_reference(x: Any, steps: int) -> Any:
    for _ in range(steps):
        x = paddle.sin(x) * x
    return x


def rosenbrock_reference(p: Any) -> Any:
    return (1 - p[..., 0]) ** 2 + 100 * (p[..., 1] - p[..., 0] ** 2) ** 2


def mix_reference(a: Any, b: Any, scale: float) -> Any:
    return scale * a * paddle.sin(b), (a * b).sum(-1)


def turn_reference(v: Any, axis: Any, sign: bool) -> Any:
    a, b, c = axis  # Paddle's own cross product crashes where only one factor needs a gradient
    turned = v @ paddle.to_tensor([[0, c, -b], [-c, 0, a], [b, -a, 0]], dtype=v.dtype)
    return -turned if sign else turned


def numbers(*shape: int) -> Any:
    return paddle.to_tensor(np.random.default_rng(sum(shape)).standard_normal(shape))


INDEX = paddle.to_tensor([0, 2, 2, 1], dtype="int32")
CASES = {
    "rosenbrock": (rosenbrock_op, rosenbrock_reference, (numbers(5, 2),)),
    "two outputs": (mix_op, mix_reference, (numbers(3, 4), numbers(3, 4) + 1, 0.5)),
    "indices": (pick_op, lambda table, index: table[index] ** 2, (numbers(3), INDEX)),
    "changed input": (in_place_op, lambda x, y: y * y * x, (numbers(4), numbers(4) - 1)),
    "overwritten output": (overwrite_op, lambda x: paddle.sin(x * x) * x, (numbers(4),)),
    "values": (turn_op, turn_reference, (numbers(4, 3), [1.0, -2.0, 0.5], True)),
    "function": (steps_op, steps_reference, (numbers(4), 3)),
}


def leaf(tensor: Any) -> Any:
    made = tensor.clone().detach()
    made.stop_gradient = False
    return made


def leaves(args: Any) -> Any:
    return [leaf(a) if isinstance(a, paddle.Tensor) and a.is_floating_point() else a for a in args]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def scalar_of(results: Any) -> Any:
    return sum(
        (result * paddle.arange(1, result.size + 1, dtype=result.dtype).reshape(result.shape)).sum()
        for result in as_tuple(results)
    )


def gradients_of(function: Any, args: Any) -> list[Any]:
    inputs = leaves(args)
    scalar_of(function(*inputs)).backward()
    return [x.grad for x in inputs if isinstance(x, paddle.Tensor) and not x.stop_gradient]


def assert_close(found: Any, expected: Any) -> None:
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    op, reference, args = CASES[name]
    assert_close(op(*args), reference(*args))
    assert_close(tuple(gradients_of(op, args)), tuple(gradients_of(reference, args)))


def test_only_some_inputs_are_differentiated() -> None:
    a, b = leaf(numbers(3, 4)), numbers(3, 4)
    scalar_of(mix_op(a, b, 2.0)).backward()
    assert b.grad is None
    assert a.grad is not None
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


LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "sliced": lambda x: paddle.stack([x, x], axis=1)[:, 0],
    "expanded": lambda x: x[:1].expand([4, 2]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_works(name: str) -> None:
    def use(function: Any) -> Any:
        return lambda x: function(LAYOUTS[name](x))

    points = numbers(4, 2)
    assert_close(use(rosenbrock_op)(points), use(rosenbrock_reference)(points))
    assert_close(gradients_of(use(rosenbrock_op), [points])[0], gradients_of(use(rosenbrock_reference), [points])[0])


def test_incoming_adjoints_stay_as_they_were() -> None:
    for op in (overwrite_op, lambda x: steps_op(x, 3)):
        adjoint = paddle.full([4], 2.0, dtype="float64")
        paddle.autograd.backward([op(leaf(numbers(4)))], [adjoint])
        assert adjoint.tolist() == [2.0] * 4


def test_integer_outputs_have_no_gradient() -> None:
    op = wp.paddle_op(count_above, num_outputs=2, output_dims={"total": 1})
    x = leaf(paddle.to_tensor([1.0, 3.0, 5.0], dtype="float64"))
    above, total = op(x, 2.0)
    assert above.tolist() == [0, 1, 1]
    assert above.dtype == paddle.int32
    assert above.stop_gradient
    total.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 10.0]


def test_generic_kernels_take_what_comes() -> None:
    op = wp.paddle_op(double_any, launch_dims=lambda x: x.shape[0])
    for tensor in (
        paddle.ones([3]),
        paddle.ones([3], dtype="float64"),
        paddle.ones([3], dtype="int32"),
        paddle.ones([3, 2]),
    ):
        result = op(tensor)
        assert result.dtype == tensor.dtype
        assert np.array_equal(result.numpy(), 2 * tensor.numpy())
    assert gradients_of(op, [paddle.ones([3])])[0].tolist() == [2.0, 4.0, 6.0]


def test_keyword_arguments() -> None:
    a, b = numbers(2, 2), numbers(2, 2)
    assert_close(mix_op(a, scale=2.0, b=b), mix_op(a, b, 2.0))


def test_a_tape_outside_does_not_see_the_operator() -> None:
    x = numbers(3)
    with wp.Tape() as tape:
        steps_op(x, 2)
        overwrite_op(x)
    assert not tape.events


def test_second_derivatives_are_refused() -> None:
    x = leaf(numbers(3, 2))
    first = paddle.grad(rosenbrock_op(x).sum(), x, create_graph=True)[0]
    assert_close(first, paddle.grad(rosenbrock_reference(x).sum(), x)[0])
    with pytest.raises((RuntimeError, OSError), match="first derivatives only"):
        first.sum().backward()


def test_an_input_that_was_written_meanwhile_is_refused() -> None:
    x = leaf(numbers(3))
    y = x * 1.0
    loss = overwrite_op(y).sum()
    wp.from_paddle(y.detach()).zero_()
    with pytest.raises((RuntimeError, OSError), match="modified by an inplace operation"):
        loss.backward()


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


WRONG_CALLS = {
    "type": (rosenbrock_op, lambda: (paddle.zeros([3, 2]),), "'xy'.*float64.*(?i:float32)"),
    "shape": (rosenbrock_op, lambda: (numbers(3, 3),), r"'xy'.*\(2,\).*\(3, 3\)"),
    "rank": (rosenbrock_op, lambda: (numbers(3, 4, 2),), "'xy'.*2 dimensions"),
    "no tensor": (rosenbrock_op, lambda: ([1.0, 2.0],), "'xy'.*list"),
    "too many": (rosenbrock_op, lambda: (numbers(3, 2), 1), r"takes \(xy\)"),
    "value": (mix_op, lambda: (numbers(2, 2), numbers(2, 2), paddle.to_tensor(1.0)), "'scale'.*by value"),
    "output": (wp.paddle_op(mix, num_outputs=2), lambda: (numbers(2, 2), numbers(2, 2), 1.0), "'rows'.*output_dims"),
    "written": (wp.paddle_op(write_input), lambda: (numbers(2),), "'x'.*read-only"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_arguments_are_named(name: str) -> None:
    op, args, message = WRONG_CALLS[name]
    with pytest.raises(ArgumentError, match=message):
        op(*args())


WRONG_OPS = {
    "no kernel": (lambda: wp.paddle_op(3), "int"),
    "no outputs": (lambda: wp.paddle_op(rosenbrock, num_outputs=0), "num_outputs"),
    "too many outputs": (lambda: wp.paddle_op(rosenbrock, num_outputs=3), "num_outputs"),
    "only outputs": (lambda: wp.paddle_op(rosenbrock, num_outputs=2), "at least one input"),
    "unknown in-out": (lambda: wp.paddle_op(rosenbrock, in_out_argnames=["w"]), "'w'"),
    "no annotation": (lambda: wp.paddle_op(lambda x, y: None), "no annotation"),
}


@pytest.mark.parametrize("name", WRONG_OPS)
def test_what_cannot_be_an_operator(name: str) -> None:
    make, message = WRONG_OPS[name]
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_layer_that_holds_an_operator_can_be_copied() -> None:
    layer = paddle.nn.Linear(2, 2)
    layer.op = rosenbrock_op
    assert copy.deepcopy(layer).op is rosenbrock_op
    assert repr(rosenbrock_op).startswith("<paddle operator ")
