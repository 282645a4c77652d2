"""One computation written in several ways has one gradient."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.checking import Values, check_gradients, gradients_of

import warp as wp

Floats = wp.array(dtype=wp.float64)

TRIPS = [0, 1, 3, 9]
X = np.array([0.71, 1.13, 0.94, 0.43, 1.21, 0.58, 1.04, 0.87, 0.66])


def for_loop(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        s = s * x[i] + 0.1 * s * s
    return s


def while_loop(x: Floats, n: int):
    s = x[0]
    i = 0
    while i < n:
        s = s * x[i] + 0.1 * s * s
        i += 1
    return s


def endless_loop(x: Floats, n: int):
    s = x[0]
    i = -1
    while True:
        i = i + 1
        if i == n:
            return s
        s = s * x[i] + 0.1 * s * s


def guarded_static_loop(x: Floats, n: int):
    s = x[0]
    for i in range(9):
        if i < n:
            s = s * x[i] + 0.1 * s * s
    return s


def guarded_long_loop(x: Floats, n: int):
    s = x[0]
    for i in range(100):
        if i >= n:
            continue
        s = s * x[i] + 0.1 * s * s
    return s


def broken_long_loop(x: Floats, n: int):
    s = x[0]
    for i in range(100):
        if i == n:
            break
        s = s * x[i] + 0.1 * s * s
    return s


def with_temporaries(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        a = s
        s = a * a
        s *= 0.1
        b = x[i]
        a *= b
        s += a
    return s


def in_vector(x: Floats, n: int):
    v = wp.vec2d(x[0], 0.0)
    for i in range(n):
        v[1] = v[0] * v[0]
        v[0] = wp.dot(v, wp.vec2d(x[i], 0.1))
    return v.x


def in_nested_loops(x: Floats, n: int):
    s = x[0]
    i = 0
    for block in range((n + 2) // 3):
        for k in range(3):
            i = 3 * block + k
            if i < n:
                s = s * x[i] + 0.1 * s * s
    return s


@wp.func
def one_step(s: wp.float64, a: wp.float64):
    return s * a + 0.1 * s * s


def in_function(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        s = one_step(s, x[i])
    return s


LOOPS = [
    for_loop,
    while_loop,
    endless_loop,
    guarded_static_loop,
    guarded_long_loop,
    broken_long_loop,
    with_temporaries,
    in_vector,
    in_nested_loops,
    in_function,
]


def branch_if(x: Floats, n: int):
    if x[n % 9] > 0.9:
        return x[0] * x[1]
    else:
        return x[2] / x[n % 9]


def branch_early(x: Floats, n: int):
    if x[n % 9] > 0.9:
        return x[0] * x[1]
    return x[2] / x[n % 9]


def branch_ternary(x: Floats, n: int):
    return x[0] * x[1] if x[n % 9] > 0.9 else x[2] / x[n % 9]


def branch_where(x: Floats, n: int):
    return wp.where(x[n % 9] > 0.9, x[0] * x[1], x[2] / x[n % 9])


def branch_flag(x: Floats, n: int):
    large = x[n % 9] > 0.9
    result = x[2] / x[n % 9]
    if large:
        result = x[0] * x[1]
    return result


def branch_loop(x: Floats, n: int):
    result = x[2] / x[n % 9]
    while x[n % 9] > 0.9:
        result = x[0] * x[1]
        break
    return result


def branch_not(x: Floats, n: int):
    result = x[0]
    if not x[n % 9] > 0.9:
        result = x[2] / x[n % 9]
    if x[n % 9] > 0.9 and True:
        result *= x[1]
    return result


BRANCHES = [branch_if, branch_early, branch_ternary, branch_where, branch_flag, branch_loop, branch_not]


def maximum_builtin(x: Floats, n: int):
    m = x[0] * 0.5
    for i in range(n):
        m = wp.max(m, x[i] * x[i])
    return m


def maximum_if(x: Floats, n: int):
    m = x[0] * 0.5
    for i in range(n):
        if x[i] * x[i] > m:
            m = x[i] * x[i]
    return m


def maximum_index(x: Floats, n: int):
    m = x[0] * 0.5
    best = -1
    for i in range(n):
        v = x[i] * x[i]
        if v > m:
            m, best = v, i
    if best >= 0:
        return x[best] ** 2.0
    return 0.5 * x[0]


def maximum_backwards(x: Floats, n: int):
    m = x[0] * 0.5
    for i in range(n - 1, -1, -1):
        m = x[i] * x[i] if m < x[i] * x[i] else m
    return m


MAXIMA = [maximum_builtin, maximum_if, maximum_index, maximum_backwards]


def runner(program: Callable[..., float], n: int) -> Callable[[wp.array], wp.array]:
    function = wp.func(program)

    @wp.kernel
    def evaluate(x: Floats, n: int, out: Floats):
        out[0] = function(x, n)

    def run(x: wp.array) -> wp.array:
        out = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        wp.launch(evaluate, dim=1, inputs=[x, n], outputs=[out])
        return out

    return run


def gradient_of(program: Callable[..., float], n: int) -> Values:
    outputs, gradients = gradients_of(runner(program, n), [X])
    return np.concatenate([*outputs, *gradients])


@pytest.mark.parametrize("programs", [LOOPS, BRANCHES, MAXIMA], ids=["loops", "branches", "maxima"])
def test_all_spellings_agree(programs: list[Callable[..., float]]) -> None:
    for n in TRIPS:
        expected = gradient_of(programs[0], n)
        for program in programs[1:]:
            found = gradient_of(program, n)
            np.testing.assert_allclose(
                found, expected, rtol=1e-13, atol=1e-15, err_msg=f"{program.__name__}, {n} trips"
            )


@pytest.mark.parametrize("n", TRIPS)
@pytest.mark.parametrize("program", [LOOPS[0], BRANCHES[0], MAXIMA[0]], ids=lambda program: program.__name__)
def test_first_spelling_is_right(program: Callable[..., float], n: int) -> None:
    check_gradients(runner(program, n), X)
