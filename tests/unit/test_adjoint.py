"""The adjoint of values, branches and loops: closed forms, and dual numbers where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit.gradient_checks import SLOTS, adjoint_of_kernel, check, gradients_by_adjoint
from tests.unit.ir_programs import build, call, kernel, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.ops import Loop, ReverseLoop
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float64, int32, int64
from warp._src.types.structs import struct
from warp._src.types.tensors import vector

VEC = vector(3, float64)
FLOATS = ArrayType(float64, 1)
INTS = ArrayType(int32, 1)
Params = tuple[Value, ...]
Formula = Callable[[Builder, Value], Value]


@struct
class Particle:
    x: VEC
    mass: float64
    kind: int32


def number(b: Builder, value: float) -> Value:
    return b.const(float64, value)


def integer(b: Builder, value: int) -> Value:
    return b.const(int32, value)


def elementwise(formula: Formula) -> Function:
    """y[i] = formula(x[i])."""

    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.store(p[1], formula(b, b.load(p[0], [i])), [i])

    return kernel([FLOATS, FLOATS], body)


def derivative(formula: Formula, x: float, *, slots: int | None = None) -> float:
    """Derivative of an elementwise formula by its adjoint."""
    memory = [np.array([x]), np.zeros(1)]
    gradient, _ = gradients_by_adjoint(elementwise(formula), 1, memory, [np.zeros(1), np.ones(1)], slots=slots)
    return float(gradient[0])


def power(b: Builder, x: Value, trip: Value) -> Value:
    step = region(b, [trip.type, float64], lambda b, a: [call(b, "mul", a[1], x)])
    return b.loop(trip, [number(b, 1.0)], None, step)[0]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda b, x: x, lambda x: 1.0),
        (lambda b, x: call(b, "mul", call(b, "sin", x), x), lambda x: math.sin(x) + x * math.cos(x)),
        (lambda b, x: call(b, "sub", x, x), lambda x: 0.0),
        (lambda b, x: call(b, "div", x, call(b, "add", x, number(b, 1.0))), lambda x: 1 / (1 + x) ** 2),
        (lambda b, x: b.cast(float64, b.cast(int32, x)), lambda x: 0.0),
        (lambda b, x: power(b, x, integer(b, 5)), lambda x: 5 * x**4),
        (lambda b, x: power(b, x, integer(b, 0)), lambda x: 0.0),
        (lambda b, x: power(b, x, integer(b, -3)), lambda x: 0.0),
    ],
)
def test_closed_forms(formula: Formula, expected: Callable[[float], float]) -> None:
    assert derivative(formula, 0.7) == pytest.approx(expected(0.7), rel=1e-13)


# -- branches --------------------------------------------------------------------------------------------


def nested_branch(b: Builder, x: Value) -> Value:
    """x*x below 1, 3*x below 2, else sin(x)."""
    inner = region(b, [], lambda b, _: [call(b, "mul", number(b, 3.0), x)])
    below_two = call(b, "lt", x, number(b, 2.0))
    orelse = region(b, [], lambda b, _: b.if_(below_two, inner, region(b, [], lambda b, _: [call(b, "sin", x)])))
    then = region(b, [], lambda b, _: [call(b, "mul", x, x)])
    return b.if_(call(b, "lt", x, number(b, 1.0)), then, orelse)[0]


@pytest.mark.parametrize(("x", "expected"), [(0.5, 1.0), (1.5, 3.0), (2.5, math.cos(2.5))])
def test_nested_branches(x: float, expected: float) -> None:
    assert derivative(nested_branch, x) == pytest.approx(expected, rel=1e-13)


def test_a_value_of_a_branch_that_the_reverse_needs() -> None:
    """The branch computes sin(x)*x and squares it; both factors live inside."""

    def formula(b: Builder, x: Value) -> Value:
        def then(b: Builder, _: Params) -> list[Value]:
            product = call(b, "mul", call(b, "sin", x), x)
            return [call(b, "mul", product, product)]

        return b.if_(call(b, "gt", x, number(b, 0.0)), region(b, [], then), region(b, [], lambda b, _: [x]))[0]

    x = 0.8
    expected = 2 * math.sin(x) * x * (math.cos(x) * x + math.sin(x))
    assert derivative(formula, x) == pytest.approx(expected, rel=1e-13)
    assert derivative(formula, -x) == 1.0


def test_branches_in_loops_that_swap_and_drop_values() -> None:
    def formula(b: Builder, x: Value) -> Value:
        def step(b: Builder, a: Params) -> Any:
            odd = call(b, "eq", call(b, "mod", a[0], integer(b, 2)), integer(b, 1))
            then = region(b, [], lambda b, _: [a[2], call(b, "mul", a[1], a[2])])
            return b.if_(odd, then, region(b, [], lambda b, _: [call(b, "sin", a[2]), a[1]]))

        return call(
            b, "mul", *b.loop(integer(b, 7), [x, number(b, 0.5)], None, region(b, [int32, float64, float64], step))[:2]
        )

    check(elementwise(formula), 3, [np.array([0.3, -0.9, 1.4]), np.zeros(3)])


# -- loops -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("trips", [0, 1, 2, 9, 40])
def test_a_loop_of_any_length_with_any_slots(trips: int, slots: int | None) -> None:
    """The logistic map: the derivative is the product of 3.7 (1 - 2 x) over the orbit."""

    def formula(b: Builder, x: Value) -> Value:
        def step(b: Builder, a: Params) -> list[Value]:
            rest = call(b, "sub", number(b, 1.0), a[1])
            return [call(b, "mul", number(b, 3.7), call(b, "mul", a[1], rest))]

        return b.loop(integer(b, trips), [x], None, region(b, [int32, float64], step))[0]

    x, expected = 0.3, 1.0
    for _ in range(trips):
        expected *= 3.7 * (1 - 2 * x)
        x = 3.7 * x * (1 - x)
    assert derivative(formula, 0.3, slots=slots) == pytest.approx(expected, rel=1e-9)


def until(b: Builder, x: Value, limit: float, has_trip: bool) -> tuple[Value, ...]:
    """Square-ish growth with a break flag: a <- a * (1 + a/2) until a > limit; gives a, its index and the count."""

    def step(b: Builder, a: Params) -> list[Value]:
        grown = call(b, "mul", a[1], call(b, "add", number(b, 1.0), call(b, "mul", number(b, 0.5), a[1])))
        return [grown, call(b, "gt", grown, number(b, limit)), call(b, "add", a[3], integer(b, 2))]

    index = int32 if has_trip else int64
    test = region(b, [float64, bool_, int32], lambda b, a: [call(b, "logical_not", a[1])])
    body = region(b, [index, float64, bool_, int32], step)
    inits = [x, b.const(bool_, False), integer(b, 0)]
    return b.loop(integer(b, 50) if has_trip else None, inits, test, body)


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("has_trip", [True, False])
@pytest.mark.parametrize("limit", [0.1, 1.0, 1000.0])
def test_loops_with_a_break(limit: float, has_trip: bool, slots: int | None) -> None:
    x, slope = 0.2, 1.0
    while True:
        slope *= 1 + x
        x = x * (1 + 0.5 * x)
        if x > limit:
            break
    found = derivative(lambda b, v: until(b, v, limit, has_trip)[0], 0.2, slots=slots)
    assert found == pytest.approx(slope, rel=1e-12)


def test_the_count_and_a_counter_are_used_after_the_loop() -> None:
    """y = x**count * x * float(counter), where the loop runs as often as its own condition says."""

    def formula(b: Builder, x: Value) -> Value:
        _, _, counter, count = until(b, x, 3.0, True)
        scaled = call(b, "mul", x, b.cast(float64, counter))
        return call(b, "mul", power(b, x, count), scaled)

    check(elementwise(formula), 2, [np.array([0.4, 0.9]), np.zeros(2)])


def test_trip_counts_from_memory_and_nested_loops() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        x = b.load(p[0], [i])

        def outer(b: Builder, a: Params) -> list[Value]:
            def inner(b: Builder, c: Params) -> list[Value]:
                mixed = call(b, "add", call(b, "mul", c[1], a[1]), call(b, "mul", x, c[2]))
                return [call(b, "sin", mixed), call(b, "tanh", call(b, "sub", c[2], c[1]))]

            trip = call(b, "add", a[0], b.load(p[1], [i]))
            first, second, _ = b.loop(trip, [a[1], a[2]], None, region(b, [int32, float64, float64], inner))
            return [call(b, "add", first, number(b, 0.1)), call(b, "mul", second, first)]

        trip = b.load(p[1], [i])
        ends = b.loop(trip, [x, call(b, "mul", x, x)], None, region(b, [int32, float64, float64], outer))
        b.store(p[2], call(b, "add", ends[0], ends[1]), [i])

    check(
        kernel([FLOATS, INTS, FLOATS], body),
        3,
        [np.array([0.3, 0.6, -0.8]), np.array([0, 3, 5], np.int32), np.zeros(3)],
    )


def nest(b: Builder, x: Value, depth: int) -> Value:
    """`depth` loops, the innermost of which squares and shrinks; each level mixes in its entry value."""
    if depth == 0:
        return call(b, "sin", call(b, "mul", x, x))

    def step(b: Builder, a: Params) -> list[Value]:
        return [call(b, "add", nest(b, a[1], depth - 1), call(b, "mul", a[2], a[1])), call(b, "tanh", a[1])]

    end = b.loop(integer(b, 2), [x, x], None, region(b, [int32, float64, float64], step))
    return call(b, "sub", end[0], end[1])


def test_the_size_of_the_adjoint_of_nested_loops_grows_like_the_square_of_their_depth() -> None:
    sizes = []
    for depth in range(1, 6):
        function = elementwise(lambda b, x, depth=depth: nest(b, x, depth))  # type: ignore[misc]  # binds the depth now
        sizes.append(len(list(adjoint_of_kernel(function, 2).function.walk())))
    steps = np.diff(sizes)
    assert np.all(np.diff(steps) <= steps[0]), sizes


def test_five_nested_loops() -> None:
    check(elementwise(lambda b, x: nest(b, x, 4)), 2, [np.array([0.3, 0.5]), np.zeros(2)])


def test_a_sum_is_not_replayed() -> None:
    def body(b: Builder, p: Params) -> None:
        step = region(b, [int32, float64], lambda b, a: [call(b, "add", a[1], b.load(p[0], [a[0]]))])
        total = b.loop(integer(b, 4), [number(b, 0.0)], None, step)[0]
        b.store(p[1], total, [integer(b, 0)])

    function = kernel([FLOATS, FLOATS], body)
    ops = list(adjoint_of_kernel(function, 1).function.walk())
    assert not any(isinstance(op, Loop) for op in ops)
    assert [op.states for op in ops if isinstance(op, ReverseLoop)] == [0]
    gradient, _ = gradients_by_adjoint(function, 1, [np.ones(4), np.zeros(1)], [np.zeros(4), np.array([3.0])])
    assert gradient.tolist() == [3] * 4


def test_the_state_is_the_smallest_closure() -> None:
    """Of four carried values only the one that the derivative needs is a state; counters never are."""

    def formula(b: Builder, x: Value) -> Value:
        def step(b: Builder, a: Params) -> list[Value]:
            squared = call(b, "mul", a[1], a[1])
            total = call(b, "add", a[2], squared)
            return [call(b, "sin", a[1]), total, call(b, "add", a[3], integer(b, 1)), call(b, "add", a[4], a[2])]

        inits = [x, x, integer(b, 0), x]
        body = region(b, [int32, float64, float64, int32, float64], step)
        ends = b.loop(integer(b, 5), inits, None, body)
        return call(b, "add", ends[1], ends[3])

    ops = adjoint_of_kernel(elementwise(formula), 1).function.walk()
    assert [op.states for op in ops if isinstance(op, ReverseLoop)] == [1]
    check(elementwise(formula), 1, [np.array([0.4]), np.zeros(1)])


# -- aggregates ------------------------------------------------------------------------------------------


def test_a_dynamic_insert_takes_the_gradient_of_the_old_component() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        v = b.load(p[0], [i])

        def step(b: Builder, a: Params) -> list[Value]:
            product = call(b, "mul", b.extract(a[1], (0,)), b.extract(a[1], (None,), [a[0]]))
            at = call(b, "mod", call(b, "add", a[0], i), integer(b, 3))
            return [b.insert(a[1], product, (None,), [at])]

        end = b.loop(integer(b, 3), [v], None, region(b, [int32, VEC], step))[0]
        b.store(p[1], b.insert(end, b.extract(end, (2,)), (0,)), [i])

    rng = np.random.default_rng(2)
    check(kernel([ArrayType(VEC, 1)] * 2, body), 3, [rng.uniform(0.5, 1.5, (3, 3)), np.zeros((3, 3))])


def test_struct_values_with_integers_travel_through_branches_and_loops() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        x = b.load(p[0], [i])
        s = b.construct(Particle, [b.construct(VEC, [x, call(b, "sin", x), x]), x, i])

        def step(b: Builder, a: Params) -> Any:
            grown = call(b, "mul", b.extract(a[1], ("mass",)), b.extract(a[1], ("x", 1)))
            moved = b.insert(b.insert(a[1], grown, ("x", 0)), b.extract(a[1], ("x", 2)), ("mass",))
            then = region(b, [], lambda b, _: [b.insert(moved, a[0], ("kind",))])
            test = call(b, "lt", b.extract(a[1], ("kind",)), integer(b, 2))
            return b.if_(test, then, region(b, [], lambda b, _: [b.insert(a[1], grown, ("x", 2))]))

        end = b.loop(integer(b, 4), [s], None, region(b, [int32, Particle], step))[0]
        total = call(b, "dot", b.extract(end, ("x",)), b.extract(end, ("x",)))
        b.store(p[1], call(b, "mul", total, b.extract(end, ("mass",))), [i])

    check(kernel([FLOATS, FLOATS], body), 3, [np.array([0.7, 1.1, 0.9]), np.zeros(3)])


# -- functions that keep their body ----------------------------------------------------------------------


def orbit(length: int) -> Function:
    """A large function with a loop whose states its adjoint keeps, and whose count is needed."""

    def body(b: Builder, p: Params) -> list[Value]:
        def step(b: Builder, a: Params) -> list[Value]:
            value = a[1]
            for _ in range(length):
                value = call(b, "sin", call(b, "add", call(b, "mul", value, value), p[0]))
            return [value]

        test = region(b, [float64], lambda b, a: [call(b, "lt", a[0], number(b, 5.0))])
        end, count = b.loop(p[1], [p[0]], test, region(b, [int32, float64], step))
        return [call(b, "mul", end, b.cast(float64, count))]

    return build([float64, int32], body, name="orbit")


def test_a_shared_function_with_a_loop_is_called_from_a_loop() -> None:
    shared = orbit(30)

    def formula(b: Builder, x: Value) -> Value:
        def step(b: Builder, a: Params) -> list[Value]:
            (first,) = b.invoke(shared, [a[1], call(b, "add", a[0], integer(b, 1))])
            (second,) = b.invoke(shared, [call(b, "mul", first, a[1]), integer(b, 3)])
            return [call(b, "add", second, x)]

        test = region(b, [float64], lambda b, a: [call(b, "lt", a[0], number(b, 9.0))])
        end, count = b.loop(integer(b, 4), [x], test, region(b, [int32, float64], step))
        return call(b, "mul", end, b.cast(float64, count))

    check(elementwise(formula), 2, [np.array([0.2, 0.4]), np.zeros(2)])


# -- metamorphic -----------------------------------------------------------------------------------------


def a_bit_of_everything() -> tuple[Function, Sequence[Any]]:
    def formula(b: Builder, x: Value) -> Value:
        return call(b, "add", nested_branch(b, nest(b, x, 2)), until(b, x, 3.0, False)[0])

    return elementwise(formula), [np.array([0.3, 0.5, 0.7]), np.zeros(3)]


def test_the_gradient_is_linear_in_the_seed() -> None:
    function, memory = a_bit_of_everything()
    rng = np.random.default_rng(4)
    left, right = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)
    parts = [gradients_by_adjoint(function, 3, memory, [np.zeros(3), seed])[0] for seed in (left, right)]
    both = gradients_by_adjoint(function, 3, memory, [np.zeros(3), 2 * left - right])[0]
    np.testing.assert_allclose(both, 2 * parts[0] - parts[1], rtol=1e-12)


def test_a_second_run_doubles_the_gradients_of_the_inputs() -> None:
    function, memory = a_bit_of_everything()
    once = gradients_by_adjoint(function, 3, memory, [np.zeros(3), np.ones(3)])
    again = gradients_by_adjoint(function, 3, memory, [once[0], np.ones(3)])
    np.testing.assert_allclose(again[0], 2 * once[0], rtol=1e-15)
    assert not once[1].any()


# -- strong zero -----------------------------------------------------------------------------------------


def test_an_adjoint_of_zero_contributes_zero_where_the_partial_is_infinite() -> None:
    def formula(b: Builder, x: Value) -> Value:
        root = call(b, "sqrt", x)
        then = region(b, [], lambda b, _: [root])
        return b.if_(call(b, "gt", x, number(b, 0.0)), then, region(b, [], lambda b, _: [x]))[0]

    assert derivative(formula, 0.0) == 1.0
    assert derivative(lambda b, x: call(b, "mul", call(b, "sqrt", x), number(b, 0.0)), 0.0) == 0.0
    assert derivative(lambda b, x: call(b, "sqrt", x), 0.0) == math.inf
