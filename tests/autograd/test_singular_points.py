"""The derivatives that are used where there is none, or an infinite one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import warp as wp

Floats = wp.array(dtype=wp.float64)

INF = float("inf")


@wp.kernel
def of_one(x: Floats, out: Floats):
    out[0] = wp.sqrt(x[0])
    out[1] = wp.log(x[1])
    out[2] = 1.0 / x[2]
    out[3] = wp.cbrt(x[3])
    out[4] = wp.acos(x[4])
    out[5] = wp.asin(x[5])
    out[6] = wp.acos(x[6])
    out[7] = wp.asin(x[7])
    out[8] = wp.abs(x[8])
    out[9] = wp.sign(x[9])
    out[10] = wp.pow(x[10], 0.0)
    out[11] = wp.pow(x[11], 1.0)
    out[12] = x[12] ** 2.0
    out[13] = wp.pow(x[13], 0.5)
    out[14] = wp.clamp(x[14], 0.0, 1.0)
    out[15] = wp.clamp(x[15], 0.0, 1.0)
    out[16] = wp.where(x[16] > 0.0, wp.sqrt(x[16]), x[16])


AT = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
DERIVATIVES = [INF, INF, -INF, INF, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, INF, 1.0, 1.0, 1.0]
SEEDS = {
    "positive": (np.full(17, 2.0), 2.0 * np.array(DERIVATIVES)),
    "zero": (np.zeros(17), np.zeros(17)),
}


def gradients_at(kernel: wp.Kernel, inputs: Sequence[wp.array], seed: np.ndarray) -> list[np.ndarray]:
    """Return the gradients of every input for the adjoint `seed` of the output."""
    out = wp.zeros(len(seed), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=inputs, outputs=[out])
    tape.backward(grads={out: wp.array(seed, dtype=wp.float64)})
    return [array.grad.numpy() for array in inputs]


def floats(*values: float) -> wp.array:
    return wp.array(list(values), dtype=wp.float64, requires_grad=True)


@pytest.mark.parametrize(("seed", "expected"), SEEDS.values(), ids=SEEDS)
def test_functions_of_one_number(seed: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(gradients_at(of_one, [floats(*AT)], seed)[0], expected)


@wp.kernel
def of_two(x: Floats, y: Floats, out: Floats):
    out[0] = wp.max(x[0], y[0])
    out[1] = wp.min(x[1], y[1])
    out[2] = wp.atan2(x[2], y[2])
    out[3] = wp.pow(x[3], y[3])
    out[4] = wp.pow(x[4], y[4])
    out[5] = wp.mod(x[5], y[5])
    out[6] = wp.mod(x[6], y[6])


def test_functions_of_two_numbers() -> None:
    x = floats(2.0, 2.0, 0.0, 0.0, 0.0, 7.5, -7.5)
    y = floats(2.0, 2.0, 0.0, 2.0, 1.0, 2.0, 2.0)
    by_x, by_y = gradients_at(of_two, [x, y], np.ones(7))
    np.testing.assert_array_equal(by_x, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(by_y, [1.0, 1.0, 0.0, 0.0, 0.0, -3.0, 3.0])


@wp.kernel
def of_vector(x: wp.array(dtype=wp.vec3d), q: wp.array(dtype=wp.quatd), out: Floats):
    out[0] = wp.length(x[0])
    n = wp.normalize(x[1])
    out[1] = n[0] + n[1] + n[2]
    m = wp.normalize(q[0])
    out[2] = m[0] + m[3]


def test_length_and_normalize_of_zero() -> None:
    x = wp.zeros(2, dtype=wp.vec3d, requires_grad=True)
    q = wp.zeros(1, dtype=wp.quatd, requires_grad=True)
    for gradient in gradients_at(of_vector, [x, q], np.ones(3)):
        np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


@wp.kernel
def unused_infinity(x: Floats, out: Floats):
    root = wp.sqrt(x[0])
    ratio = x[1] / x[0]
    s = x[1]
    for i in range(3):
        s = s * x[1]
        if i > 5:
            s = s + root + ratio
    if x[0] > 0.0:
        s = s + wp.log(x[0])
    out[0] = s
    out[1] = root * x[1]


def test_an_infinite_derivative_that_nothing_uses_does_not_spread() -> None:
    gradient = gradients_at(unused_infinity, [floats(0.0, 2.0)], np.array([1.0, 0.0]))[0]
    np.testing.assert_array_equal(gradient, [0.0, 4.0 * 2.0**3])


@wp.kernel
def division_by_a_vector_length(x: wp.array(dtype=wp.vec3d), out: Floats):
    t = wp.tid()
    direction = wp.vec3d(0.0, 0.0, 0.0)
    if wp.length(x[t]) > 0.0:
        direction = x[t] / wp.length(x[t])
    out[t] = direction[0] + 3.0 * x[t][2]


def test_branch_not_taken_contributes_nothing() -> None:
    x = wp.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]], dtype=wp.vec3d, requires_grad=True)
    out = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(division_by_a_vector_length, dim=2, inputs=[x], outputs=[out])
    tape.backward(grads={out: wp.ones(2, dtype=wp.float64)})
    np.testing.assert_allclose(x.grad.numpy(), [[0.0, 0.0, 3.0], [0.5, 0.0, 3.0]], atol=1e-15)
