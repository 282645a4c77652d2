"""Products with Hessians against central differences of gradients: kernels that overwrite what they read, and tapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.autograd.checking import check_gradients, numpy_of

import warp as wp

f = wp.float64
STEP = 1e-4
START = np.array([0.7, -0.4, 1.1, 0.5])
DIRECTION = np.array([0.3, 1.0, -0.6, 0.8])


@wp.kernel
def square_in_place(x: wp.array(dtype=f)):
    i = wp.tid()
    x[i] = x[i] * x[i] * wp.cos(x[i])


@wp.kernel
def grow_in_loop(x: wp.array(dtype=f), limit: f):
    i = wp.tid()
    for k in range(3 + i):
        if x[i] > limit:
            break
        if k == 1:
            continue
        x[i] = x[i] * x[i] + f(0.3) * x[i] + f(0.1)


@wp.kernel
def product_scan(x: wp.array(dtype=f)):
    for i in range(1, x.shape[0]):
        x[i] = x[i] * x[i - 1] + wp.sin(x[i])


@wp.kernel
def swap_ends(x: wp.array(dtype=f)):
    last = x.shape[0] - 1
    kept = x[0] * x[1]
    x[0] = x[last] * kept
    x[last] = kept * kept


@wp.kernel
def claim(counter: wp.array(dtype=int), x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    place = wp.atomic_add(counter, 0, 1)
    before = wp.atomic_add(y, 0, x[place] * x[i] * x[i])
    y[place] = y[place] + before * x[i]


@wp.kernel
def smooth(x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = x[i] * x[(i + 1) % x.shape[0]] + wp.sin(x[i])


@wp.kernel
def reduce(x: wp.array(dtype=f), total: wp.array(dtype=f)):
    i = wp.tid()
    wp.atomic_add(total, 0, f(i + 1) * x[i] * x[i] * x[i])


def in_place(x: Any) -> Any:
    for _ in range(2):
        wp.launch(square_in_place, 4, inputs=[x])
    return x


def loop(x: Any) -> Any:
    wp.launch(grow_in_loop, 4, inputs=[x, 1.0])
    return x


def scan(x: Any) -> Any:
    wp.launch(product_scan, 1, inputs=[x])
    wp.launch(swap_ends, 1, inputs=[x])
    return x


def counter(x: Any) -> Any:
    y = wp.zeros(4, dtype=f)
    wp.launch(claim, 4, inputs=[wp.zeros(1, dtype=int), x, y])
    return y


def views(x: Any) -> Any:
    wp.launch(smooth, 2, inputs=[x[::2], x[1::2]])
    wp.launch(smooth, 4, inputs=[x[::-1], x])
    return x


def two_buffers(x: Any) -> Any:
    y = wp.zeros(4, dtype=f)
    for _ in range(3):
        wp.launch(smooth, 4, inputs=[x, y])
        x, y = y, x
    return x


def copied_and_cleared(x: Any) -> Any:
    y = wp.zeros(4, dtype=f)
    wp.launch(smooth, 4, inputs=[x, y])
    wp.copy(x, y)
    wp.launch(square_in_place, 4, inputs=[y])
    x[1:2].zero_()
    wp.launch(smooth, 4, inputs=[y, x])
    wp.launch(smooth, 4, inputs=[x, y])
    return y


def total_of(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        total = wp.zeros(1, dtype=f)
        wp.launch(reduce, 4, inputs=[program(x), total])
        return total

    return run


def gradient_at(function: Callable[[Any], Any], values: np.ndarray) -> np.ndarray:
    x = wp.array(values, dtype=f, requires_grad=True)
    with wp.Tape() as tape:
        total = function(x)
    tape.backward(grads={total: np.ones(1)})
    return numpy_of(x.grad)


ON_CPU = [pytest.param(program, marks=pytest.mark.cpu) for program in (counter, views)]


@pytest.mark.parametrize("program", [in_place, loop, scan, *ON_CPU, two_buffers, copied_and_cleared])
def test_what_is_overwritten(program: Callable[[Any], Any]) -> None:
    function = total_of(program)
    expected = sum(
        weight * gradient_at(function, START + offset * STEP * DIRECTION)
        for weight, offset in [(8.0, 1), (-8.0, -1), (-1.0, 2), (1.0, -2)]
    ) / (12.0 * STEP)
    x = wp.array(START, dtype=f)
    for _ in range(2):
        (product,) = wp.autograd.hvp(function, inputs=[x], tangents=[DIRECTION])
        np.testing.assert_allclose(product.numpy(), expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(x.numpy(), START)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("is_singular", [False, True])
def test_determinants(size: int, is_singular: bool) -> None:
    kind = wp.types.matrix((size, size), f)

    @wp.kernel(module="unique")
    def determinant(m: wp.array(dtype=kind), total: wp.array(dtype=f)):
        wp.atomic_add(total, 0, wp.determinant(m[0]))

    rng = np.random.default_rng(3)
    values, direction = rng.normal(size=(2, size, size))
    if is_singular:
        values[1] = values[0]
    # The determinant is linear in each row: the second derivative is that of replacing two of them.
    expected = np.zeros((size, size))
    for row, column in np.ndindex(size, size):
        for other in set(range(size)) - {row}:
            replaced = values.copy()
            replaced[row], replaced[other] = np.eye(size)[column], direction[other]
            expected[row, column] += np.linalg.det(replaced)
    m = wp.array(values[None], dtype=kind)
    (product,) = wp.autograd.hvp(determinant, 1, [m], [wp.zeros(1, dtype=f)], [direction[None]])
    np.testing.assert_allclose(product.numpy()[0], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_inverses_through_gradients_in_kernels(size: int) -> None:
    kind = wp.types.matrix((size, size), f)

    @wp.func
    def volume(m: kind):
        return wp.log(wp.determinant(m))

    @wp.kernel(module="unique")
    def slopes(m: wp.array(dtype=kind), y: wp.array(dtype=kind)):
        y[0] = wp.grad(volume)(m[0])

    rng = np.random.default_rng(5)
    values, seed = np.eye(size) + 0.2 * rng.normal(size=(size, size)), rng.normal(size=(size, size))
    m = wp.array(values[None], dtype=kind, requires_grad=True)
    y = wp.zeros_like(m)
    with wp.Tape() as tape:
        wp.launch(slopes, 1, inputs=[m], outputs=[y])
    tape.backward(grads={y: wp.array(seed[None], dtype=kind)})
    # The gradient is the transposed inverse, and d M^-1 = -M^-1 dM M^-1.
    inverse = np.linalg.inv(values)
    np.testing.assert_allclose(y.numpy()[0], inverse.T, rtol=1e-10)
    np.testing.assert_allclose(m.grad.numpy()[0], -(inverse @ seed @ inverse).T, rtol=1e-9)


@wp.func
def swing(angle: f, stiffness: f, steps: int):
    a, v = angle, f(0.0)
    for _ in range(steps):
        v -= f(0.1) * stiffness * wp.sin(a)
        a += f(0.1) * v
        if a > f(2.0):
            break
    return a * a * v


@wp.func
def cube_root(start: f, x: f):
    z = start
    while wp.abs(z * z * z - x) > f(1e-9):
        z = z - (z * z * z - x) / (f(3.0) * z * z)
    return z * start


@wp.func
def turned(v: wp.vec3d, steps: int):
    s = v
    for k in range(steps):
        s = wp.normalize(wp.cross(s, v) + v * f(0.5)) * wp.length(s)
        s[k % 3] *= v[0]
    return wp.dot(s, v)


@wp.kernel
def swings(x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    by_angle, by_stiffness, _ = wp.grad(swing)(x[i], x[0] + f(1.5), 4 + i)
    y[i] = by_angle * by_angle + by_stiffness * x[i]


@wp.kernel
def roots(x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    by_start, by_x = wp.grad(cube_root)(x[i] + f(1.7), x[i] * x[i] + f(1.0))
    again, _ = wp.grad(cube_root)(by_start + f(2.0), f(2.0))
    y[i] = by_x * again


@wp.kernel
def descents(x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    s = wp.vec3d(x[i], x[(i + 1) % 4], x[(i + 2) % 4])
    for _ in range(2 + i % 2):
        slope, _ = wp.grad(turned)(s, 3)
        s = s - slope * f(0.05)
    y[i] = s[0] * s[1] + s[2]


def gradients_in_kernels(kernel: Any, x: Any) -> Any:
    y = wp.zeros(4, dtype=f)
    wp.launch(kernel, 4, inputs=[x, y])
    return y


@pytest.mark.parametrize("kernel", [swings, roots, descents])
def test_gradients_of_loops_have_gradients(kernel: Any) -> None:
    check_gradients(lambda x: gradients_in_kernels(kernel, x), START, rtol=1e-6)


def test_gradients_of_loops_have_second_derivatives() -> None:
    function = total_of(lambda x: gradients_in_kernels(swings, x))
    expected = (gradient_at(function, START + STEP * DIRECTION) - gradient_at(function, START - STEP * DIRECTION)) / (
        2.0 * STEP
    )
    (product,) = wp.autograd.hvp(function, inputs=[wp.array(START, dtype=f)], tangents=[DIRECTION])
    np.testing.assert_allclose(product.numpy(), expected, rtol=1e-6)
