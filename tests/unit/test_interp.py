"""The interpreter against closed forms: casts, memory, branches, loops."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.unit.ir_programs import HERE, build, call, kernel, region, reverse_loop

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.interp import run_function, run_kernel
from warp._src.ir.memory import ArrayCell
from warp._src.ir.ops import Call, Space
from warp._src.ir.verify import verify
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.scalars import (
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from warp._src.types.structs import struct
from warp._src.types.tensors import matrix, transformation, vector
from warp.errors import LaunchError

VEC = vector(3, float64)
MAT = matrix((2, 2), float64)


@struct
class Particle:
    position: VEC
    mass: float64


@pytest.mark.parametrize(
    ("source", "value", "target", "expected"),
    [
        (float64, 3.99, int32, 3),
        (float64, -3.99, int32, -3),
        (float64, 1e30, int32, 2**31 - 1),
        (float64, -1e30, int32, -(2**31)),
        (float64, math.inf, int64, 2**63 - 1),
        (float64, -1.0, uint32, 0),
        (float64, math.nan, int32, 0),
        (float32, 300.0, uint8, 255),
        (int32, 300, uint8, 44),
        (int32, -1, uint64, 2**64 - 1),
        (uint32, 2**32 - 1, int32, -1),
        (int32, 200, int8, -56),
        (float64, 0.5, bool_, True),
        (float64, -0.0, bool_, False),
        (float64, math.nan, bool_, True),
        (int32, 256, bool_, True),
        (bool_, True, float32, 1.0),
        (float64, 0.1, float32, 0.10000000149011612),
        (float64, 1.0 + 2.0**-11, float16, 1.0),
        (float64, 1.0 + 3 * 2.0**-11, float16, 1.0 + 2.0**-9),
        (float64, 70000.0, float16, math.inf),
        (int32, 2**24 + 1, float32, 2.0**24),
        (int64, 2**63 - 1, float32, 2.0**63),
    ],
)
def test_casts(source: Any, value: Any, target: Any, expected: Any) -> None:
    (result,) = run_function(build([source], lambda b, p: [b.cast(target, p[0])]), [value])
    assert result == expected
    assert result.dtype == target.dtype


def test_cast_of_a_tensor() -> None:
    function = build([VEC], lambda b, p: [b.cast(vector(3, int32), p[0])])
    (result,) = run_function(function, [[1.9, -1.9, 1e20]])
    assert result.tolist() == [1, -1, 2**31 - 1]


def test_results_are_rounded_to_their_type() -> None:
    function = build([float32, float32], lambda b, p: [call(b, "mul", p[0], p[1])])
    (result,) = run_function(function, [0.1, 0.3])
    assert result.dtype == np.float32
    assert result == np.float32(np.float64(np.float32(0.1)) * np.float64(np.float32(0.3)))


def test_integers_wrap_around() -> None:
    function = build([int32, int32], lambda b, p: [call(b, "add", p[0], p[1])])
    assert run_function(function, [2**31 - 1, 1]) == (-(2**31),)


def test_aggregates_are_values() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        changed = b.insert(p[0], b.const(float64, 9.0), (None, 1), [p[1]])
        row = b.extract(changed, (None,), [p[1]])
        particle = b.construct(Particle, [p[2], b.const(float64, 2.0)])
        particle = b.insert(particle, b.const(float64, 7.0), ("position", 2))
        return [p[0], changed, row, b.extract(particle, ("position",)), b.zero(Particle)]

    function = build([MAT, int32, VEC], body)
    verify(function)
    before, changed, row, position, zero = run_function(function, [[[1, 2], [3, 4]], 1, [5, 6, 8]])
    assert before.tolist() == [[1, 2], [3, 4]]
    assert changed.tolist() == [[1, 2], [3, 9]]
    assert row.tolist() == [3, 9]
    assert position.tolist() == [5, 6, 7]
    assert (zero["position"].tolist(), zero["mass"]) == ([0, 0, 0], 0)


def test_parts_of_a_transform() -> None:
    type = transformation(float64)
    function = build([type], lambda b, p: [b.extract(p[0], ("p",)), b.extract(p[0], ("q", 3))])
    p, w = run_function(function, [[1, 2, 3, 4, 5, 6, 7]])
    assert (p.tolist(), w) == ([1, 2, 3], 7)


def test_threads_run_in_order_and_have_coordinates() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        i, j = b.thread_index(2)
        at = b.atomic("add", p[0], b.const(int32, 1), [b.const(int32, 0)])
        code = call(b, "add", call(b, "mul", i, b.const(int32, 10)), j)
        b.store(p[1], code, [at])

    function = kernel([ArrayType(int32, 1), ArrayType(int32, 1)], body)
    counter, order = np.zeros(1, np.int32), np.zeros(6, np.int32)
    run_kernel(function, (2, 3), [counter, order])
    assert order.tolist() == [0, 1, 2, 10, 11, 12]
    counter[:] = 0
    run_kernel(function, (2, 3), [counter, order], order="descending")
    assert order.tolist() == [12, 11, 10, 2, 1, 0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("add", 9), ("sub", 3), ("min", 3), ("max", 6), ("exch", 3), ("and", 2), ("or", 7), ("xor", 5)],
)
def test_atomics(kind: str, expected: int) -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        old = b.atomic(kind, p[0], b.const(int32, 3), [b.const(int32, 0)])
        b.store(p[0], old, [b.const(int32, 1)])

    memory = np.array([6, 0], np.int32)
    run_kernel(kernel([ArrayType(int32, 1)], body), 1, [memory])
    assert memory.tolist() == [expected, 6]


@pytest.mark.parametrize(("expected", "after"), [(6, 3), (5, 6)])
def test_compare_and_swap(expected: int, after: int) -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.atomic("cas", p[0], b.const(int32, 3), [b.const(int32, 0)], expected=b.const(int32, expected))

    memory = np.array([6], np.int32)
    run_kernel(kernel([ArrayType(int32, 1)], body), 1, [memory])
    assert memory.tolist() == [after]


def test_gradient_space_and_null_gradients() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        (i,) = b.thread_index(1)
        g = b.load(p[0], [i], (1,), space=Space.GRADIENT)
        b.store(p[0], b.zero(VEC), [i], space=Space.GRADIENT)
        b.atomic("add", p[1], g, [i], space=Space.GRADIENT)

    function = kernel([ArrayType(VEC, 1), ArrayType(float64, 1)], body)
    x = ArrayCell(np.ones((2, 3)), np.arange(6.0).reshape(2, 3), VEC)
    y = ArrayCell(np.zeros(2), np.full(2, 0.5), float64)
    run_kernel(function, 2, [x, y])
    assert y.gradient.tolist() == [1.5, 4.5]
    assert not x.gradient.any()
    assert x.primal.all()
    run_kernel(function, 2, [ArrayCell(np.ones((2, 3)), None, VEC), y])
    assert y.gradient.tolist() == [1.5, 4.5]


def test_views_share_memory() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        (i,) = b.thread_index(1)
        row = b.view(p[0], [i])
        b.store(row, b.const(float64, 5.0), [b.const(int32, 2)])

    memory = np.zeros((2, 3))
    run_kernel(kernel([ArrayType(float64, 2)], body), 2, [memory])
    assert memory.tolist() == [[0, 0, 5], [0, 0, 5]]


def test_arrays_that_alias() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        zero, one = b.const(int32, 0), b.const(int32, 1)
        b.store(p[0], b.const(float64, 3.0), [zero])
        b.store(p[0], b.load(p[1], [zero]), [one])

    memory = np.zeros(2)
    run_kernel(kernel([ArrayType(float64, 1)] * 2, body), 1, [memory, memory])
    assert memory.tolist() == [3, 3]


def test_indexed_arrays() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        (i,) = b.thread_index(1)
        b.store(p[0], b.cast(float64, i), [i])

    memory = np.full(5, -1.0)
    cell = ArrayCell(memory, None, float64, (np.array([4, 1, 3]),))
    assert cell.shape == (3,)
    run_kernel(kernel([IndexedArrayType(float64, 1)], body), 3, [cell])
    assert memory.tolist() == [-1, 1, -1, 2, 0]


def test_arrays_of_structs() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        (i,) = b.thread_index(1)
        b.store(p[0], b.load(p[0], [i], ("position", 1)), [i], ("mass",))
        b.store(p[0], b.const(float64, 8.0), [i], ("position", None), [i])

    memory = np.empty(2, dtype=object)
    memory[:] = [{"position": np.array([1.0, 2.0, 3.0]), "mass": np.float64(0.0)} for _ in range(2)]
    run_kernel(kernel([ArrayType(Particle, 1)], body), 2, [memory])
    assert [particle["mass"] for particle in memory] == [2.0, 2.0]
    assert [particle["position"].tolist() for particle in memory] == [[8, 2, 3], [1, 8, 3]]


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_out_of_range_names_the_line(index: int) -> None:
    function = kernel([ArrayType(float64, 1)], lambda b, p: b.load(p[0], [b.const(int32, index)]))
    with pytest.raises(LaunchError, match=rf"example\.py:7: index {index} is out of range"):
        run_kernel(function, 1, [np.zeros(3)])


def test_a_native_function_needs_a_stand_in() -> None:
    def as_kernel(b: Builder, p: tuple[Value, ...]) -> None:
        x = b.load(p[0], [b.const(int32, 0)])
        (y,) = b.native(("x",), [x], float64, "return 2*x;", name="twice")
        b.store(p[0], y, [b.const(int32, 0)])

    function = kernel([ArrayType(float64, 1)], as_kernel)
    with pytest.raises(LaunchError, match="'twice' is opaque"):
        run_kernel(function, 1, [np.ones(1)])
    memory = np.ones(1)
    run_kernel(function, 1, [memory], natives={"twice": lambda x: 2 * x})
    assert memory.tolist() == [2]


def test_invoke_runs_the_body_of_the_callee() -> None:
    callee = build([float64, float64], lambda b, p: [call(b, "sub", p[0], p[1]), p[0]])

    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        first, second = b.invoke(callee, [p[0], p[1]])
        return list(b.invoke(callee, [first, second]))

    assert run_function(build([float64, float64], body), [5.0, 2.0]) == (-2.0, 3.0)


def branch(condition: bool) -> Any:
    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        then = region(b, [], lambda b, a: [p[1], p[2]])
        return b.if_(p[0], then, region(b, [], lambda b, a: [p[2], p[1]]))

    return run_function(build([bool_, int32, int32], body), [condition, 1, 2])


def test_branches() -> None:
    assert branch(True) == (1, 2)
    assert branch(False) == (2, 1)


def halving(limit: float) -> Function:
    """Halve p1 while it is above the limit, p0 times at most."""

    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        condition = region(b, [float64], lambda b, a: [call(b, "gt", a[0], b.const(float64, limit))])
        step = region(b, [int32, float64], lambda b, a: [call(b, "mul", a[1], b.const(float64, 0.5))])
        return b.loop(p[0], [p[1]], condition, step)

    return build([int32, float64], body)


@pytest.mark.parametrize(
    ("trips", "limit", "expected"), [(3, 0.0, (1.0, 3)), (10, 1.5, (1.0, 3)), (0, 0.0, (8.0, 0)), (-2, 0.0, (8.0, 0))]
)
def test_loops_end_by_count_or_condition(trips: int, limit: float, expected: tuple[float, int]) -> None:
    state, count = run_function(halving(limit), [trips, 8.0])
    assert (state, count) == expected
    assert count.dtype == np.int32


def test_a_loop_without_trip_count_counts_in_int64() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        condition = region(b, [float64], lambda b, a: [call(b, "gt", a[0], b.const(float64, 1.0))])
        step = region(b, [int64, float64], lambda b, a: [call(b, "mul", a[1], b.const(float64, 0.5))])
        return b.loop(None, [p[0]], condition, step)

    state, count = run_function(build([float64], body), [8.0])
    assert (state, count) == (1.0, 3)
    assert count.dtype == np.int64


def logistic(b: Builder, x: Value) -> Value:
    """x -> 3.7 x (1 - x)."""
    one = b.const(float64, 1.0)
    return call(b, "mul", call(b, "mul", b.const(float64, 3.7), x), call(b, "sub", one, x))


def logistic_adjoint(is_saved: bool) -> Function:
    """Derivative of the p0-fold logistic map by its argument p1."""

    def reverse(b: Builder, a: tuple[Value, ...]) -> list[Value]:
        one, two = b.const(float64, 1.0), b.const(float64, 2.0)
        slope = call(b, "mul", b.const(float64, 3.7), call(b, "sub", one, call(b, "mul", two, a[1])))
        return [call(b, "mul", slope, a[2])]

    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        if is_saved:
            b.loop(p[0], [p[1]], None, region(b, [int32, float64], lambda b, a: [logistic(b, a[1])]))
            b.region.ops[-1] = replace(b.region.ops[-1], site=0, saved=(0,))
        advance = region(b, [int32, float64], lambda b, a: [logistic(b, a[1])])
        backward = region(b, [int32, float64, float64], reverse)
        return reverse_loop(
            b, p[0], [p[1]], [b.const(float64, 1.0)], advance, backward, 0 if is_saved else None, is_saved
        )

    return build([int32, float64], body)


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("slots", [2, 3, 8, None])
def test_reverse_loops_see_the_states_of_the_forward_loop(slots: int | None, is_saved: bool) -> None:
    function = logistic_adjoint(is_saved)
    verify(function)
    for trips in (0, 1, 2, 3, 4, 5, 8, 9, 17, 50, 200):
        x, slopes = 0.3, []
        for _ in range(trips):
            slopes.append(3.7 * (1.0 - 2.0 * x))
            x = (3.7 * x) * (1.0 - x)
        expected = 1.0
        for slope in reversed(slopes):
            expected = slope * expected
        assert run_function(function, [trips, 0.3], slots=slots) == (expected,)


def test_effects_are_traced_in_order() -> None:
    printf = SimpleNamespace(
        name="printf", has_effects=True, builtin=SimpleNamespace(reference=None), param_types=(int32,), result_types=()
    )

    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.append(Call(loc=HERE, operands=b.thread_index(1), builtin=printf, attributes=("%d\n",)))

    trace: list[Any] = []
    run_kernel(kernel([], body), 2, [], trace=trace)
    assert trace == [("printf", ("%d\n",), (0,)), ("printf", ("%d\n",), (1,))]
