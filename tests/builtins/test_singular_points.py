"""The adjoints at kinks and poles, value by value: the table of GRADIENTS.md section 7, and the strong zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.builtins.adjoint_calls import adjoints

import warp._src.builtins  # noqa: F401 - fills the registry
from warp._src.builtins.declare import resolve
from warp._src.types.scalars import bool_, float32, float64
from warp._src.types.tensors import matrix, quaternion, vector

INF, NAN = math.inf, math.nan
Scalars = tuple[float, ...]

TABLE: list[tuple[str, Scalars, Scalars]] = [
    ("sqrt", (0.0,), (INF,)),
    ("log", (0.0,), (INF,)),
    ("log2", (0.0,), (INF,)),
    ("log10", (0.0,), (INF,)),
    ("cbrt", (0.0,), (INF,)),
    ("div", (1.0, 0.0), (INF, -INF)),
    ("atan2", (0.0, 0.0), (0.0, 0.0)),
    ("atan2", (1e-200, 0.0), (0.0, -1e200)),
    ("atan2", (0.0, 1e200), (1e-200, 0.0)),
    ("pow", (0.0, 0.0), (0.0, -INF)),
    ("pow", (0.0, 1.0), (1.0, 0.0)),
    ("pow", (0.0, 2.0), (0.0, 0.0)),
    ("pow", (0.0, 0.5), (INF, 0.0)),
    ("pow", (3.0, 0.0), (0.0, math.log(3.0))),
    ("asin", (1.0,), (0.0,)),
    ("asin", (-1.0,), (0.0,)),
    ("acos", (1.0,), (0.0,)),
    ("acos", (-1.0,), (0.0,)),
    ("abs", (0.0,), (1.0,)),
    ("abs", (-0.0,), (1.0,)),
    ("max", (2.0, 2.0), (0.0, 1.0)),
    ("min", (2.0, 2.0), (0.0, 1.0)),
    ("max", (NAN, 2.0), (0.0, 1.0)),
    ("max", (2.0, NAN), (0.0, 1.0)),
    ("clamp", (-1.0, -1.0, 1.0), (1.0, 0.0, 0.0)),
    ("clamp", (1.0, -1.0, 1.0), (1.0, 0.0, 0.0)),
    ("clamp", (-3.0, -1.0, 1.0), (0.0, 1.0, 0.0)),
    ("clamp", (3.0, -1.0, 1.0), (0.0, 0.0, 1.0)),
    ("clamp", (0.0, 1.0, -1.0), (0.0, 0.0, 1.0)),
    ("mod", (7.0, 2.0), (1.0, -3.0)),
    ("mod", (-7.0, 2.0), (1.0, 3.0)),
    ("frac", (2.0,), (1.0,)),
    ("smoothstep", (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
]


@pytest.mark.parametrize(("name", "args", "slopes"), TABLE, ids=[f"{name}{args}" for name, args, _ in TABLE])
def test_table(name: str, args: Scalars, slopes: Scalars) -> None:
    overload = resolve(name, [float64] * len(args))
    found = adjoints(overload, [np.float64(arg) for arg in args], np.float64(1.0))
    np.testing.assert_allclose(list(found.values()), slopes, rtol=1e-12)


@pytest.mark.parametrize(("name", "args", "slopes"), TABLE, ids=[f"{name}{args}" for name, args, _ in TABLE])
def test_a_zero_adjoint_contributes_nothing(name: str, args: Scalars, slopes: Scalars) -> None:
    for type in (float64, float32):
        overload = resolve(name, [type] * len(args))
        with np.errstate(over="ignore"):
            values = [type.dtype.type(arg) for arg in args]
        found = adjoints(overload, values, type.dtype.type(0.0))
        np.testing.assert_array_equal(list(found.values()), 0.0)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log"])
@pytest.mark.parametrize("x", [INF, -INF, NAN, 1e308, -1.0, 0.0, 1.0])
def test_strong_zero_of_one_variable(name: str, x: float) -> None:
    found = adjoints(resolve(name, [float64]), [np.float64(x)], np.float64(0.0))
    if not (name in ("sin", "cos") and not math.isfinite(x)):
        assert found["x"] == 0.0


VECTOR, QUATERNION, MATRIX = vector(3, float64), quaternion(float64), matrix((3, 3), float64)


@pytest.mark.parametrize("type", [VECTOR, QUATERNION])
def test_length_and_normalize_at_zero(type: Any) -> None:
    zero, one = np.zeros(type.shape), np.ones(type.shape)
    assert not adjoints(resolve("length", [type]), [zero], np.float64(1.0))["a"].any()
    assert not adjoints(resolve("normalize", [type]), [zero], one)["a"].any()


def test_reductions_have_one_winner() -> None:
    tied = np.array([2.0, 2.0, 1.0])
    assert adjoints(resolve("max", [VECTOR]), [tied], np.float64(3.0))["a"].tolist() == [3.0, 0.0, 0.0]
    assert adjoints(resolve("min", [VECTOR]), [-tied], np.float64(3.0))["a"].tolist() == [3.0, 0.0, 0.0]


def test_componentwise_minimum_prefers_the_second_at_a_tie() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    found = adjoints(resolve("min", [VECTOR, VECTOR]), [a, b], np.array([5.0, 6.0, 7.0]))
    assert found["a"].tolist() == [0.0, 6.0, 0.0]
    assert found["b"].tolist() == [5.0, 0.0, 7.0]


def test_branch_not_taken_gets_nothing() -> None:
    overload = resolve("where", [bool_, float64, float64])
    found = adjoints(overload, [np.bool_(True), np.float64(1.0), np.float64(NAN)], np.float64(2.0))
    assert found == {"value_if_true": 2.0, "value_if_false": 0.0}


def test_infinite_components_do_not_leak_through_zero_adjoints() -> None:
    a, b = np.array([1.0, INF, 2.0]), np.array([3.0, 4.0, NAN])
    adj = np.array([1.0, 0.0, 0.0])
    found = adjoints(resolve("cw_mul", [VECTOR, VECTOR]), [a, b], adj)
    assert found["a"].tolist() == [3.0, 0.0, 0.0]
    assert found["b"].tolist() == [1.0, 0.0, 0.0]
    scaled = adjoints(resolve("mul", [VECTOR, float64]), [a, np.float64(2.0)], adj)
    assert scaled["a"].tolist() == [2.0, 0.0, 0.0]
    assert scaled["s"] == 1.0
    inverse = adjoints(resolve("div", [float64, VECTOR]), [np.float64(1.0), np.array([1.0, 0.0, 0.0])], adj)
    assert inverse["s"] == 1.0
    assert inverse["a"].tolist() == [-1.0, 0.0, 0.0]


def test_a_singular_matrix_has_a_determinant_gradient() -> None:
    m = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 1.0]])
    found = adjoints(resolve("determinant", [MATRIX]), [m], np.float64(1.0))["a"]
    np.testing.assert_allclose(found, [[-2.0, -2.0, 2.0], [1.0, 1.0, -1.0], [0.0, 0.0, 0.0]], atol=1e-12)
    assert not adjoints(resolve("inverse", [MATRIX]), [m], np.ones((3, 3)))["a"].any()


def test_slerp_of_equal_rotations_is_smooth() -> None:
    q = np.array([0.0, 0.0, 0.6, 0.8])
    overload = resolve("quat_slerp", [QUATERNION, QUATERNION, float64])
    found = adjoints(overload, [q, q, np.float64(0.25)], np.array([1.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(found["a"] + found["b"], [1.0, 0.0, 0.0, 0.0], atol=1e-12)
    assert found["t"] == 0.0
