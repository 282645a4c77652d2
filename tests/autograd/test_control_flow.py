"""Gradients through branches and loops with carried values, for no trip, one trip and many.

Every program is an ordinary Python function: it is compiled, and run by Python on NumPy numbers for its value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.checking import check_gradients

import warp as wp

Floats = wp.array(dtype=wp.float64)
Ints = wp.array(dtype=wp.int32)

TRIPS = np.array([0, 1, 2, 7, 40], dtype=np.int32)
X = np.array([0.71, 1.13, 0.94, 0.43, 1.21, 0.58, 1.04, 0.87])


def product(x: Floats, n: int):
    p = x[0]
    for i in range(n):
        p *= x[i % 8]
    return p


def sum_over_norm(x: Floats, n: int):
    total = x[0]
    norm = x[1]
    for i in range(n):
        w = x[i % 8]
        norm += w
        total += w * x[(i + 3) % 8]
    return total / norm


def quadratic_map(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        s = 0.4 * s * s + 0.5 * x[i % 8]
    return s


def fibonacci(x: Floats, n: int):
    a = x[0]
    b = x[1]
    for i in range(n):
        a, b = b, 0.7 * a * x[i % 8] + 0.3 * b * b
    return a * b


def three_rotated(x: Floats, n: int):
    a = x[0]
    b = x[1]
    c = x[2]
    for i in range(n):
        a, b, c = b * c, c, 0.8 * a + 0.1 * x[i % 8]
    return a + 2.0 * b + 3.0 * c


def break_on_sum(x: Floats, n: int):
    s = x[7]
    for i in range(n):
        s += x[i % 8] * x[i % 8]
        if s > 3.2:
            break
    return s * s


def break_before_update(x: Floats, n: int):
    s = x[7]
    for i in range(n):
        if s * x[i % 8] > 1.5:
            break
        s = s * (x[i % 8] + 0.4)
    return s


def break_keeps_item(x: Floats, n: int):
    found = x[2]
    for i in range(n):
        if x[i % 8] > 1.2:
            found = x[i % 8] * found
            break
    return found * found


def continue_some(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        if i % 3 == 1:
            continue
        s = s * x[i % 8] * 0.9 + 0.2
    return s


def continue_after_update(x: Floats, n: int):
    s = x[0]
    c = x[1]
    for i in range(n):
        c = c * x[i % 8]
        if c < 0.5:
            c = c + 0.6
            continue
        s = s * 0.5 + c * c
    return s + c


def continue_and_break(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        if x[i % 8] < 0.5:
            continue
        s = s * x[i % 8] + 0.3 * s
        if s > 2.0:
            break
        s = s + x[i % 8] * x[i % 8]
    return s


def return_in_loop(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        s = s * (0.6 + x[i % 8])
        if s > 1.9:
            return s * x[(i + 1) % 8]
    return s + x[5] * x[5]


def return_from_nested(x: Floats, n: int):
    s = x[3]
    for i in range(n):
        for j in range(3):
            s = s + 0.1 * s * x[(i + j) % 8]
            if s > 1.7:
                return s * s * x[j]
        s = s * x[i % 8] + 0.1
    return s


def returns_in_branches(x: Floats, n: int):
    if n == 0:
        return x[0] * x[0]
    if n < 3:
        s = x[1] * x[2]
        for i in range(n):
            s = s * x[i]
        return s
    elif n < 10:
        return x[3] / x[4]
    return x[5] * x[6] * x[7]


def nested(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        for j in range(i % 4 + 1):
            s = s * (0.85 + 0.1 * x[(i + j) % 8])
        s = 0.5 * s + 0.2 * x[i % 8]
    return s


def nested_three_deep(x: Floats, n: int):
    a = x[0]
    b = x[1]
    c = x[2]
    for i in range(n % 9):
        a = 0.5 * a * x[i % 8] + 0.1
        for j in range(i % 3):
            b = 0.6 * b * a + x[j]
            for k in range(j + 1):
                c = 0.5 * c * b + a * x[k]
            a = a * b * 0.3
    return a * b + c


def nested_break_continue(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        for j in range(5):
            if (i + j) % 2 == 1:
                continue
            s = s * (0.7 + 0.3 * x[j])
            if s > 1.6:
                break
        if s < 0.3:
            s = s + 1.0
            continue
        s = s * (1.0 + 0.1 * x[i % 8])
        if s > 2.5:
            break
    return s


def while_counter(x: Floats, n: int):
    s = x[0]
    i = 0
    while i < n:
        s = 0.5 * s * x[i % 8] + x[(i + 1) % 8]
        i += 2
    return s


def while_value(x: Floats, n: int):
    s = x[3]
    i = 0
    while s < 2.7 and i < n:
        s = s * 1.1 + 0.1 * x[i % 8] * s
        i = i + 1
    return s


def while_true(x: Floats, n: int):
    s = x[0]
    i = 0
    while True:
        if i >= n:
            break
        s = s + 0.3 * x[i % 8] * (1.0 - s)
        i += 1
        if s > 0.98:
            break
    return s * s


def while_halving(x: Floats, n: int):
    s = x[0]
    m = n
    while m > 0:
        if m % 2 == 1:
            s = s * x[m % 8]
            m -= 1
            continue
        s = s + x[2] * s * s * 0.3
        m = m // 2
    return s


def range_from_one(x: Floats, n: int):
    s = x[0]
    for i in range(1, n):
        s = s * x[i % 8] + 0.1 * s
    return s


def range_backwards(x: Floats, n: int):
    s = x[0]
    for i in range(n, 0, -1):
        s = 0.6 * s * s + 0.3 * x[i % 8]
    return s


def range_backwards_by_two(x: Floats, n: int):
    s = x[0]
    for i in range(n - 1, -1, -2):
        s = s * x[i % 8] + 0.2
    return s


def range_by_three(x: Floats, n: int):
    s = x[1]
    for i in range(2, n, 3):
        s = s * x[i % 8] + 0.4
    return s


def value_after_loop(x: Floats, n: int):
    last = 0
    a = x[0]
    for i in range(n):
        last = i
        a = x[i % 8] * x[i % 8]
    return a * x[last % 8] * x[(last + 1) % 8]


def index_reassigned(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        j = (i * 3) % 8
        s = s * x[j] * 0.9
        j = (j + 1) % 8
        s = s + 0.2 * x[j] * s
    return s


def integer_state(x: Floats, n: int):
    s = x[0]
    state = 3
    for i in range(n):
        state = (state * 5 + 3) % 8
        s = s * x[state] + 0.2
    return s * x[state]


def carried_branch(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        if s > 0.8:
            s = s * 0.5 * x[i % 8]
        else:
            s = s * s + x[i % 8]
    return s


def elif_chain(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        if i % 4 == 0:
            s = s * x[i % 8]
        elif s > 1.2:
            s = s * s * 0.4
        elif i % 4 == 3:
            s = x[i % 8] / (1.0 + s)
        else:
            s = s + 0.1 * x[i % 8]
    return s


def ternary(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        s = s * x[i % 8] if x[i % 8] > 0.9 else 0.7 * s + x[i % 8] * x[i % 8]
    return s


def short_circuit(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        if i > 0 and x[i % 8] > x[(i - 1) % 8]:
            s = s * x[(i - 1) % 8]
        if i == 2 or not s < 1.0:
            s = s * 0.6 + 0.1 * x[i % 8]
    return s


def chained_comparison(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        if 0.5 < s <= 0.9:
            s = s * s + x[i % 8]
        else:
            s = 0.5 * s * x[i % 8] + 0.3
    return s


def running_maximum(x: Floats, n: int):
    m = x[3]
    for i in range(n):
        if x[i % 8] * x[(i + 1) % 8] > m:
            m = x[i % 8] * x[(i + 1) % 8]
    return m * m


def variable_of_both_branches(x: Floats, n: int):
    if n > 1:
        a = x[0] * x[1]
        b = x[2]
    else:
        b = x[3] * x[3]
        a = b * x[4]
    if n > 5:
        a = a * b
    return a * b


def loop_in_branch(x: Floats, n: int):
    s = x[0]
    if n > 3:
        for i in range(n):
            if i % 2 == 0:
                for j in range(2):
                    s = s * (0.8 + 0.2 * x[(i + j) % 8])
            else:
                s = s * s
    else:
        while s < 1.1:
            s = s * (1.0 + 0.3 * x[1])
    return s


def loops_in_sequence(x: Floats, n: int):
    s = x[0]
    for i in range(n):
        s = 0.5 * s * s + 0.4 * x[i % 8]
    first = s
    for i in range(n):
        s = s * x[i % 8] * 0.9 + first
    first = first * s
    for i in range(3):
        first = first * x[i] + s
    return first


def static_loops(x: Floats, n: int):
    s = x[0]
    for i in range(4):
        for j in range(3):
            s = s * (0.9 + 0.1 * x[i + j])
        if i == 2:
            s = s + x[i] * x[n % 8]
    return s


def static_loop_too_long_to_unroll(x: Floats, n: int):
    s = x[0]
    for i in range(45):
        s = 0.3 * s * s + 0.6 * x[(i + n) % 8]
    return s


def reassigned_after_use(x: Floats, n: int):
    a = x[0]
    b = a * a
    a = x[1] * b
    c = a * b
    b = c * c
    a = a * b + c
    for i in range(n):
        a = a * x[i % 8] + b
    return a


def local_product_and_quotient(x: Floats, n: int):
    a = x[0]
    a *= x[1]
    a *= a
    a /= x[2]
    for i in range(n):
        a /= 0.8 + 0.3 * x[i % 8]
        a -= 0.1 * a * x[(i + 2) % 8]
    return a


PROGRAMS = [
    value
    for value in list(globals().values())
    if callable(value) and list(getattr(value, "__annotations__", ())) == ["x", "n"]
]


def kernel_of(program: Callable[..., float]) -> wp.Kernel:
    """Return a kernel that evaluates the program with the trip count of its thread."""
    function = wp.func(program)

    @wp.kernel
    def evaluate(x: Floats, trips: Ints, out: Floats):
        t = wp.tid()
        out[t] = function(x, trips[t])

    return evaluate


def check_trips(kernel: wp.Kernel) -> np.ndarray:
    """Check the gradients of a kernel (x, trip count of every thread, result of every thread); return the results."""
    trips = wp.array(TRIPS, dtype=wp.int32)

    def run(x: wp.array) -> wp.array:
        out = wp.zeros(len(TRIPS), dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=len(TRIPS), inputs=[x, trips], outputs=[out])
        return out

    return check_gradients(run, X)[0]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Callable[..., float]) -> None:
    values = check_trips(kernel_of(program))
    np.testing.assert_allclose(values, [program(X, int(n)) for n in TRIPS], rtol=1e-13)
