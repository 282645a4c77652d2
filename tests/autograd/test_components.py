"""Gradients of component and field writes: vectors, matrices, quaternions, transforms, structs, local arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.checking import Values, check_gradients

import warp as wp

Floats = wp.array(dtype=wp.float64)

X = np.array([0.71, 1.13, -0.94, 0.43, 1.21, 0.58])


@wp.kernel
def overwritten(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec3d(x[t], x[0], x[1])
    v[0] = v[0] * v[1]
    v[0] = v[0] * v[0]
    v[2] = v[0] * x[t]
    v[2] = v[2] + v[1]
    out[t] = wp.dot(v, v)


def overwritten_reference(x: Values) -> Values:
    first = (x * x[0]) ** 2
    return first**2 + x[0] ** 2 + (first * x + x[0]) ** 2


@wp.kernel
def reset_to_constant(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec3d(x[t], x[t], x[t])
    w = v
    v[1] = 2.0
    w.x = w.y * w.z
    out[t] = wp.dot(v, w)


def reset_to_constant_reference(x: Values) -> Values:
    return x**3 + 2.0 * x + x**2


@wp.kernel
def augmented(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec2d(x[t], x[t] * x[t])
    v[0] *= v[1]
    v[1] /= x[0]
    v[0] += v[1]
    v[1] -= v[0] * x[t]
    v *= x[1]
    v += wp.vec2d(x[t], v[0])
    out[t] = v[0] * v[1]


def augmented_reference(x: Values) -> Values:
    a, b = x**3, x**2 / x[0]
    a = a + b
    b = b - a * x
    a, b = a * x[1], b * x[1]
    return (a + x) * (b + a)


@wp.kernel
def swapped(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec3d(x[t], x[t] * x[0], x[1])
    v[0], v[1] = v[1], v[0] * v[2]
    v.y, v.z = v.z, v.y
    out[t] = v[0] + 2.0 * v[1] * v[1] + 3.0 * v[2]


def swapped_reference(x: Values) -> Values:
    return x * x[0] + 2.0 * x[1] ** 2 + 3.0 * x * x[1]


@wp.kernel
def dynamic_index(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec3d(x[t], x[0], x[1])
    for k in range(t):
        v[k % 3] = v[(k + 1) % 3] * v[k % 3] + 0.1
        v[(k + 2) % 3] += 0.5 * v[k % 3]
    out[t] = v[t % 3] * v[0]


def dynamic_index_reference(x: Values) -> Values:
    results = []
    for t, value in enumerate(x):
        v = [value, x[0], x[1]]
        for k in range(t):
            v[k % 3] = v[(k + 1) % 3] * v[k % 3] + 0.1
            v[(k + 2) % 3] += 0.5 * v[k % 3]
        results.append(v[t % 3] * v[0])
    return np.array(results)


@wp.kernel
def written_in_branch(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec2d(x[t], x[t] * x[t])
    if x[t] > 0.6:
        v[0] = v[1] * x[0]
    else:
        v[1] = v[0] * v[1]
        if x[t] < 0.0:
            v[0] = 3.0
    v[0] = v[0] * v[1]
    out[t] = v[0] + v[1]


def written_in_branch_reference(x: Values) -> Values:
    a = np.where(x > 0.6, x**2 * x[0], np.where(x < 0.0, 3.0, x))
    b = np.where(x > 0.6, x**2, x**3)
    return a * b + b


@wp.kernel
def matrix_components(x: Floats, out: Floats):
    t = wp.tid()
    m = wp.mat22d(x[t], x[0], x[1], x[t] * x[t])
    m[0, 1] = m[0, 0] * m[1, 1]
    m[0, 0] *= m[0, 1]
    m[1, 0] += m[0, 0]
    m[1] = wp.vec2d(m[1, 0] * x[0], m[0, 1])
    r = m[0]
    out[t] = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0] + r[0] * r[1]


def matrix_components_reference(x: Values) -> Values:
    b = x**3
    a = x * b
    c = (x[1] + a) * x[0]
    return a * b - b * c + a * b


@wp.kernel
def quaternion_components(x: Floats, out: Floats):
    t = wp.tid()
    q = wp.quatd(x[t], x[0], x[1], 1.0)
    q[0] = q[1] * q[0]
    q[3] = q[0] * x[t] + q[3]
    q[1] = q[3]
    out[t] = q[0] + 2.0 * q[1] * q[2] + q[3] * q[3]


def quaternion_components_reference(x: Values) -> Values:
    a = x[0] * x
    d = a * x + 1.0
    return a + 2.0 * d * x[1] + d**2


@wp.kernel
def transform_components(x: Floats, out: Floats):
    t = wp.tid()
    f = wp.transformd(wp.vec3d(x[t], x[0], x[1]), wp.quatd(x[t], 0.0, 0.0, 1.0))
    f[0] = f[1] * f[0]
    f[1] = f[0] * x[t]
    f[3] = f[3] * f[2]
    p = wp.transform_get_translation(f)
    q = wp.transform_get_rotation(f)
    out[t] = p[0] * p[1] * p[2] + q[0] * q[0]


def transform_components_reference(x: Values) -> Values:
    a = x[0] * x
    return a * a * x * x[1] + (x * x[1]) ** 2


@wp.struct
class Pair:
    first: wp.float64
    second: wp.vec2d


@wp.struct
class Nested:
    pair: Pair
    scale: wp.float64


@wp.kernel
def struct_fields(x: Floats, out: Floats):
    t = wp.tid()
    p = Pair()
    p.first = x[t]
    p.second = wp.vec2d(x[t] * x[0], x[1])
    p.first = p.first * p.second[0]
    p.second[1] = p.first * p.second[1]
    p.second *= x[t]
    p.first -= p.second[1]
    out[t] = p.first * p.second[0]


def struct_fields_reference(x: Values) -> Values:
    a = x * x * x[0]
    b = x * x[0] * x
    c = a * x[1] * x
    return (a - c) * b


@wp.kernel
def nested_struct_fields(x: Floats, out: Floats):
    t = wp.tid()
    s = Nested()
    s.scale = x[t]
    s.pair.first = s.scale * x[0]
    s.pair.second[0] = s.pair.first * s.scale
    s.pair.second[1] = 1.0
    kept = s
    for i in range(t):
        s.pair.first = s.pair.first * s.scale * 0.7 + 0.2
        s.pair.second[i % 2] = s.pair.second[i % 2] * s.pair.first
        s.scale += 0.1
    out[t] = s.pair.second[0] * s.pair.second[1] + kept.pair.first * s.scale


def nested_struct_fields_reference(x: Values) -> Values:
    results = []
    for t, value in enumerate(x):
        scale, first, second = value, value * x[0], [value * x[0] * value, 1.0]
        kept = first
        for i in range(t):
            first = first * scale * 0.7 + 0.2
            second[i % 2] = second[i % 2] * first
            scale += 0.1
        results.append(second[0] * second[1] + kept * scale)
    return np.array(results)


@wp.kernel
def local_array(x: Floats, out: Floats):
    t = wp.tid()
    a = wp.zeros(shape=(3,), dtype=wp.float64)
    a[0] = x[t]
    a[1] = a[0] * x[0]
    a[0] = a[1] * a[0]
    a[2] += a[0] * a[1]
    for i in range(3):
        a[i] = a[i] * a[(i + 1) % 3]
    out[t] = a[0] + 2.0 * a[1] + 3.0 * a[2]


def local_array_reference(x: Values) -> Values:
    a, b = x * x * x[0], x * x[0]
    c = a * b
    a = a * b
    b = b * c
    c = c * a
    return a + 2.0 * b + 3.0 * c


@wp.kernel
def uninitialised_components(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec3d()
    m = wp.mat22d()
    for i in range(3):
        v[i] = x[(t + i) % 6] * x[t]
    m[1, 1] = v[2]
    m[0, 0] = v[0] * m[1, 1]
    out[t] = m[0, 0] + v[1] * m[0, 1] + wp.length(v)


def uninitialised_components_reference(x: Values) -> Values:
    y, z = np.roll(x, -1), np.roll(x, -2)
    return x * x * z * x + np.abs(x) * np.sqrt(x**2 + y**2 + z**2)


@wp.kernel
def half_written_in_single_precision(x: Floats, out: Floats):
    t = wp.tid()
    v = wp.vec2(wp.float32(1.0), wp.float32(2.0))
    w = wp.vec2d(x[t], 2.0)
    w[1] = w[0] * wp.float64(v[1])
    w[0] = wp.float64(v[0]) + w[1]
    out[t] = w[0] * w[1]


def half_written_in_single_precision_reference(x: Values) -> Values:
    return (1.0 + 2.0 * x) * 2.0 * x


KERNELS = [value for value in list(globals().values()) if isinstance(value, wp.Kernel)]


def run_on(kernel: wp.Kernel) -> Callable[[wp.array], wp.array]:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=len(X), inputs=[x], outputs=[out])
        return out

    return run


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_kernel(kernel: wp.Kernel) -> None:
    reference = globals()[f"{kernel.key}_reference"]
    np.testing.assert_allclose(check_gradients(run_on(kernel), X)[0], reference(X), rtol=1e-12)
