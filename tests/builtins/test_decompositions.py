"""Decompositions in compiled kernels: they reproduce the matrix, factors have their properties, gradients are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp

HARD = np.array(
    [
        np.zeros((3, 3)),
        np.eye(3),
        -np.eye(3),
        np.diag([3.0, 3.0, 3.0]),
        np.diag([1e-3, 1.0, 1e3]),
        np.outer([1.0, 2.0, 3.0], [4.0, -5.0, 6.0]),
        np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) + np.outer([0.0, 1.0, 0.0], [0.0, 1.0, 0.0]),
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + 1e-4]],
    ]
)
SAMPLES = np.concatenate([HARD, np.random.default_rng(2).normal(size=(200, 3, 3))])
TYPES = [(wp.float32, wp.mat33f, wp.vec3f, 2e-5), (wp.float64, wp.mat33d, wp.vec3d, 1e-13)]


@wp.kernel
def decompose(
    a: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    sigma: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    q: wp.array(dtype=Any),
    r: wp.array(dtype=Any),
    w: wp.array(dtype=Any),
    d: wp.array(dtype=Any),
):
    i = wp.tid()
    u_i, sigma_i, v_i = wp.svd3(a[i])
    u[i] = u_i
    sigma[i] = sigma_i
    v[i] = v_i
    q_i = q[i]
    r_i = r[i]
    wp.qr3(a[i], q_i, r_i)
    q[i] = q_i
    r[i] = r_i
    w_i, d_i = wp.eig3(a[i] + wp.transpose(a[i]))
    w[i] = w_i
    d[i] = d_i


@pytest.fixture(scope="module", params=TYPES, ids=["float32", "float64"])
def factors(request: Any) -> tuple[dict[str, Any], float]:
    _, matrix, vector, tolerance = request.param
    names = {"a": matrix, "u": matrix, "sigma": vector, "v": matrix, "q": matrix, "r": matrix, "w": matrix, "d": vector}
    arrays = {name: wp.zeros(len(SAMPLES), dtype=type) for name, type in names.items()}
    arrays["a"].assign(SAMPLES)
    wp.launch(decompose, dim=len(SAMPLES), inputs=list(arrays.values()))
    return {name: array.numpy().astype(float) for name, array in arrays.items()}, tolerance


def _scale(a: Any) -> Any:
    return np.maximum(np.abs(a).max(axis=(1, 2), keepdims=True), 1e-30)


def _transposed(m: Any) -> Any:
    return np.swapaxes(m, 1, 2)


@pytest.mark.parametrize("name", ["u", "v", "q", "w"])
def test_factors_are_rotations(factors: Any, name: str) -> None:
    found, tolerance = factors
    m = found[name]
    np.testing.assert_allclose(m @ _transposed(m), np.broadcast_to(np.eye(3), m.shape), atol=tolerance)
    np.testing.assert_allclose(np.linalg.det(m), 1.0, atol=tolerance)


def test_products_are_the_matrix(factors: Any) -> None:
    found, tolerance = factors
    a = found["a"]
    for product, wanted in (
        (found["u"] * found["sigma"][:, None, :] @ _transposed(found["v"]), a),
        (found["q"] @ found["r"], a),
        (found["w"] * found["d"][:, None, :] @ _transposed(found["w"]), a + _transposed(a)),
    ):
        np.testing.assert_allclose(product / _scale(a), wanted / _scale(a), atol=4 * tolerance)


def test_values_are_sorted_and_triangular(factors: Any) -> None:
    found, tolerance = factors
    sigma, d, r = found["sigma"], found["d"], found["r"]
    assert np.all(np.diff(np.abs(sigma), axis=1) <= tolerance * np.abs(sigma[:, :1]))
    assert np.all(sigma[:, :2] >= 0.0)
    assert np.all(np.diff(d, axis=1) <= tolerance * np.abs(d).max(axis=1, keepdims=True))
    assert not np.tril(r, -1).any()
    assert np.all(r[:, 0, 0] >= 0.0)
    assert np.all(r[:, 1, 1] >= 0.0)


@wp.kernel
def polar(a: wp.array(dtype=wp.mat33d), weight: wp.mat33d, loss: wp.array(dtype=wp.float64)):
    u, _, v = wp.svd3(a[0])
    loss[0] = wp.ddot(u * wp.transpose(v), weight)


@pytest.mark.parametrize("matrix", [np.diag([2.0, 2.0, 2.0]), np.diag([2.0, 2.0, 1.0]), SAMPLES[20], SAMPLES[21]])
def test_the_polar_rotation_has_a_gradient_where_singular_values_are_equal(matrix: Any) -> None:
    weight = np.array([[0.3, -1.0, 0.5], [0.7, 0.2, -0.4], [1.1, 0.6, -0.9]])

    def value(m: Any) -> float:
        u, _, vt = np.linalg.svd(m)
        if np.linalg.det(u @ vt) < 0:
            u[:, 2] = -u[:, 2]
        return float(np.sum(u @ vt * weight))

    a = wp.array(matrix[None], dtype=wp.mat33d, requires_grad=True)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(polar, dim=1, inputs=[a, wp.mat33d(weight), loss])
    tape.backward(loss=loss)
    slopes = np.zeros((3, 3))
    for index in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[index] = 1e-5
        slopes[index] = (value(matrix + step) - value(matrix - step)) / 2e-5
    assert loss.numpy()[0] == pytest.approx(value(matrix))
    np.testing.assert_allclose(a.grad.numpy()[0], slopes, atol=1e-6)
