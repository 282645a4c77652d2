"""Products with Jacobians and Hessians through launches, copies and functions, against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError, AutogradError

f = wp.float64
STEP = 1e-5


@wp.kernel
def spin(x: wp.array(dtype=f), axis: wp.array(dtype=wp.vec3d), steps: int, out: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    q = wp.quat_from_axis_angle(wp.normalize(axis[i]), x[i])
    p = axis[i]
    for _ in range(steps):
        p = wp.quat_rotate(q, p) + wp.vec3d(x[i], f(0.1), wp.sin(p[0]))
    out[i] = p


@wp.kernel
def energy(p: wp.array(dtype=wp.vec3d), total: wp.array(dtype=f)):
    i = wp.tid()
    wp.atomic_add(total, 0, wp.dot(p[i], p[i]) * wp.exp(f(0.1) * p[i][1]))


@wp.kernel
def in_place(x: wp.array(dtype=f)):
    i = wp.tid()
    x[i] = x[i] * x[i] * wp.cos(x[i])


@wp.kernel
def cubes(x: wp.array(dtype=f), total: wp.array(dtype=f)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * x[i] * x[i])


@wp.func_native("return 0.5 * x;")
def halved(x: f) -> f: ...


@wp.kernel
def halve(x: wp.array(dtype=f), y: wp.array(dtype=f)):
    y[0] = halved(x[0])


def chain(x: Any, axis: Any) -> Any:
    """Two launches with a copy between them."""
    p = wp.zeros(len(x), dtype=wp.vec3d)
    q = wp.zeros_like(p)
    total = wp.zeros(1, dtype=f)
    wp.launch(spin, dim=len(x), inputs=[x, axis, 3], outputs=[p])
    wp.copy(q, p)
    wp.launch(energy, dim=len(x), inputs=[q], outputs=[total])
    return total


def samples() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    x, axis = rng.uniform(0.2, 1.0, 3), rng.uniform(-1.0, 1.0, (3, 3))
    return x, axis, rng.normal(size=3), rng.normal(size=(3, 3))


def arrays(x: np.ndarray, axis: np.ndarray) -> tuple[Any, Any]:
    return wp.array(x, dtype=f), wp.array(axis, dtype=wp.vec3d)


def along(function: Callable[[np.ndarray, np.ndarray], Any]) -> Any:
    x, axis, dx, daxis = samples()
    above = function(x + STEP * dx, axis + STEP * daxis)
    below = function(x - STEP * dx, axis - STEP * daxis)
    return (above - below) / (2 * STEP)


def test_a_kernel() -> None:
    def values(x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        out = wp.zeros(3, dtype=wp.vec3d)
        wp.launch(spin, dim=3, inputs=[*arrays(x, axis), 4], outputs=[out])
        return out.numpy().copy()

    x, axis, dx, daxis = samples()
    out = wp.zeros(3, dtype=wp.vec3d)
    (product,) = wp.autograd.jvp(spin, 3, [*arrays(x, axis), 4], [out], [dx, daxis, None])
    np.testing.assert_allclose(product.numpy(), along(values), rtol=1e-7, atol=1e-9)
    assert not out.numpy().any(), "the outputs are left as they were"


def test_a_function_of_launches_and_copies() -> None:
    x, axis, dx, daxis = samples()
    (product,) = wp.autograd.jvp(chain, inputs=arrays(x, axis), tangents=[dx, daxis])
    expected = along(lambda x, axis: chain(*arrays(x, axis)).numpy().copy())
    np.testing.assert_allclose(product.numpy(), expected, rtol=1e-7)


def test_an_in_place_kernel_runs_once() -> None:
    def run(x: Any) -> Any:
        wp.launch(in_place, dim=3, inputs=[x])
        wp.launch(in_place, dim=3, inputs=[x])
        return x

    x, _, dx, _ = samples()
    given = wp.array(x, dtype=f)
    (product,) = wp.autograd.jvp(run, inputs=[given], tangents=[dx])

    def values(x: np.ndarray, _: np.ndarray) -> np.ndarray:
        for _i in range(2):
            x = x * x * np.cos(x)
        return x

    np.testing.assert_allclose(product.numpy(), along(values), rtol=1e-6)
    np.testing.assert_array_equal(given.numpy(), x)


def test_views_share_their_tangents() -> None:
    def run(x: Any) -> Any:
        total = wp.zeros(1, dtype=f)
        wp.launch(cubes, dim=2, inputs=[x[1:]], outputs=[total])
        return total

    x, _, dx, _ = samples()
    (product,) = wp.autograd.jvp(run, inputs=[wp.array(x, dtype=f)], tangents=[dx])
    np.testing.assert_allclose(product.numpy(), [3 * (x[1:] ** 2 * dx[1:]).sum()])


def test_the_hessian_of_a_kernel_is_diagonal() -> None:
    x, _, dx, _ = samples()
    given = wp.array(x, dtype=f)
    (product,) = wp.autograd.hvp(cubes, 3, [given], [wp.zeros(1, dtype=f)], [dx])
    np.testing.assert_allclose(product.numpy(), 6 * x * dx)
    assert not given.requires_grad


def test_the_hessian_of_a_function() -> None:
    def gradients(x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        given = arrays(x, axis)
        for array in given:
            array.requires_grad = True
        with wp.Tape() as tape:
            total = chain(*given)
        tape.backward(grads={total: np.ones(1)})
        return np.concatenate([array.grad.numpy().ravel() for array in given])

    x, axis, dx, daxis = samples()
    products = wp.autograd.hvp(chain, inputs=arrays(x, axis), tangents=[dx, daxis])
    found = np.concatenate([product.numpy().ravel() for product in products])
    np.testing.assert_allclose(found, along(gradients), rtol=1e-6, atol=1e-8)


@pytest.mark.cpu
def test_inputs_in_read_only_memory() -> None:
    values = np.array([0.5, 1.5])
    values.flags.writeable = False
    x = wp.array(values, dtype=f, copy=False)

    @wp.kernel
    def cube_sum(x: wp.array(dtype=f), total: wp.array(dtype=f)):
        i = wp.tid()
        wp.atomic_add(total, 0, x[i] * x[i] * x[i])

    direction = np.array([1.0, 2.0])
    (first,) = wp.autograd.jvp(cube_sum, 2, [x], [wp.zeros(1, dtype=f)], [direction])
    (second,) = wp.autograd.hvp(cube_sum, 2, [x], [wp.zeros(1, dtype=f)], [direction])
    np.testing.assert_allclose(first.numpy(), [(3 * values**2) @ direction])
    np.testing.assert_allclose(second.numpy(), 6 * values * direction)


def test_what_has_no_product() -> None:
    x, axis = arrays(*samples()[:2])
    with pytest.raises(ArgumentError, match=r"tangents\[0\] must have the shape \(3,\)"):
        wp.autograd.jvp(cubes, 3, [x], [wp.zeros(1, dtype=f)], [np.ones(2)])
    with pytest.raises(ArgumentError, match="tangents has 0 entries"):
        wp.autograd.jvp(cubes, 3, [x], [wp.zeros(1, dtype=f)], [])
    with pytest.raises(ArgumentError, match=r"tangents\[2\] must be None"):
        wp.autograd.jvp(spin, 3, [x, axis, 4], [wp.zeros(3, dtype=wp.vec3d)], [None, None, np.ones(1)])
    with pytest.raises(ArgumentError, match="one output with one element"):
        wp.autograd.hvp(spin, 3, [x, axis, 4], [wp.zeros(3, dtype=wp.vec3d)], [np.ones(3), None, None])
    with pytest.raises(AutogradError, match="native function 'halved' in line"):
        wp.autograd.jvp(halve, 1, [x], [wp.zeros(1, dtype=f)], [np.ones(3)])
