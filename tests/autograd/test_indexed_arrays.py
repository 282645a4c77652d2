"""Indexed arrays on tapes: copies of them carry gradients, and indices are kept when they are overwritten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.autograd.checking import check_gradients

import warp as wp

f = wp.float64
START = np.array([0.7, -0.4, 1.1, 0.5])
MATRIX = np.arange(12.0).reshape(3, 4) / 10.0


@wp.kernel
def square(x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def double_in_place(x: wp.indexedarray(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    x[i] = f(2.0) * x[i] + y[i]


@wp.kernel
def add_indexed(x: wp.indexedarray(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] += f(3.0) * x[i]


@wp.struct
class Picked:
    values: wp.indexedarray(dtype=f)


@wp.kernel
def add_picked(x: Picked, y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] += f(3.0) * x.values[i]


@wp.kernel
def turn(indices: wp.array(dtype=int)):
    i = wp.tid()
    indices[i] = (indices[i] + 1) % 4


def indices(*values: int) -> Any:
    return wp.array(values, dtype=int)


def zeros(count: int) -> Any:
    return wp.zeros(count, dtype=f, requires_grad=True)


def squares(x: Any) -> Any:
    y = zeros(x.size)
    wp.launch(square, x.size, inputs=[x, y])
    return y


def gathered(x: Any) -> Any:
    return squares(x[indices(3, 0, 3, 3, 1)].contiguous())


def cloned(x: Any) -> Any:
    return squares(wp.clone(x[::-1][indices(3, 0)]))


def copied(x: Any) -> Any:
    y = squares(x)
    wp.copy(y[1:], x[indices(2, 2, 0)])
    return squares(y)


def copied_onto_itself(x: Any) -> Any:
    wp.copy(x, x[indices(1, 0, 0, 2)])
    return squares(x)


def assigned(x: Any) -> Any:
    y = squares(x)
    y[:2] = x[indices(3, 3)]
    y[2:].assign(squares(x)[indices(0, 1)])
    return squares(y)


def rows(m: Any) -> Any:
    picked = wp.indexedarray(m, [indices(2, 0, 2), indices(1, 1)]).contiguous()
    return squares(picked.flatten())


def overwritten_indices(x: Any) -> Any:
    places, y = indices(2, 0), zeros(2)
    wp.launch(add_indexed, 2, inputs=[x[places], y])
    wp.launch(turn, 2, inputs=[places])
    wp.launch(double_in_place, 2, inputs=[x[places], y])
    places.fill_(1)
    wp.launch(add_indexed, 2, inputs=[x[places], y])
    places.assign([0, 0])
    return x, y


def overwritten_indices_in_structs(x: Any) -> Any:
    places, y = indices(2, 0), zeros(2)
    wp.launch(add_picked, 2, inputs=[Picked(values=x[places]), y])
    places.zero_()
    return squares(y)


def overwritten_after_a_copy(x: Any) -> Any:
    places = indices(2, 0)
    y = x[places].contiguous()
    places.zero_()
    return squares(y)


@pytest.mark.parametrize(
    "program",
    [
        gathered,
        cloned,
        copied,
        copied_onto_itself,
        assigned,
        overwritten_indices,
        overwritten_indices_in_structs,
        overwritten_after_a_copy,
    ],
)
def test_gradients(program: Any) -> None:
    check_gradients(program, START)


def test_two_dimensions() -> None:
    check_gradients(rows, MATRIX)


def test_forward_mode_and_second_derivatives() -> None:
    direction = np.array([1.0, 2.0, 3.0, 4.0])
    x = wp.array(START, dtype=f)
    (product,) = wp.autograd.jvp(gathered, inputs=[x], tangents=[direction])
    order = [3, 0, 3, 3, 1]
    np.testing.assert_allclose(product.numpy(), (2.0 * START * direction)[order])

    def total(x: Any) -> Any:
        y = gathered(x)
        return squares(y[indices(1)].contiguous())

    (product,) = wp.autograd.hvp(total, inputs=[x], tangents=[direction])
    np.testing.assert_allclose(product.numpy(), [12.0 * START[0] ** 2, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("dtype", [wp.float16, wp.bfloat16, wp.vec3d])
def test_other_elements(dtype: Any) -> None:
    values = MATRIX[:, :3] if dtype is wp.vec3d else MATRIX[0, :3]
    x = wp.array(values, dtype=dtype, requires_grad=True)
    with wp.Tape() as tape:
        y = wp.clone(x[indices(2, 0, 2)])
    tape.backward(grads={y: wp.ones(3, dtype=dtype)})
    np.testing.assert_array_equal(y.list(), [x.list()[n] for n in (2, 0, 2)])
    np.testing.assert_array_equal(np.array(x.grad.list()), (np.ones(values.shape).T * [1.0, 0.0, 2.0]).T)
