"""Functions written in the language itself, builtins that assign their arguments, and host values of new builtins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp.errors import KernelTypeError


@wp.kernel
def search(a: wp.array(dtype=float), found: wp.array(dtype=int)):
    found[0] = wp.lower_bound(a, 10.0)
    found[1] = wp.lower_bound(a, 2.0)
    found[2] = wp.lower_bound(a, 2.5)
    found[3] = wp.lower_bound(a, 1, 3, 0.0)
    found[4] = wp.lower_bound(a, 1, 3, 100.0)
    found[5] = wp.lower_bound(a, 0.0)


def test_lower_bound() -> None:
    found = wp.zeros(6, dtype=int)
    wp.launch(search, dim=1, inputs=[wp.array([1.0, 2.0, 3.0, 4.0], dtype=float), found])
    assert found.numpy().tolist() == [3, 1, 2, 1, 2, 0]


@wp.kernel
def search_in_two_dimensions(a: wp.array2d(dtype=float), found: wp.array(dtype=int)):
    found[0] = wp.lower_bound(a, 1.0)


def test_lower_bound_names_the_argument() -> None:
    with pytest.raises(KernelTypeError, match="argument 'arr' of 'lower_bound' must be an array of one dimension"):
        wp.launch(search_in_two_dimensions, dim=1, inputs=[wp.zeros((2, 2), dtype=float), wp.zeros(1, dtype=int)])


@wp.kernel
def solve(
    a: wp.array(dtype=wp.float64),
    factor: wp.array(dtype=wp.float64),
    product: wp.array(dtype=wp.float64),
    b: wp.array(dtype=wp.float64),
    x: wp.array(dtype=wp.float64),
):
    wp.dense_chol(3, a, wp.float64(0.5), factor)
    wp.dense_solve(3, a, factor, b, x)
    wp.dense_gemm(3, 3, 3, 0, 1, a, a, product)


def test_dense_matrices() -> None:
    rows = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]])
    right = np.array([1.0, 2.0, 3.0])
    arrays = [wp.array(rows.ravel(), dtype=wp.float64), wp.zeros(9, dtype=wp.float64), wp.zeros(9, dtype=wp.float64)]
    x = wp.zeros(3, dtype=wp.float64)
    wp.launch(solve, dim=1, inputs=[*arrays, wp.array(right, dtype=wp.float64), x])
    np.testing.assert_allclose(arrays[1].numpy().reshape(3, 3), np.linalg.cholesky(rows + 0.5 * np.eye(3)))
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(rows + 0.5 * np.eye(3), right))
    np.testing.assert_allclose(arrays[2].numpy().reshape(3, 3), rows @ rows.T)


@wp.kernel
def assign_arguments(
    xforms: wp.array(dtype=wp.transform), x: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.transform)
):
    i = wp.tid()
    xform = xforms[i]
    for _ in range(2):
        wp.transform_set_translation(xform, x[i] + wp.transform_get_translation(xform))
    wp.transform_set_rotation(xform, wp.quat_identity())
    wp.transform_set_translation(xforms[i], wp.vec3(9.0, 9.0, 9.0))
    out[i] = xform


def test_builtins_assign_variables_with_gradients() -> None:
    xforms = wp.array([[1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0]], dtype=wp.transform, requires_grad=True)
    x = wp.array([[0.5, 0.0, -0.5]], dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(1, dtype=wp.transform, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(assign_arguments, dim=1, inputs=[xforms, x, out])
    assert out.numpy()[0].tolist() == [2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 1.0]
    assert xforms.numpy()[0].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0]
    tape.backward(grads={out: wp.array(np.arange(1.0, 8.0)[None], dtype=wp.transform)})
    assert x.grad.numpy()[0].tolist() == [2.0, 4.0, 6.0]
    assert xforms.grad.numpy()[0].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0]


@wp.kernel
def reversed_ranges(n: int, digits: wp.array(dtype=int)):
    number = 0
    for i in reversed(range(2, 7)):
        number = number * 10 + i
    digits[0] = number
    number = 0
    for i in reversed(range(1, n)):
        number = number * 10 + i
    digits[1] = number
    number = 0
    for i in reversed(range(0, 8, 3)):
        number = number * 10 + i
    digits[2] = number
    digits[3] = wp.cast(2.0, wp.int32)


def test_reversed_ranges_and_casts_of_bits() -> None:
    digits = wp.zeros(4, dtype=int)
    wp.launch(reversed_ranges, dim=1, inputs=[4, digits])
    assert digits.numpy().tolist() == [65432, 321, 630, 0x40000000]


def test_expectations_print(capfd: Any) -> None:
    @wp.kernel
    def check(x: wp.array(dtype=float)):
        wp.expect_eq(x[0], 1.0)
        wp.expect_near(x[0], 1.1, 0.5)
        wp.expect_neq(x[0], 1.0)

    wp.launch(check, dim=1, inputs=[wp.ones(1, dtype=float)])
    assert capfd.readouterr().out == "Error, expect_neq() failed: 1 and 1\n"


HOST = [
    (lambda: wp.erf(0.5), 0.5204998778),
    (lambda: wp.erfinv(wp.float64(-0.999)), -2.3267537655),
    (lambda: wp.copysign(3.0, -0.0), -3.0),
    (lambda: wp.bit_count(wp.int8(-1)), 8),
    (lambda: wp.norm_huber(wp.vec3(3.0, 4.0, 1.0)), 4.5990195),
    (lambda: wp.norm_huber(wp.vec3(3.0, 4.0, 1.0), 10.0), 13.0),
    (lambda: wp.norm_pseudo_huber(wp.vec3(3.0, 4.0, 1.0), 2.0), 5.4772258),
    (lambda: wp.quat_twist_angle(wp.vec3(0.0, 0.0, 1.0), wp.quat(0.1, 0.2, 0.3, -0.8)), 5.565644),
    (lambda: wp.quat_to_euler(wp.normalize(wp.quat(0.1, 0.2, 0.3, 0.8)), 2, 0, 2)[1], 1.4659195),
    (lambda: wp.block_dim(), 1),
]


@pytest.mark.parametrize(("call", "expected"), HOST)
def test_host_values(call: Any, expected: float) -> None:
    assert call() == pytest.approx(expected, rel=1e-6)


def test_opposite_vectors_give_a_half_turn() -> None:
    for a in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.3, -0.4, 0.5)):
        q = wp.quat_between_vectors(wp.vec3d(*a), wp.vec3d(*(-x for x in a)))
        np.testing.assert_allclose(wp.quat_rotate(q, wp.vec3d(*a)), [-x for x in a], atol=1e-12)


@wp.kernel
def invert_erfc(z: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = wp.erfcinv(z[i])
    y[i] = wp.erfinv(wp.float64(1.0) - z[i])


def test_inverses_of_the_error_function_over_their_whole_range() -> None:
    z = np.concatenate([10.0 ** np.linspace(-300, -1, 60), np.linspace(0.01, 1.99, 60)])
    x, y = wp.zeros(len(z), dtype=wp.float64), wp.zeros(len(z), dtype=wp.float64)
    wp.launch(invert_erfc, dim=len(z), inputs=[wp.array(z, dtype=wp.float64), x, y])
    found = x.numpy()
    # An error of x by its last place changes erfc(x) by about 2 x^2 times that.
    condition = 1.0 + 2.0 * found**2
    np.testing.assert_array_less(np.abs([math.erfc(v) for v in found] - z) / z, 1e-15 * condition + 1e-15)
    wide = z > 0.01
    np.testing.assert_allclose(y.numpy()[wide], found[wide], rtol=1e-13, atol=1e-15)
