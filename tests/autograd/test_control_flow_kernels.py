"""Gradients of control flow in the body of a kernel itself: returns, guards, long loops, several kinds of bounds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autograd.checking import check_gradients

import warp as wp

Floats = wp.array(dtype=wp.float64)
Ints = wp.array(dtype=wp.int32)

X = np.array([0.71, 1.13, 0.94, 0.43, 1.21, 0.58])


@wp.kernel
def guarded(x: Floats, n: int, out: Floats):
    t = wp.tid()
    if t >= n:
        return
    out[t] = x[t] * x[t]


@wp.kernel
def return_between_stores(x: Floats, n: int, out: Floats):
    t = wp.tid()
    v = x[t] * x[t]
    out[t] = v
    if t < n:
        return
    w = v * x[0]
    if w > 0.7:
        out[t + 6] = w
        return
    out[t + 12] = w * v


@wp.kernel
def return_in_loop(x: Floats, n: int, out: Floats):
    t = wp.tid()
    s = x[t]
    for i in range(n):
        s = s * (0.5 + x[i])
        if s > 1.3:
            out[t] = s * s
            return
    out[t + 6] = s * x[0]


@wp.kernel
def return_in_while_in_for(x: Floats, n: int, out: Floats):
    t = wp.tid()
    s = x[t]
    for i in range(n):
        j = 0
        while True:
            s = s + 0.1 * x[j] * s
            j += 1
            if s > 1.6:
                out[t] = s * x[i]
                return
            if j > i:
                break
    out[t + 6] = s


@wp.kernel
def store_of_every_trip(x: Floats, n: int, out: Floats):
    t = wp.tid()
    s = x[t]
    for i in range(n):
        s = s * x[i]
        if t == 0:
            out[i] = s
            continue
        wp.atomic_add(out, 6 + i, s * x[t])
    wp.atomic_add(out, 17, s * s)


KERNELS = [guarded, return_between_stores, return_in_loop, return_in_while_in_for, store_of_every_trip]


@pytest.mark.parametrize("n", [0, 1, 4, 6])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_kernel(kernel: wp.Kernel, n: int) -> None:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros(18, dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=6, inputs=[x, n], outputs=[out])
        return out

    check_gradients(run, X)


def test_guarded_value() -> None:
    out = wp.full(6, value=-1.0, dtype=wp.float64)
    wp.launch(guarded, dim=6, inputs=[wp.array(X, dtype=wp.float64), 4], outputs=[out])
    np.testing.assert_allclose(out.numpy(), [*(X[:4] ** 2), -1.0, -1.0], rtol=1e-15)


@wp.kernel
def logistic(x: Floats, steps: int, out: Floats):
    t = wp.tid()
    s = x[t]
    damping = x[t] * 0.1
    for _ in range(steps):
        s = s + damping * s * (1.0 - s)
    out[t] = s


@pytest.mark.parametrize("steps", [63, 64, 65, 1000, 20000])
def test_long_loop_agrees_with_the_tangent_of_the_recurrence(steps: int) -> None:
    x = wp.array([0.2, 0.55, 0.9], dtype=wp.float64, requires_grad=True)
    out = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(logistic, dim=3, inputs=[x, steps], outputs=[out])
    tape.backward(grads={out: wp.ones(3, dtype=wp.float64)})

    value, tangent = x.numpy().copy(), np.ones(3)
    damping = 0.1 * value
    for _ in range(steps):
        growth = value * (1.0 - value)
        tangent = tangent + 0.1 * growth + damping * (1.0 - 2.0 * value) * tangent
        value = value + damping * growth
    np.testing.assert_allclose(out.numpy(), value, rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), tangent, rtol=1e-9, atol=1e-13)


@wp.kernel
def bounds_from_arrays(x: Floats, first: Ints, last: Ints, out: Floats):
    t = wp.tid()
    s = x[0]
    for i in range(first[t], last[t]):
        s = s * x[i] + 0.1 * s * s
    out[t] = s


def test_bounds_from_arrays() -> None:
    first = np.array([0, 2, 3, 5], dtype=np.int32)
    last = np.array([6, 5, 3, 1], dtype=np.int32)

    def run(x: wp.array) -> wp.array:
        out = wp.zeros(4, dtype=wp.float64, requires_grad=True)
        bounds = [wp.array(first, dtype=wp.int32), wp.array(last, dtype=wp.int32)]
        wp.launch(bounds_from_arrays, dim=4, inputs=[x, *bounds], outputs=[out])
        return out

    expected = []
    for begin, end in zip(first, last, strict=True):
        s = X[0]
        for i in range(begin, end):
            s = s * X[i] + 0.1 * s * s
        expected.append(s)
    np.testing.assert_allclose(check_gradients(run, X)[0], expected, rtol=1e-14)


@wp.kernel
def bound_of_the_value(x: Floats, out: Floats):
    t = wp.tid()
    s = x[t]
    for i in range(int(x[t] * 5.0)):
        s = s * x[i]
    out[t] = s


def test_trip_count_from_a_float() -> None:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros(6, dtype=wp.float64, requires_grad=True)
        wp.launch(bound_of_the_value, dim=6, inputs=[x], outputs=[out])
        return out

    expected = [value * np.prod(X[: int(5.0 * value)]) for value in X]
    np.testing.assert_allclose(check_gradients(run, X)[0], expected, rtol=1e-14)


@wp.kernel
def every_dimension(x: wp.array2d(dtype=wp.float64), n: int, out: wp.array3d(dtype=wp.float64)):
    i, j, k = wp.tid()
    s = x[i, j]
    for m in range(n + k):
        s = s * x[m % 2, j] + x[i, k]
    out[i, j, k] = s


@pytest.mark.parametrize("n", [0, 3])
def test_three_dimensional_launch(n: int) -> None:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros((2, 3, 2), dtype=wp.float64, requires_grad=True)
        wp.launch(every_dimension, dim=(2, 3, 2), inputs=[x, n], outputs=[out])
        return out

    check_gradients(run, X.reshape(2, 3))
