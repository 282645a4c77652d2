"""A tape notices what Paddle writes between an operation and its adjoint, and is not alarmed by anything else."""

from __future__ import annotations

import warnings

import numpy as np
import paddle
import pytest

import warp as wp
from warp.errors import AutogradError

OLD = [0.75, 1.5]
NEW = [1.5, -0.5]


@wp.kernel
def cube(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


def tensor(values=OLD):
    return paddle.to_tensor(values, dtype="float64", place=paddle.CPUPlace())


def zeros():
    return wp.zeros(2, dtype=wp.float64, requires_grad=True)


def ones():
    return wp.ones(2, dtype=wp.float64)


def optimise(t, kind):
    t.stop_gradient = False
    (t * t).sum().backward()
    kind(learning_rate=0.1, parameters=[t]).step()


CHANGES = {
    "in place": lambda t: t.zero_(),
    "a view": lambda t: t[1:].zero_(),
    "a detached tensor": lambda t: t.detach().add_(t.detach()),
    "an element": lambda t: t.__setitem__(0, 7.0),
    "assign": lambda t: paddle.assign(tensor(NEW), t),
    "set_value": lambda t: t.set_value(np.array(NEW)),
    "copy_": lambda t: t.copy_(tensor(NEW), True),
    "SGD": lambda t: optimise(t, paddle.optimizer.SGD),
    "Adam": lambda t: optimise(t, paddle.optimizer.Adam),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("comes_from", ["from_paddle", "to_paddle", "launch"])
def test_an_intermediate_of_old_values_is_refused(change, comes_from):
    t = tensor()
    x = wp.from_paddle(t, requires_grad=True)
    if comes_from == "to_paddle":
        x = wp.array(OLD, dtype=wp.float64, requires_grad=True)
        t = wp.to_paddle(x, requires_grad=False)
    y, z = zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[t if comes_from == "launch" else x, y])
        wp.launch(cube, 2, inputs=[y, z])
    CHANGES[change](t)
    with pytest.raises(AutogradError, match=r"stale|overwritten off the tape"):
        tape.backward(grads={z: ones()})


@pytest.mark.parametrize("shape", [(3, 40), (1000,), (2, 3, 4, 5)])
def test_optimisers_are_noticed_in_tensors_of_every_layout(shape):
    @wp.kernel
    def square(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
        i = wp.tid()
        y[i] = x[i] * x[i]

    t = paddle.full(list(shape), 0.5, dtype="float64")
    n = int(np.prod(shape))
    x = wp.from_paddle(t, requires_grad=True)
    y, z = (wp.zeros(n, dtype=wp.float64, requires_grad=True) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(square, n, inputs=[x.reshape(n), y])
        wp.launch(square, n, inputs=[y, z])
    optimise(t, paddle.optimizer.Adam)
    with pytest.raises(AutogradError, match=r"stale|overwritten off the tape"):
        tape.backward(grads={z: wp.ones(n, dtype=wp.float64)})


def test_a_tensor_made_after_the_launch_is_noticed_too():
    x, y, z = wp.array(OLD, dtype=wp.float64, requires_grad=True), zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
        wp.launch(cube, 2, inputs=[y, z])
    t = wp.to_paddle(y, requires_grad=False)
    t.zero_()
    with pytest.raises(AutogradError, match="overwritten off the tape"):
        tape.backward(grads={z: ones()})


def test_a_changed_leaf_is_used_as_it_is_without_a_message():
    t, y = tensor(), zeros()
    x = wp.from_paddle(t, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
    t.set_value(np.array(NEW))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape.backward(grads={y: ones()})
    assert x.grad.numpy().tolist() == [3.0 * value * value for value in NEW]


@pytest.mark.parametrize("wraps_anew", [False, True])
def test_the_loop_that_records_once_and_runs_again_is_right(wraps_anew):
    t = tensor()
    t.stop_gradient = False
    x, y, z = wp.from_paddle(t), zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
        wp.launch(cube, 2, inputs=[y, z])
    optimiser = paddle.optimizer.SGD(learning_rate=1e-3, parameters=[t])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            optimiser.clear_grad()
            tape.backward(grads={z: ones()})
            np.testing.assert_allclose(t.grad.numpy(), 9.0 * t.numpy() ** 8, rtol=1e-12)
            optimiser.step()
            source = wp.from_paddle(t) if wraps_anew else x
            wp.launch(cube, 2, inputs=[source, y])
            wp.launch(cube, 2, inputs=[y, z])


def test_writes_of_warp_to_tensors_are_not_taken_for_those_of_paddle():
    whole = paddle.zeros([4], dtype="float64")
    x, y = wp.from_paddle(whole[:2], requires_grad=False), wp.from_paddle(whole[2:], requires_grad=False)
    x.assign(OLD)
    z = wp.from_paddle(paddle.zeros([2], dtype="float64"), requires_grad=True)
    with warnings.catch_warnings(), wp.Tape() as tape:
        warnings.simplefilter("error")
        wp.launch(cube, 2, inputs=[x, y])
        wp.launch(cube, 2, inputs=[whole[2:], z])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape.backward(grads={z: ones()})
    np.testing.assert_array_equal(wp.to_paddle(z).numpy(), np.array(OLD) ** 9)


def test_a_write_before_a_copy_is_before_the_copy():
    t, y = tensor(), zeros()
    x = wp.from_paddle(t, requires_grad=True)
    with wp.Tape():
        wp.launch(cube, 2, inputs=[x, y])
    t.set_value(np.array(NEW))
    copy = zeros()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with wp.Tape() as tape:
            wp.copy(copy, x)
            wp.launch(cube, 2, inputs=[copy, y])
        tape.backward(grads={y: ones()})
    assert x.grad.numpy().tolist() == [3.0 * value * value for value in NEW]


def test_tensors_that_are_gone_or_empty_are_no_matter():
    y = zeros()
    x = wp.from_paddle(tensor(), requires_grad=False)
    empty = wp.from_paddle(paddle.zeros([0], dtype="float64"), requires_grad=False)
    with wp.Tape() as tape:
        wp.launch(cube, 0, inputs=[empty, empty])
        wp.launch(cube, 2, inputs=[x, y])
    tape.backward(grads={y: ones()})
    assert y.numpy().tolist() == [value**3 for value in OLD]
