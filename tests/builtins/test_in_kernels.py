"""Builtins meet the rest of the language: atomics on aggregates, dtypes, random states in loops with gradients."""

from __future__ import annotations

import numpy as np

import warp as wp


@wp.kernel
def accumulate(
    v: wp.array(dtype=wp.vec3), m: wp.array(dtype=wp.mat22), low: wp.array(dtype=wp.vec3), part: wp.array(dtype=wp.vec3)
):
    i = float(wp.tid())
    wp.atomic_add(v, 0, wp.vec3(1.0, i, -i))
    wp.atomic_sub(m, 0, wp.mat22(i, 0.0, 1.0, 2.0))
    wp.atomic_min(low, 0, wp.vec3(i, -i, 5.0))
    wp.atomic_max(low, 1, wp.vec3(i, -i, 5.0))
    part[0][1] += i


def test_atomics_on_vectors_matrices_and_components() -> None:
    v, m, part = wp.zeros(1, dtype=wp.vec3), wp.zeros(1, dtype=wp.mat22), wp.zeros(1, dtype=wp.vec3)
    low = wp.array([[9.0, 9.0, 9.0], [-9.0, -9.0, -9.0]], dtype=wp.vec3)
    wp.launch(accumulate, dim=10, inputs=[v, m, low, part])
    assert v.numpy().tolist() == [[10.0, 45.0, -45.0]]
    assert m.numpy().tolist() == [[[-45.0, 0.0], [-10.0, -20.0]]]
    assert low.numpy().tolist() == [[0.0, -9.0, 5.0], [9.0, 0.0, 5.0]]
    assert part.numpy().tolist() == [[0.0, 45.0, 0.0]]


@wp.kernel
def identities(q: wp.array(dtype=wp.quatd), t: wp.array(dtype=wp.transformd), m: wp.array(dtype=wp.mat33d)):
    q[0] = wp.quat_identity(dtype=wp.float64)
    t[0] = wp.transform_identity(dtype=wp.float64)
    m[0] = wp.identity(n=3, dtype=wp.float64)


def test_identities_take_a_dtype() -> None:
    q, t, m = wp.zeros(1, dtype=wp.quatd), wp.zeros(1, dtype=wp.transformd), wp.zeros(1, dtype=wp.mat33d)
    wp.launch(identities, dim=1, inputs=[q, t, m])
    assert q.numpy().tolist() == [[0.0, 0.0, 0.0, 1.0]]
    assert t.numpy().tolist() == [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]
    assert m.numpy().tolist() == [np.eye(3).tolist()]


@wp.kernel
def random_products(seed: int, x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    state = wp.rand_init(seed, offset=i)
    value = x[i]
    for _ in range(wp.poisson(state, 5.0)):
        if wp.randf(state) < 0.5:
            value = value * wp.float64(wp.randf(state, low=0.5, high=1.5))
        else:
            value = wp.sin(value) + wp.float64(wp.randn(state))
    y[i] = value


def test_random_states_are_replayed_in_the_backward_pass() -> None:
    points = np.linspace(-1.0, 1.0, 40)

    def run(values: np.ndarray) -> np.ndarray:
        y = wp.zeros(len(points), dtype=wp.float64)
        wp.launch(random_products, dim=len(points), inputs=[3, wp.array(values, dtype=wp.float64), y])
        return y.numpy()

    x = wp.array(points, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(len(points), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(random_products, dim=len(points), inputs=[3, x, y])
    tape.backward(grads={y: wp.ones(len(points), dtype=wp.float64)})
    slopes = (run(points + 1e-6) - run(points - 1e-6)) / 2e-6
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6, atol=1e-7)


@wp.kernel
def integer_tensors(v: wp.array(dtype=wp.vec2i)):
    v[1] = (v[0] << wp.vec2i(1, 2)) | wp.vec2i(1, 1)
    v[2] = ~v[0] & wp.vec2i(255, 15)
    v[3] = v[0] % wp.vec2i(3, 4)
    v[4] = wp.rshift(v[0], wp.vec2i(1, 0)) ^ v[0]


def test_bits_and_remainders_of_vectors() -> None:
    v = wp.array([[5, 7], [0, 0], [0, 0], [0, 0], [0, 0]], dtype=wp.vec2i)
    wp.launch(integer_tensors, dim=1, inputs=[v])
    assert v.numpy().tolist()[1:] == [[11, 29], [250, 8], [2, 3], [7, 0]]
