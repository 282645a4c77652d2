"""Gradients of loops that carry vectors, matrices, quaternions, structs, flags and several results of calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.checking import Values, array_of, check_gradients, gradients_of, weights_of

import warp as wp

Floats = wp.array(dtype=wp.float64)

X = np.array([0.71, 1.13, -0.94, 0.43, 1.21, 0.58])
STEP = 0.1


@wp.kernel
def carried_vector(x: Floats, n: int, out: Floats):
    t = wp.tid()
    p = wp.vec3d(x[t], x[0], 1.0)
    v = wp.vec3d(0.0, x[t], -x[1])
    for i in range(n):
        a = -p / (1.0 + wp.dot(p, p)) - 0.2 * v + wp.cross(v, p)
        v = v + STEP * a
        p += STEP * v
    out[t] = wp.dot(p, v) + wp.length(p)


def carried_vector_reference(x: Values, n: int) -> Values:
    results = []
    for value in x:
        p, v = np.array([value, x[0], 1.0]), np.array([0.0, value, -x[1]])
        for _ in range(n):
            v = v + STEP * (-p / (1.0 + p @ p) - 0.2 * v + np.cross(v, p))
            p = p + STEP * v
        results.append(p @ v + np.linalg.norm(p))
    return np.array(results)


@wp.kernel
def carried_matrix(x: Floats, n: int, out: Floats):
    t = wp.tid()
    m = wp.mat22d(x[t], 0.3, x[0], 0.8)
    v = wp.vec2d(x[t], x[1])
    for i in range(n):
        m = 0.4 * (m @ m) + wp.outer(v, v) * 0.1
        v = m * v
        m[1, 0] = m[0, 1] * v[0]
    out[t] = v[0] * m[0, 0] + wp.determinant(m)


def carried_matrix_reference(x: Values, n: int) -> Values:
    results = []
    for value in x:
        m, v = np.array([[value, 0.3], [x[0], 0.8]]), np.array([value, x[1]])
        for _ in range(n):
            m = 0.4 * m @ m + 0.1 * np.outer(v, v)
            v = m @ v
            m[1, 0] = m[0, 1] * v[0]
        results.append(v[0] * m[0, 0] + np.linalg.det(m))
    return np.array(results)


def multiplied(p: Values, q: Values) -> Values:
    """Return the product of two quaternions (x, y, z, w)."""
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.array([*vector, p[3] * q[3] - p[:3] @ q[:3]])


@wp.kernel
def carried_quaternion(x: Floats, n: int, out: Floats):
    t = wp.tid()
    q = wp.quatd(0.0, 0.0, 0.0, 1.0)
    w = wp.vec3d(x[t], x[0], x[1])
    for i in range(n):
        q = q + 0.5 * STEP * (wp.quatd(w[0], w[1], w[2], 0.0) * q)
        q = wp.normalize(q)
        w = w + STEP * wp.quat_rotate(q, wp.vec3d(0.0, 0.0, 1.0))
    r = wp.quat_rotate(q, w)
    out[t] = r[0] + 2.0 * r[1] + 3.0 * q[3]


def rotated(q: Values, v: Values) -> Values:
    return multiplied(multiplied(q, np.array([*v, 0.0])), q * [-1.0, -1.0, -1.0, 1.0])[:3]


def carried_quaternion_reference(x: Values, n: int) -> Values:
    results = []
    for value in x:
        q, w = np.array([0.0, 0.0, 0.0, 1.0]), np.array([value, x[0], x[1]])
        for _ in range(n):
            q = q + 0.5 * STEP * multiplied(np.array([*w, 0.0]), q)
            q = q / np.linalg.norm(q)
            w = w + STEP * rotated(q, np.array([0.0, 0.0, 1.0]))
        r = rotated(q, w)
        results.append(r[0] + 2.0 * r[1] + 3.0 * q[3])
    return np.array(results)


@wp.struct
class State:
    place: wp.vec2d
    speed: wp.float64
    count: int


@wp.func
def moved(state: State, by: wp.float64):
    state.place = state.place * by
    state.speed = state.speed + state.place[0] * state.place[1]
    state.count += 1
    return state


@wp.kernel
def carried_struct(x: Floats, n: int, out: Floats):
    t = wp.tid()
    state = State()
    state.place = wp.vec2d(x[t], 1.0)
    state.speed = x[0]
    for i in range(n):
        if state.speed > 1.0:
            state = moved(state, x[1] * 0.5)
        else:
            state.speed *= 1.3
            state.place[0] += x[i % 6] * state.speed
        if state.count > 3:
            break
    out[t] = state.speed * state.place[0] + state.place[1]


def carried_struct_reference(x: Values, n: int) -> Values:
    results = []
    for value in x:
        place, speed, count = np.array([value, 1.0]), x[0], 0
        for i in range(n):
            if speed > 1.0:
                place = place * (x[1] * 0.5)
                speed, count = speed + place[0] * place[1], count + 1
            else:
                speed = speed * 1.3
                place = place + np.array([x[i % 6] * speed, 0.0])
            if count > 3:
                break
        results.append(speed * place[0] + place[1])
    return np.array(results)


@wp.func
def newton(s: wp.float64, a: wp.float64):
    f = s * s * s + s - a
    return s - f / (3.0 * s * s + 1.0), f


@wp.kernel
def carried_flags(x: Floats, n: int, out: Floats):
    t = wp.tid()
    s = x[t]
    done = False
    steps = 0
    residual = x[t]
    while not done and steps < n:
        s, residual = newton(s, x[0] + x[t])
        done = wp.abs(residual) < 1.0e-3
        steps = steps + 1
    out[t] = s * s + residual


def carried_flags_reference(x: Values, n: int) -> Values:
    results = []
    for value in x:
        s, residual, done, steps = value, value, False, 0
        while not done and steps < n:
            residual = s**3 + s - (x[0] + value)
            s = s - residual / (3.0 * s * s + 1.0)
            done = abs(residual) < 1.0e-3
            steps += 1
        results.append(s * s + residual)
    return np.array(results)


@wp.kernel
def read_through_two_indices(x: Floats, n: int, out: Floats):
    t = wp.tid()
    v = wp.vec3d(x[t], x[0], x[1])
    s = x[t]
    for i in range(n):
        s += v[i % 3] * v[(i + 1) % 3] + v[i % 3] * v[i % 3]
    out[t] = s * s


def read_through_two_indices_reference(x: Values, n: int) -> Values:
    results = []
    for value in x:
        v = [value, x[0], x[1]]
        s = value + sum(v[i % 3] * v[(i + 1) % 3] + v[i % 3] ** 2 for i in range(n))
        results.append(s * s)
    return np.array(results)


@wp.kernel
def carried_component_index(x: Floats, n: int, out: Floats):
    t = wp.tid()
    v = wp.vec3d(x[t], x[0], x[1])
    k = 5
    m = -1
    s = x[t]
    for i in range(n):
        k = (k + 1) % 3
        m += 1
        v[k] = v[k] * s * 0.5 + x[m % 6]
        s = 0.5 * s + v[k]
    out[t] = s


def carried_component_index_reference(x: Values, n: int) -> Values:
    results = []
    for value in x:
        v, s = [value, x[0], x[1]], value
        for i in range(n):
            v[i % 3] = v[i % 3] * s * 0.5 + x[i % 6]
            s = 0.5 * s + v[i % 3]
        results.append(s)
    return np.array(results)


@wp.kernel
def carried_local_array(x: Floats, n: int, out: Floats):
    t = wp.tid()
    history = wp.zeros(shape=(4,), dtype=wp.float64)
    history[0] = x[t]
    for i in range(n):
        history[(i + 1) % 4] = 0.5 * history[i % 4] * x[i % 6] + history[(i + 3) % 4] * 0.2 + 0.1
    s = wp.float64(0.0)
    for i in range(4):
        s += history[i] * history[i] * wp.float64(i + 1)
    out[t] = s


def carried_local_array_reference(x: Values, n: int) -> Values:
    history = np.array([x, 0.0 * x, 0.0 * x, 0.0 * x])
    for i in range(n):
        history[(i + 1) % 4] = 0.5 * history[i % 4] * x[i % 6] + history[(i + 3) % 4] * 0.2 + 0.1
    return np.arange(1.0, 5.0) @ history**2


KERNELS = [value for value in list(globals().values()) if isinstance(value, wp.Kernel)]


def run_on(kernel: wp.Kernel, n: int) -> Callable[[wp.array], wp.array]:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=len(X), inputs=[x, n], outputs=[out])
        return out

    return run


@pytest.mark.parametrize("n", [0, 1, 2, 11])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_kernel(kernel: wp.Kernel, n: int) -> None:
    reference = globals()[f"{kernel.key}_reference"]
    values = check_gradients(run_on(kernel, n), X, rtol=1e-6, atol=1e-8)[0]
    np.testing.assert_allclose(values, reference(X, n), rtol=1e-12)


@wp.kernel
def struct_argument(state: State, x: Floats, out: Floats):
    t = wp.tid()
    out[t] = x[t] * x[t] * state.speed + state.place[0]


def test_struct_argument_is_that_of_the_launch() -> None:
    x = array_of(X, X)
    out = wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
    state = State()
    state.speed = 3.0
    with wp.Tape() as tape:
        wp.launch(struct_argument, dim=len(X), inputs=[state, x], outputs=[out])
    state.speed = 100.0
    tape.backward(grads={out: wp.ones_like(out)})
    np.testing.assert_allclose(x.grad.numpy(), 6.0 * X, rtol=1e-15)


@wp.kernel
def tenth(x: Floats, out: Floats):
    t = wp.tid()
    out[t] = 0.1 * x[t] + STEP * x[t] * x[t] + (1.0 / 3.0) * x[t] ** 3.0


def test_constants_have_the_precision_of_what_they_meet() -> None:
    (values,), (gradient,) = gradients_of(lambda x: run_on_one(tenth, x), [X])
    np.testing.assert_allclose(values, 0.1 * X + 0.1 * X**2 + X**3 / 3.0, rtol=1e-15)
    np.testing.assert_allclose(gradient, weights_of(X.shape) * (0.1 + 0.2 * X + X**2), rtol=1e-14)


def run_on_one(kernel: wp.Kernel, x: wp.array) -> wp.array:
    out = wp.zeros(len(X), dtype=wp.float64, requires_grad=True)
    wp.launch(kernel, dim=len(X), inputs=[x], outputs=[out])
    return out
