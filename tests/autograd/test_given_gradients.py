"""Gradients that are assigned to arrays are somebody else's too: seeds are read, whatever their layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError

# Memory of the host cannot be shared with a device.
pytestmark = pytest.mark.cpu


@wp.kernel
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


@wp.kernel
def square_in_place(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]


X = np.array([1.0, -2.0, 3.0], np.float32)


def _read_only() -> Any:
    values = np.ones(3, np.float32)
    values.flags.writeable = False
    return values


SEEDS = {
    "one element for all": lambda: np.broadcast_to(np.float32(1.0), (3,)),
    "overlapping": lambda: np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (3,), (0,)),
    "read-only": _read_only,
    "reversed": lambda: np.ones(3, np.float32)[::-1],
    "with gaps": lambda: np.ones(6, np.float32)[::2],
    "plain": lambda: np.ones(3, np.float32),
}


@pytest.mark.parametrize("kind", SEEDS)
def test_an_assigned_seed_is_read_only(kind: str) -> None:
    memory = SEEDS[kind]()
    x = wp.array(X, dtype=float, requires_grad=True)
    y = wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, 3, inputs=[x], outputs=[y])
    y.grad = wp.array(memory, copy=False)
    for calls in (1, 2):
        tape.backward()
        np.testing.assert_allclose(x.grad.numpy(), calls * 3 * X**2)
        np.testing.assert_array_equal(memory, np.ones(3))
        np.testing.assert_array_equal(y.grad.numpy(), np.ones(3))


def test_one_seed_for_two_results() -> None:
    seed = wp.ones(3)
    x = wp.array(X, dtype=float, requires_grad=True)
    y, z = wp.zeros(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, 3, inputs=[x], outputs=[y])
        wp.launch(cube, 3, inputs=[y], outputs=[z])
    y.grad = z.grad = seed
    tape.backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * X**2 + 9 * X**8)
    np.testing.assert_array_equal(seed.numpy(), np.ones(3))


def test_a_result_that_is_a_view_starts_from_what_was_assigned_to_the_whole() -> None:
    seed = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)
    x = wp.array(X, dtype=float, requires_grad=True)
    y = wp.zeros(4, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, 3, inputs=[x], outputs=[y[1:]])
    y.grad = seed
    tape.backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * X**2 * [2, 3, 4])
    np.testing.assert_array_equal(seed.numpy(), [1, 2, 3, 4])


def test_the_gradient_of_contents_before_arrives_where_it_was_assigned() -> None:
    buffer = wp.ones(3)
    x = wp.array(X, dtype=float)
    x.grad = buffer
    with wp.Tape() as tape:
        wp.launch(square_in_place, 3, inputs=[x])
    tape.backward()
    np.testing.assert_allclose(buffer.numpy(), 2 * X)


def test_an_assigned_buffer_of_an_input_is_added_to() -> None:
    buffer = wp.ones(3)
    x = wp.array(X, dtype=float)
    x.grad = buffer
    y = wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, 3, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones(3)})
    np.testing.assert_allclose(buffer.numpy(), 1 + 3 * X**2)


@pytest.mark.parametrize("kind", ["one element for all", "overlapping", "read-only"])
def test_gradients_of_inputs_are_right_where_they_cannot_be_shared(kind: str) -> None:
    memory = SEEDS[kind]()
    x = wp.array(X, dtype=float)
    x.grad = wp.array(memory, copy=False)
    y = wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, 3, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones(3)})
    np.testing.assert_allclose(x.grad.numpy(), 1 + 3 * X**2)
    np.testing.assert_array_equal(memory, np.ones(3))


@pytest.mark.parametrize("kind", ["one element for all", "overlapping", "read-only"])
@pytest.mark.parametrize("is_array", [True, False])
def test_an_adjoint_launch_refuses_to_add_to_what_it_cannot_write(kind: str, is_array: bool) -> None:
    memory = SEEDS[kind]()
    given = wp.array(memory, copy=False) if is_array else memory
    x, y = wp.array(X, dtype=float), wp.zeros(3)
    with pytest.raises(ArgumentError, match=r"parameter 'x'.*(read-only|share memory)"):
        wp.launch(cube, 3, [x], [y], adj_inputs=[given], adj_outputs=[wp.ones(3)], adjoint=True)
    np.testing.assert_array_equal(memory, np.ones(3))


@pytest.mark.parametrize("kind", SEEDS)
def test_an_adjoint_launch_reads_any_seed(kind: str) -> None:
    memory = SEEDS[kind]()
    x, y, gradient = wp.array(X, dtype=float), wp.zeros(3), wp.zeros(3)
    y.grad = wp.array(memory, copy=False)
    wp.launch(cube, 3, [x], [y], adj_inputs=[gradient], adj_outputs=[y.grad], adjoint=True)
    np.testing.assert_allclose(gradient.numpy(), 3 * X**2)
    np.testing.assert_array_equal(memory, np.ones(3))
