"""Gradients through calls: several results, changed arguments, overloads, closures, custom gradients and replays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.checking import Values, array_of, check_gradients, gradients_of

import warp as wp

Floats = wp.array(dtype=wp.float64)
Ints = wp.array(dtype=wp.int32)

X = np.array([0.71, 1.13, -0.94, 0.43, 1.21, 0.58])
SCALE = wp.constant(1.7)


@wp.func
def polar(a: wp.float64, b: wp.float64):
    return wp.sqrt(a * a + b * b), wp.atan2(b, a)


@wp.kernel
def several_results(x: Floats, out: Floats):
    t = wp.tid()
    radius, angle = polar(x[t], x[0])
    again, _ = polar(radius, angle)
    out[t] = radius * again + SCALE * angle


def several_results_reference(x: Values) -> Values:
    radius, angle = np.hypot(x, x[0]), np.arctan2(x[0], x)
    return radius * np.hypot(radius, angle) + 1.7 * angle


@wp.func
def changes_its_argument(a: wp.float64, n: int):
    a = a * a
    for i in range(n):
        a = a * 0.5 + 0.25 * a * a
    return a * 3.0


@wp.kernel
def argument_changed(x: Floats, out: Floats):
    t = wp.tid()
    a = x[t]
    b = changes_its_argument(a, t)
    out[t] = a * b + changes_its_argument(b, 1)


def changed_by_numpy(a: float, n: int) -> float:
    a = a * a
    for _ in range(n):
        a = a * 0.5 + 0.25 * a * a
    return a * 3.0


def argument_changed_reference(x: Values) -> Values:
    b = np.array([changed_by_numpy(a, t) for t, a in enumerate(x)])
    return x * b + np.array([changed_by_numpy(value, 1) for value in b])


@wp.func
def early(a: wp.float64):
    if a < 0.0:
        return a * a
    if a < 0.6:
        return a * a * a
    return 2.0 * a


@wp.kernel
def early_returns(x: Floats, out: Floats):
    t = wp.tid()
    s = x[t]
    for i in range(3):
        s = early(s) * 0.4 + 0.1 * x[i]
    out[t] = s


def early_returns_reference(x: Values) -> Values:
    s = x
    for i in range(3):
        s = np.where(s < 0.0, s * s, np.where(s < 0.6, s**3, 2.0 * s)) * 0.4 + 0.1 * x[i]
    return s


@wp.func
def scaled(a: wp.float64):
    return a * a


@wp.func
def scaled(a: wp.vec2d):  # noqa: F811
    return a[0] * a[1]


@wp.func
def scaled(a: int):  # noqa: F811
    return wp.float64(a) * 0.5


@wp.kernel
def overloads(x: Floats, out: Floats):
    t = wp.tid()
    out[t] = scaled(x[t]) * scaled(wp.vec2d(x[t], x[1])) + scaled(t) * x[t]


def overloads_reference(x: Values) -> Values:
    return x**2 * x * x[1] + 0.5 * np.arange(len(x)) * x


@wp.struct
class Spring:
    length: wp.float64
    force: wp.float64


@wp.func
def stretched(spring: Spring, by: wp.float64):
    spring.length = spring.length * by
    spring.force = spring.force + spring.length * spring.length
    return spring, spring.length + spring.force


@wp.kernel
def struct_changed_by_callee(x: Floats, out: Floats):
    t = wp.tid()
    spring = Spring()
    spring.length = x[t]
    spring.force = x[t] * x[t]
    spring, total = stretched(spring, x[0])
    _, more = stretched(spring, x[1])  # which changes a copy
    out[t] = spring.length * spring.force + total * more


def struct_changed_by_callee_reference(x: Values) -> Values:
    length = x * x[0]
    force = x**2 + length**2
    longer = length * x[1]
    return length * force + (length + force) * (longer + force + longer**2)


@wp.func
def inner(x: Floats, i: int, by: wp.float64):
    return x[i] * by


@wp.func
def outer(x: Floats, n: int, by: wp.float64):
    s = by
    for i in range(n):
        s = s + inner(x, i, s)
    return s


@wp.kernel
def arrays_as_arguments(x: Floats, out: Floats):
    t = wp.tid()
    out[t] = outer(x, t, inner(x, t, 0.5 * x[0])) * outer(x, 2, x[t])


def arrays_as_arguments_reference(x: Values) -> Values:
    def outer_by_numpy(n: int, by: float) -> float:
        for i in range(n):
            by = by + x[i] * by
        return by

    return np.array([outer_by_numpy(t, x[t] * 0.5 * x[0]) * outer_by_numpy(2, x[t]) for t in range(len(x))])


def power_function(exponent: int) -> Callable[[float], float]:
    @wp.func
    def power(a: wp.float64):
        result = a
        for _ in range(exponent - 1):
            result = result * a
        return result

    return power


square, cube = power_function(2), power_function(3)


@wp.kernel
def closures(x: Floats, out: Floats):
    t = wp.tid()
    out[t] = cube(square(x[t])) + square(cube(x[t]) + x[0])


def closures_reference(x: Values) -> Values:
    return x**6 + (x**3 + x[0]) ** 2


@wp.func
def cubed(a: wp.float64):
    return a * a * a


@wp.func_grad(cubed)
def adjoint_of_cubed(a: wp.float64, adj_ret: wp.float64):
    wp.adjoint[a] += 3.0 * a * a * adj_ret


@wp.kernel
def custom_gradient_in_loop(x: Floats, out: Floats):
    t = wp.tid()
    s = x[t]
    for i in range(t):
        if i % 2 == 0:
            s = cubed(s) * 0.5 + 0.2 * x[i]
        else:
            s = cubed(x[i]) + s
    out[t] = s * cubed(s)


def custom_gradient_in_loop_reference(x: Values) -> Values:
    results = []
    for t, s in enumerate(x):
        for i in range(t):
            s = s**3 * 0.5 + 0.2 * x[i] if i % 2 == 0 else x[i] ** 3 + s
        results.append(s**4)
    return np.array(results)


@wp.func
def both_parts(a: wp.float64, b: wp.float64):
    return a * b, a / b


@wp.func_grad(both_parts)
def adjoint_of_both_parts(a: wp.float64, b: wp.float64, adj_product: wp.float64, adj_quotient: wp.float64):
    wp.adjoint[a] += b * adj_product + adj_quotient / b
    wp.adjoint[b] += a * adj_product - a / (b * b) * adj_quotient


@wp.kernel
def custom_gradient_of_two_results(x: Floats, out: Floats):
    t = wp.tid()
    product, quotient = both_parts(x[t], x[1])
    _unused, second = both_parts(product, x[t])
    out[t] = product * quotient + second


def custom_gradient_of_two_results_reference(x: Values) -> Values:
    return x**2 + x[1]


KERNELS = [value for value in list(globals().values()) if isinstance(value, wp.Kernel)]


def run_on(kernel: wp.Kernel, *others: wp.array) -> Callable[[wp.array], wp.array]:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=len(X), inputs=[x, *others], outputs=[out])
        return out

    return run


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_kernel(kernel: wp.Kernel) -> None:
    reference = globals()[f"{kernel.key}_reference"]
    np.testing.assert_allclose(check_gradients(run_on(kernel), X)[0], reference(X), rtol=1e-12)


@wp.func
def clipped(a: wp.float64):
    return wp.min(a, 1.0)


@wp.func_grad(clipped)
def adjoint_of_clipped(a: wp.float64, adj_ret: wp.float64):
    wp.adjoint[a] += 0.25 * adj_ret


@wp.func
def through(a: wp.float64):
    return 2.0 * clipped(a)


@wp.kernel
def straight_through(x: Floats, out: Floats):
    t = wp.tid()
    out[t] = through(x[t]) + clipped(x[t])


def test_custom_gradient_replaces_the_derivative_in_nested_calls() -> None:
    (values,), (gradient,) = gradients_of(run_on(straight_through), [X])
    weights = gradients_of(lambda x: wp.clone(x, requires_grad=True), [X])[1][0]
    np.testing.assert_allclose(values, 3.0 * np.minimum(X, 1.0), rtol=1e-15)
    np.testing.assert_allclose(gradient, 0.75 * weights, rtol=1e-15)


@wp.func
def numbered(counter: Ints, numbers: Ints, t: int):
    number = wp.atomic_add(counter, 0, 1)
    numbers[t] = number
    return number


@wp.func_replay(numbered)
def replay_of_numbered(counter: Ints, numbers: Ints, t: int):
    return numbers[t]


@wp.kernel
def gathered_by_number(x: Floats, counter: Ints, numbers: Ints, out: Floats):
    t = wp.tid()
    if t % 2 == 0:
        return
    n = numbered(counter, numbers, t)
    out[n] = x[n] * x[n]


def test_custom_replay_returns_what_the_forward_pass_kept() -> None:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        counter, numbers = wp.zeros(1, dtype=wp.int32), wp.zeros(len(X), dtype=wp.int32)
        wp.launch(gathered_by_number, dim=len(X), inputs=[x, counter, numbers], outputs=[out])
        assert counter.numpy()[0] == 3
        return out

    np.testing.assert_allclose(check_gradients(run, X)[0], [*(X[:3] ** 2), 0.0, 0.0, 0.0], rtol=1e-15)


@wp.func
def gathered(x: Floats, i: int):
    return x[i]


@wp.func_grad(gathered)
def adjoint_of_gathered(x: Floats, i: int, adj_ret: wp.float64):
    wp.atomic_add(wp.adjoint[x], i, 10.0 * adj_ret)


@wp.kernel
def doubled_gather(x: Floats, out: Floats):
    t = wp.tid()
    out[t] = gathered(x, 5 - t) * 2.0


def test_custom_gradient_adds_to_the_gradient_of_an_array() -> None:
    x = array_of(X, X)
    out = wp.zeros(6, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(doubled_gather, dim=6, inputs=[x], outputs=[out])
    seed = np.arange(6.0)
    tape.backward(grads={out: wp.array(seed, dtype=wp.float64)})
    np.testing.assert_array_equal(out.numpy(), 2.0 * X[::-1])
    np.testing.assert_array_equal(x.grad.numpy(), 20.0 * seed[::-1])
