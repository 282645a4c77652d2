"""Loop conditions and native functions that read what the kernel overwrites, or write themselves."""

from __future__ import annotations

import numpy as np
from tests.autograd.checking import check_gradients

import warp as wp

Floats = wp.array(dtype=wp.float64)
Counters = wp.array(dtype=int)
X = np.array([0.5, 2.2, 3.1, 1.7, 2.6])


def copy_of(x: wp.array) -> wp.array:
    return wp.clone(x, requires_grad=True)


@wp.kernel
def square_down(x: Floats, y: Floats):
    i = wp.tid()
    while x[i] > 1.0:
        x[i] = x[i] * x[i] * 0.25
    y[i] = x[i] * x[i]


def test_condition_reads_what_the_body_overwrites() -> None:
    def run(x: wp.array) -> tuple[wp.array, wp.array]:
        x, y = copy_of(x), wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        wp.launch(square_down, dim=len(X), inputs=[x], outputs=[y])
        return x, y

    found, squares = check_gradients(run, X)
    expected = X.copy()
    for _ in range(20):
        expected = np.where(expected > 1.0, expected * expected * 0.25, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(squares, expected**2, rtol=1e-14)


@wp.kernel
def nested_conditions(x: Floats, tickets: Counters, y: Floats):
    i = wp.tid()
    s = wp.float64(1.0)
    while wp.atomic_add(tickets, i, 1) < 4 and x[i] < 50.0:
        x[i] = x[i] * 1.5 + wp.sin(s)
        n = 0
        while x[i] > 3.0 and n < 2:
            x[i] = x[i] * 0.8 * s
            n += 1
            if n == 2 and x[i] > 4.0:
                break
        s = wp.sin(s * x[i] * 0.9)
    y[i] = x[i] * s


def test_nested_loops_with_counters_in_their_conditions() -> None:
    def run(x: wp.array) -> tuple[wp.array, wp.array]:
        x, y = copy_of(x), wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        tickets = wp.zeros(len(X), dtype=int)
        wp.launch(nested_conditions, dim=len(X), inputs=[x, tickets], outputs=[y])
        return x, y

    check_gradients(run, X)


@wp.kernel
def list_walk(following: Counters, weight: Floats, total: Floats):
    i = wp.tid()
    at = i
    while following[at] >= 0 and total[i] < 9.0:
        total[i] = total[i] * 0.9 + weight[at] * weight[at]
        at = following[at]


def test_condition_reads_an_index_and_a_running_sum() -> None:
    def run(weight: wp.array) -> wp.array:
        total = wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        following = wp.array([1, 2, 3, 4, -1], dtype=int)
        wp.launch(list_walk, dim=len(X), inputs=[following, weight], outputs=[total])
        return total

    (found,) = check_gradients(run, X)
    expected = []
    for i in range(len(X)):
        total, at = 0.0, i
        while at < len(X) - 1 and total < 9.0:
            total, at = total * 0.9 + X[at] ** 2, at + 1
        expected.append(total)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@wp.func_native("return x[i] * 2.0;", adj_snippet="adj_x[i] += 2.0 * adj_ret;")
def twice(x: Floats, i: int) -> wp.float64: ...


@wp.func_native(
    "double old = x[i]; x[i] = old + 1.0; return old * old;", adj_snippet="adj_x[i] += 2.0 * (x[i] - 1.0) * adj_ret;"
)
def take(x: Floats, i: int) -> wp.float64: ...


@wp.kernel
def native_reads(x: Floats, y: Floats):
    i = wp.tid()
    for _k in range(i % 3 + 1):
        v = twice(x, i)
        y[i] = y[i] + v * v * v
        x[i] = v * v * 0.05


@wp.kernel
def native_takes(x: Floats, y: Floats):
    i = wp.tid()
    v = take(x, i)
    y[i] = wp.sin(v) * v


def test_native_functions_that_read_and_return() -> None:
    def run(x: wp.array) -> tuple[wp.array, wp.array]:
        x, y = copy_of(x), wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        wp.launch(native_reads, dim=len(X), inputs=[x], outputs=[y])
        return x, y

    check_gradients(run, X)


def test_native_functions_that_write_and_return_run_once() -> None:
    def run(x: wp.array) -> tuple[wp.array, wp.array]:
        x, y = copy_of(x), wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        wp.launch(native_takes, dim=len(X), inputs=[x], outputs=[y])
        return x, y

    after, found = check_gradients(run, X)
    np.testing.assert_allclose(after, X + 1.0)
    np.testing.assert_allclose(found, np.sin(X**2) * X**2, rtol=1e-13)
