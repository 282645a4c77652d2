"""Emitted loops, branches and calls, compiled and run: results against NumPy and closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.device.emitted import Compiled, describe, each_compiler, make, region
from tests.unit.ir_programs import HERE, call, reverse_loop

from warp._src.build import Compiler
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Native
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float32, float64, int32
from warp._src.types.tensors import vector

vec3 = vector(3, float32)


pytestmark = pytest.mark.cpu


def collatz(builder: Builder, start: Value, steps: Value, last: Value) -> None:
    """Count steps until the value reaches 1, at most 50."""
    (i,) = builder.thread_index(1)
    one, two, three = (builder.const(int32, value) for value in (1, 2, 3))
    condition = region(builder, [int32], lambda value: (call(builder, "ne", value, one),))

    def step(_: Value, value: Value) -> Sequence[Value]:
        is_even = call(builder, "eq", call(builder, "mod", value, two), builder.const(int32, 0))
        half = region(builder, [], lambda: (call(builder, "div", value, two),))
        more = region(builder, [], lambda: (call(builder, "add", call(builder, "mul", value, three), one),))
        return builder.if_(is_even, half, more)

    body = region(builder, [int32, int32], step)
    value, count = builder.loop(builder.const(int32, 50), (builder.load(start, (i,)),), condition, body)
    builder.store(steps, count, (i,))
    builder.store(last, value, (i,))


@each_compiler
def test_loop_with_condition_and_limit(compiler: Compiler) -> None:
    array = ArrayType(int32, 1)
    kernel = Compiled(make([array] * 3, collatz), compiler)
    start = np.arange(1, 40, dtype=np.int32)
    steps, last = np.zeros_like(start), np.zeros_like(start)
    kernel((len(start),), describe(start), describe(steps), describe(last))
    for value, count, end in zip(start.tolist(), steps, last, strict=True):
        expected = 0
        while value != 1 and expected < 50:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            expected += 1
        assert (count, end) == (expected, value)


@each_compiler
def test_carried_values_swap(compiler: Compiler) -> None:
    def body(builder: Builder, n: Value, out: Value) -> None:
        (i,) = builder.thread_index(1)
        inner = region(builder, [int32, float64, float64], lambda _, a, b: (b, call(builder, "add", a, b)))
        inits = (builder.const(float64, 0.0), builder.const(float64, 1.0))
        a, _, _ = builder.loop(builder.load(n, (i,)), inits, None, inner)
        builder.store(out, a, (i,))

    kernel = Compiled(make([ArrayType(int32, 1), ArrayType(float64, 1)], body), compiler)
    out = np.zeros(6)
    kernel((6,), describe(np.array([-1, 0, 1, 2, 10, 30], np.int32)), describe(out))
    np.testing.assert_array_equal(out, [0, 0, 1, 1, 55, 832040])


def recurrence(is_saved: bool, has_known_trip: bool) -> Callable[..., None]:
    """d/dx of s[n], where s[0] = x and s[k+1] = s[k] * (c - s[k]) + k; and s[n] itself."""

    def advance(builder: Builder, c: Value, k: Value, s: Value) -> Value:
        product = call(builder, "mul", s, call(builder, "sub", c, s))
        return call(builder, "add", product, builder.cast(float64, k))

    def body(builder: Builder, n: Value, x: Value, out: Value, grad: Value) -> None:
        (i,) = builder.thread_index(1)
        c = builder.const(float64, 1.5)
        trip, start = builder.load(n, (i,)), builder.load(x, (i,))
        loop_body = region(builder, [int32, float64], lambda k, s: (advance(builder, c, k, s),))
        final, count = builder.loop(trip, (start,), None, loop_body)
        if is_saved:
            builder.region.ops[-1] = replace(builder.region.ops[-1], site=3, saved=(0,))
        builder.store(out, final, (i,))
        again = region(builder, [int32, float64], lambda k, s: (advance(builder, c, k, s),))

        def reverse(_: Value, s: Value, adjoint: Value) -> Sequence[Value]:
            slope = call(builder, "sub", c, call(builder, "add", s, s))
            return (call(builder, "mul", adjoint, slope),)

        backward = region(builder, [int32, float64, float64], reverse)
        (adjoint,) = reverse_loop(
            builder,
            count if not has_known_trip else trip,
            (start,),
            (builder.const(float64, 1.0),),
            again,
            backward,
            site=3 if is_saved else None,
            is_saved=is_saved,
        )
        builder.store(grad, adjoint, (i,))

    return body


@each_compiler
@pytest.mark.parametrize("is_saved", [True, False])
@pytest.mark.parametrize("slots", [0, 2, 3, 8])
def test_reverse_loop_over_checkpoints(compiler: Compiler, slots: int, is_saved: bool) -> None:
    arrays = [ArrayType(int32, 1), *[ArrayType(float64, 1)] * 3]
    kernel = Compiled(make(arrays, recurrence(is_saved, False)), compiler, entry="wp_backward", descending=True)
    n = np.array([0, 1, 2, 3, 5, 8, 13, 16, 17, 33, 64, 100, 257], np.int32)
    x = np.linspace(0.1, 1e-3, len(n))
    out, grad = np.zeros_like(x), np.zeros_like(x)
    kernel((len(n),), describe(n), describe(x), describe(out), describe(grad), slots=slots)
    for trips, start, final, slope in zip(n.tolist(), x.tolist(), out, grad, strict=True):
        value, derivative = np.float64(start), np.float64(1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(trips):
                value, derivative = value * (1.5 - value) + k, derivative * (1.5 - 2 * value)
        np.testing.assert_equal(final, value)
        if np.isfinite(derivative):
            np.testing.assert_allclose(slope, derivative, rtol=1e-12)


@each_compiler
def test_arena_smaller_than_the_states(compiler: Compiler) -> None:
    arrays = [ArrayType(int32, 1), *[ArrayType(float64, 1)] * 3]
    kernel = Compiled(make(arrays, recurrence(True, True)), compiler)
    n, x = np.array([6], np.int32), np.array([0.25])
    out, grad = np.zeros(1), np.zeros(1)
    kernel((1,), describe(n), describe(x), describe(out), describe(grad), arena_size=128)
    value, derivative = 0.25, 1.0
    for k in range(6):
        value, derivative = value * (1.5 - value) + k, derivative * (1.5 - 2 * value)
    np.testing.assert_allclose(grad, [derivative], rtol=1e-12)


@each_compiler
def test_insert_leaves_values_that_are_still_used(compiler: Compiler) -> None:
    def body(builder: Builder, out: Value) -> None:
        parts = [builder.const(float32, value) for value in (1, 2, 3)]
        nine = builder.const(float32, 9)
        old = builder.construct(vec3, parts)
        new = builder.insert(old, nine, (0,))
        inner = region(
            builder, [int32, vec3], lambda k, v: (builder.insert(v, builder.cast(float32, k), (None,), (k,)),)
        )
        looped, _ = builder.loop(builder.const(int32, 2), (new,), None, inner)
        branch = region(builder, [], lambda: (builder.insert(new, nine, (2,)),))
        other = region(builder, [], lambda: (new,))
        (joined,) = builder.if_(builder.const(bool_, True), branch, other)
        for index, value in enumerate((old, new, looped, joined)):
            builder.store(out, value, (builder.const(int32, index),))

    kernel = Compiled(make([ArrayType(vec3, 1)], body), compiler)
    out = np.zeros((4, 3), np.float32)
    kernel((1,), describe(out, ndim=1))
    np.testing.assert_array_equal(out, [[1, 2, 3], [9, 2, 3], [0, 1, 3], [9, 2, 9]])


@each_compiler
def test_invoked_function(compiler: Compiler) -> None:
    a, b, array = Value(float32, "a"), Value(float32, "b"), Value(ArrayType(float32, 1), "x")
    inner = Builder(Region((a, b, array)), HERE)
    (i,) = inner.thread_index(1)
    inner.yield_((call(inner, "sub", a, b), inner.load(array, (i,))))
    callee = Function("difference", (a, b, array), (float32, float32), inner.region, HERE)

    def body(builder: Builder, x: Value, out: Value) -> None:
        (i,) = builder.thread_index(1)
        one = builder.const(float32, 1)
        difference, same = builder.invoke(callee, (builder.load(x, (i,)), one, x))
        again, _ = builder.invoke(callee, (same, difference, x))
        builder.store(out, again, (i,))

    kernel = Compiled(make([ArrayType(float32, 1)] * 2, body), compiler)
    x, out = np.array([3, 5], np.float32), np.zeros(2, np.float32)
    kernel((2,), describe(x), describe(out))
    np.testing.assert_array_equal(out, [1, 1])


@each_compiler
def test_native_snippets(compiler: Compiler) -> None:
    def body(builder: Builder, x: Value, grid: Value, counter: Value, out: Value) -> None:
        (i,) = builder.thread_index(1)
        value = builder.load(x, (i,))
        (square,) = builder.native(("x",), (value,), float32, "float sq = x * x;\nreturn sq;", name="square")
        snippet = "int next = atomicAdd(counter, 1);\nif (next >= 0) out[i] = sinf(sq) + grid[i][1] + grid(i, 0);"
        builder.native(("sq", "grid", "counter", "out", "i"), (square, grid, counter, out, i), None, snippet)

    types = [ArrayType(float32, 1), ArrayType(float32, 2), ArrayType(int32, 1), ArrayType(float32, 1)]
    kernel = Compiled(make(types, body), compiler)
    x, grid = np.array([1, 2, 3], np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    counter, out = np.zeros(1, np.int32), np.zeros(3, np.float32)
    kernel((3,), describe(x), describe(grid), describe(counter), describe(out))
    np.testing.assert_allclose(out, np.sin(x * x) + grid.sum(1), rtol=1e-6)
    assert counter[0] == 3


@each_compiler
@pytest.mark.parametrize("has_gradient", [True, False])
def test_native_adjoint_convention(compiler: Compiler, has_gradient: bool) -> None:
    snippet = "adj_a += x[i] * adj_ret;\nadj_x[i] += a * adj_ret;\natomicAdd(&adj_x[i], adj_x[i]);"

    def body(builder: Builder, x: Value, out: Value) -> None:
        (i,) = builder.thread_index(1)
        a, adjoint = builder.const(float32, 3), builder.const(float32, 2)
        result = Value(float32)
        builder.append(
            Native(
                loc=HERE,
                results=(result,),
                operands=(a, x, i, x, adjoint),
                names=("a", "x", "i", "adj_x", "adj_ret"),
                result_names=("adj_a",),
                snippet=snippet,
            )
        )
        builder.store(out, result, (i,))

    kernel = Compiled(make([ArrayType(float32, 1)] * 2, body), compiler)
    x, grad, out = np.array([1, 2], np.float32), np.ones(2, np.float32), np.zeros(2, np.float32)
    kernel((2,), describe(x, grad if has_gradient else None), describe(out))
    np.testing.assert_array_equal(out, 2 * x)
    np.testing.assert_array_equal(grad, [14, 14] if has_gradient else [1, 1])
