"""Dual numbers against closed-form derivatives, and kernels run on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.unit.ir_programs import call, kernel, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.dual import Dual
from warp._src.ir.dual_run import run_kernel_dual
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import float64, int32
from warp._src.types.structs import struct
from warp._src.types.tensors import vector

VEC = vector(2, float64)
ARRAY = ArrayType(float64, 1)

UNARY: list[tuple[Callable[[Any], Any], Callable[[float], float]]] = [
    (np.sin, math.cos),
    (np.cos, lambda x: -math.sin(x)),
    (np.tan, lambda x: 1.0 / math.cos(x) ** 2),
    (np.arcsin, lambda x: 1.0 / math.sqrt(1.0 - x * x)),
    (np.arccos, lambda x: -1.0 / math.sqrt(1.0 - x * x)),
    (np.arctan, lambda x: 1.0 / (1.0 + x * x)),
    (np.sinh, math.cosh),
    (np.cosh, math.sinh),
    (np.tanh, lambda x: 1.0 / math.cosh(x) ** 2),
    (np.arcsinh, lambda x: 1.0 / math.sqrt(1.0 + x * x)),
    (np.arctanh, lambda x: 1.0 / (1.0 - x * x)),
    (np.exp, math.exp),
    (np.exp2, lambda x: math.log(2.0) * 2.0**x),
    (np.expm1, math.exp),
    (np.log, lambda x: 1.0 / x),
    (np.log2, lambda x: 1.0 / (x * math.log(2.0))),
    (np.log10, lambda x: 1.0 / (x * math.log(10.0))),
    (np.log1p, lambda x: 1.0 / (1.0 + x)),
    (np.sqrt, lambda x: 0.5 / math.sqrt(x)),
    (np.cbrt, lambda x: x ** (-2.0 / 3.0) / 3.0),
    (np.square, lambda x: 2.0 * x),
    (np.reciprocal, lambda x: -1.0 / x**2),
    (np.radians, lambda x: math.pi / 180.0),
    (np.degrees, lambda x: 180.0 / math.pi),
    (np.negative, lambda x: -1.0),
    (np.floor, lambda x: 0.0),
    (np.abs, lambda x: 1.0),
    (lambda x: 3.0 - 2.0 / (1.0 + x) * x, lambda x: -2.0 / (1.0 + x) ** 2),
    (lambda x: x**3.0 + 2.0**x, lambda x: 3.0 * x * x + math.log(2.0) * 2.0**x),
    (lambda x: np.fmod(x * 7.0, 1.5), lambda x: 7.0),
    (lambda x: np.arctan2(x, 2.0) + np.hypot(x, 2.0), lambda x: (2.0 + x * math.sqrt(4.0 + x * x)) / (4.0 + x * x)),
    (lambda x: np.maximum(x, 0.1) + np.minimum(x * x, 5.0), lambda x: 1.0 + 2.0 * x),
    (lambda x: np.float64(2.0) * x + x * np.float64(3.0), lambda x: 5.0),
]


@pytest.mark.parametrize(("function", "derivative"), UNARY)
@pytest.mark.parametrize("x", [0.21, 0.7])
def test_functions_of_one_variable(
    function: Callable[[Any], Any], derivative: Callable[[float], float], x: float
) -> None:
    result = function(Dual(x, np.array([1.0, -2.0])))
    assert result.value == pytest.approx(float(function(x)), rel=1e-14)
    assert np.broadcast_to(result.d, 2) == pytest.approx(np.array([1.0, -2.0]) * derivative(x), rel=1e-12)


def test_object_arrays_take_ufuncs_and_products() -> None:
    x = np.array([Dual(0.5, 1.0), Dual(2.0, 0.0)], dtype=object)
    assert [element.d for element in np.sin(x)] == [math.cos(0.5), 0.0]
    product = Dual(3.0, 1.0) * x
    assert [(element.value, element.d) for element in product] == [(1.5, 3.5), (6.0, 2.0)]
    assert np.dot(x, np.array([4.0, 5.0], dtype=object)).d == 4.0


def test_comparisons_look_at_the_value() -> None:
    assert Dual(1.0, 5.0) == Dual(1.0, 7.0)
    assert Dual(1.0) < 2.0 <= Dual(2.0)
    assert bool(np.less(Dual(1.0), Dual(2.0)))
    with pytest.raises(TypeError):
        float(Dual(1.0))  # type: ignore[arg-type]  # what is refused


@pytest.mark.parametrize(
    ("function", "derivative"),
    [
        (np.sqrt, math.inf),
        (np.abs, 1.0),
        (np.arcsin, 1.0),
        (lambda x: np.maximum(1.0, x + 1.0), 1.0),
        (lambda x: np.maximum(x + 1.0, 1.0), 0.0),
        (lambda x: np.arctan2(x, x), 0.0),
        (lambda x: np.arcsin(x + 1.0), 0.0),
        (lambda x: x**0.0, 0.0),
    ],
)
def test_conventions_at_singular_points(function: Callable[[Any], Any], derivative: float) -> None:
    assert np.sum(function(Dual(0.0, np.array([1.0]))).d) == derivative
    assert np.sum(function(Dual(0.0, np.array([0.0]))).d) == 0.0


@struct
class Pair:
    first: float64
    second: VEC


def product_kernel() -> Function:
    """y[i] = (x[i] ** 2) * scale.first * scale.second[1], summed up by a loop over both halves."""

    def body(b: Builder, p: tuple[Value, ...]) -> None:
        (i,) = b.thread_index(1)
        x = b.load(p[0], [i])
        factor = call(b, "mul", b.extract(p[2], ("first",)), b.extract(p[2], ("second", 1)))
        step = region(
            b, [int32, float64], lambda b, a: [call(b, "add", a[1], call(b, "mul", factor, call(b, "mul", x, x)))]
        )
        total, _ = b.loop(b.const(int32, 3), [b.const(float64, 0.0)], None, step)
        b.store(p[1], total, [i])

    return kernel([ARRAY, ARRAY, Pair], body)


def test_kernels_run_on_duals() -> None:
    x, y = np.array([2.0, -1.0]), np.zeros(2)
    pair = {"first": 0.5, "second": [7.0, 4.0]}
    directions = [np.array([[1.0, 0.0], [0.0, 0.0]]), None, {"first": np.array([0.0, 1.0])}]
    by_x, by_y, by_pair = run_kernel_dual(product_kernel(), 2, [x, y, pair], directions)
    # y = 3 x^2 * first * second[1]
    assert by_y == pytest.approx(np.array([[6 * 2.0 * 0.5 * 4.0, 0.0], [3 * 4.0 * 4.0, 3 * 1.0 * 4.0]]))
    assert by_x == pytest.approx(np.array([[1.0, 0.0], [0.0, 0.0]]))
    assert by_pair["first"] == pytest.approx(np.array([0.0, 1.0]))
    assert not y.any()


def test_aliasing_arguments_keep_aliasing() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        zero = b.const(int32, 0)
        x = b.load(p[0], [zero])
        b.store(p[1], call(b, "mul", x, x), [zero])

    memory = np.array([1.0, 3.0, 5.0, 7.0])
    function = kernel([ARRAY, ARRAY], body)
    first, second = run_kernel_dual(function, 1, [memory, memory[2:]], [np.array([[0.0, 0.0, 1.0, 0.0]]), None])
    assert first.tolist() == [[0.0, 0.0, 0.0, 0.0]]
    assert second.tolist() == [[0.0, 0.0]]
    first, second = run_kernel_dual(function, 1, [memory[1:], memory[::2]], [np.array([[1.0, 0.0, 0.0]]), None])
    assert first.tolist() == [[1.0, 0.0, 0.0]]
    assert second.tolist() == [[6.0, 0.0]]
