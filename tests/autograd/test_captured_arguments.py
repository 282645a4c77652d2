"""A tape takes the arguments of a launch as they were, whatever the program does with them afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp

f = wp.float64
START = np.array([1.0, 2.0, 3.0])


@wp.struct
class Weights:
    by_place: wp.vec3d


@wp.kernel
def weigh(x: wp.array(dtype=f), weights: wp.vec3d, y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = x[i] * x[i] * weights[i]


@wp.kernel
def weigh_by_struct(x: wp.array(dtype=f), weights: Weights, y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = x[i] * x[i] * weights.by_place[i]


@wp.kernel
def weigh_by_rows(x: wp.array(dtype=f), weights: wp.mat33d, y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = x[i] * x[i] * weights[i, 0]


@wp.kernel
def square_in_place(x: wp.array(dtype=f)):
    i = wp.tid()
    x[i] = x[i] * x[i]


def change(weights: Any) -> None:
    for n in range(3):
        weights[n] = 50.0


def change_struct(weights: Any) -> None:
    weights.by_place = wp.vec3d(50.0, 50.0, 50.0)


def change_rows(weights: Any) -> None:
    for row in range(3):
        weights[row][0] = 50.0


ROWS = [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("kernel", "weights", "change"),
    [
        (weigh, wp.vec3d(1.0, 2.0, 3.0), change),
        (weigh, np.array([1.0, 2.0, 3.0]), change),
        (weigh, [1.0, 2.0, 3.0], change),
        (weigh_by_struct, Weights(by_place=wp.vec3d(1.0, 2.0, 3.0)), change_struct),
        (weigh_by_rows, np.array(ROWS), change_rows),
        (weigh_by_rows, [list(row) for row in ROWS], change_rows),
    ],
)
def test_values_that_change_after_the_launch(kernel: Any, weights: Any, change: Any) -> None:
    x = wp.array(START, dtype=f, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(kernel, 3, inputs=[x, weights], outputs=[y])
    change(weights)
    tape.backward(grads={y: np.ones(3)})
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * START * [1.0, 2.0, 3.0])


@pytest.mark.cpu
@pytest.mark.parametrize("step", [2, -2])
def test_gradients_with_strides_of_their_own(step: int) -> None:
    memory = wp.zeros(6, dtype=f)
    x = wp.array(START, dtype=f)
    x.grad = memory[::2] if step > 0 else memory[4::-2]
    with wp.Tape() as tape:
        wp.launch(square_in_place, 3, inputs=[x])
        wp.launch(square_in_place, 2, inputs=[x[1:]])
    tape.backward(grads={x: np.ones(3)})
    expected = [2.0 * 1.0, 4.0 * 2.0**3, 4.0 * 3.0**3]
    np.testing.assert_allclose(x.grad.numpy(), expected)
    np.testing.assert_array_equal(memory.numpy()[1::2], 0.0)
