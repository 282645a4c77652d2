"""Forward mode and forward over reverse on the interpreter, against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.ir.core import Function
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell
from warp._src.lang.source import build_kernel
from warp._src.passes import pipeline

f = wp.float64
STEP = 1e-6
N = 3


@wp.struct
class Body:
    mass: f
    place: wp.vec3d


@wp.func
def step(s: f, x: f):
    if s > f(0.9):
        return s * s * f(0.5) + wp.sin(s * x)
    return wp.exp(-s) / (x + f(2.0))


@wp.kernel
def loop_kernel(x: wp.array(dtype=f), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=f)):
    t = wp.tid()
    s = x[t]
    for i in range(t + 3):
        s = step(s, v[t][0])
    out[t] = s * wp.length(v[t])


@wp.kernel
def break_kernel(x: wp.array(dtype=f), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=f)):
    t = wp.tid()
    s = x[t]
    k = 0
    while True:
        s = s * (f(1.1) + f(0.1) * v[t][1])
        k += 1
        if s > f(2.0) or k > 9:
            break
    out[t] = s


@wp.kernel
def rotation_kernel(x: wp.array(dtype=f), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=f)):
    t = wp.tid()
    w = wp.cross(v[t], wp.vec3d(x[t], f(1.0), x[t] * x[t]))
    q = wp.normalize(wp.quat_from_axis_angle(wp.normalize(w), x[t]))
    u = wp.quat_rotate(q, v[t])
    m = wp.outer(u, w)
    out[t] = wp.dot(m * v[t], u) + wp.max(x[t], u[0]) + wp.trace(m)


@wp.kernel
def struct_kernel(x: wp.array(dtype=f), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=f)):
    t = wp.tid()
    b = Body()
    b.mass = x[t] * x[t]
    b.place = v[t] * b.mass
    b.place[1] = b.place[0] * x[t]
    out[t] = wp.dot(b.place, v[t]) / b.mass


@wp.kernel
def atomic_kernel(x: wp.array(dtype=f), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=f)):
    t = wp.tid()
    wp.atomic_add(out, 0, x[t] * x[t])
    out[1] += wp.length(v[t])
    wp.atomic_max(out, 2, x[t] * v[t][2])


KERNELS = [loop_kernel, break_kernel, rotation_kernel, struct_kernel, atomic_kernel]


def front_end(kernel: Any) -> Function:
    return build_kernel(kernel, [type for _, type in kernel.parameters])


def inputs() -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(3)
    values = [rng.uniform(0.3, 1.2, N), rng.uniform(0.4, 1.0, (N, 3)), np.zeros(N)]
    directions = [rng.normal(size=value.shape) for value in values[:2]]
    return values, [*directions, np.zeros(N)]


def shifted(values: Sequence[np.ndarray], directions: Sequence[np.ndarray], h: float) -> list[np.ndarray]:
    return [value + h * direction for value, direction in zip(values, directions, strict=True)]


def difference(function: Callable[[list[np.ndarray]], list[np.ndarray]]) -> list[np.ndarray]:
    values, directions = inputs()
    above, below = function(shifted(values, directions, STEP)), function(shifted(values, directions, -STEP))
    return [(a - b) / (2 * STEP) for a, b in zip(above, below, strict=True)]


def cells(values: Sequence[np.ndarray], gradients: Sequence[np.ndarray]) -> list[ArrayCell]:
    types = [f, wp.vec3d, f]
    return [ArrayCell(v.copy(), g, t) for v, g, t in zip(values, gradients, types, strict=True)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_the_tangent_is_the_directional_derivative(kernel: Any) -> None:
    function = front_end(kernel)
    tangent = pipeline.forward_mode(function)
    assert not tangent.problems
    values, directions = inputs()

    def outputs(values: list[np.ndarray]) -> list[np.ndarray]:
        memory = [value.copy() for value in values]
        run_kernel(pipeline.forward(function), N, memory)
        return [memory[2]]

    memory, along = [value.copy() for value in values], [direction.copy() for direction in directions]
    run_kernel(tangent.function, N, [*memory, *along])
    np.testing.assert_array_equal(memory[2], outputs(values)[0])
    np.testing.assert_allclose(along[2], difference(outputs)[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("slots", [2, 3, None])
@pytest.mark.parametrize("kernel", KERNELS[:4], ids=lambda kernel: kernel.key)
def test_the_tangent_of_the_adjoint_multiplies_by_the_hessian(kernel: Any, slots: int | None) -> None:
    function = front_end(kernel)
    variant: dict[str, Any] = {"may_alias": False, "dimensions": frozenset({0})}
    reverse = pipeline.backward(function, **variant)
    tangent = pipeline.forward_over_reverse(function, **variant)
    assert not tangent.problems
    values, directions = inputs()
    seed = np.array([0.7, -1.3, 0.4])

    def gradients(values: list[np.ndarray]) -> list[np.ndarray]:
        found = [np.zeros(N), np.zeros((N, 3)), seed.copy()]
        run_kernel(reverse.function, N, cells(values, found), order="descending")
        return found[:2]

    found = [np.zeros(N), np.zeros((N, 3)), seed.copy()]
    along = [np.zeros(N), np.zeros((N, 3)), np.zeros(N)]
    run_kernel(tangent.function, N, [*cells(values, found), *cells(directions, along)], order="descending", slots=slots)
    for product, expected in zip(along, difference(gradients), strict=False):
        np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-7)
