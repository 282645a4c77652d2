"""Recorded loads: what a taped kernel keeps and where, and that its adjoint is right with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.unit.gradient_checks import adjoint_of_kernel, check, gradients_by_adjoint, gradients_by_duals
from tests.unit.ir_programs import call, kernel, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell, Records
from warp._src.ir.ops import Recall, Record, ReverseLoop
from warp._src.passes.native_text import only_reads, uses
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float32, float64, int32, int64
from warp._src.types.tensors import transformation, vector

FLOATS = ArrayType(float64, 1)
VECTORS = ArrayType(vector(3, float64), 1)
INTS = ArrayType(int32, 1)
Params = tuple[Value, ...]
Step = Callable[[Builder, Value, Params], Any]


def number(b: Builder, value: float) -> Value:
    return b.const(float64, value)


def integer(b: Builder, value: int) -> Value:
    return b.const(int32, value)


def squared(b: Builder, x: Value) -> Value:
    return call(b, "mul", x, x)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.2, 1.0, shape)


def of_threads(step: Step, *types: Any) -> Function:
    """A kernel that does `step` with its thread index; three arrays of floats unless told otherwise."""
    return kernel(types or [FLOATS] * 3, lambda b, p: step(b, b.thread_index(1)[0], p))


def looped(b: Builder, count: Value, step: Callable[[Builder, Value], Any]) -> None:
    b.loop(count, [], None, region(b, [int32], lambda b, a: [step(b, a[0])][:0]))


def offsets(function: Function, kind: type[Record] | type[Recall]) -> list[int | None]:
    return [op.offset for op in function.walk() if isinstance(op, kind)]


def square_in_place(b: Builder, t: Value, p: Params) -> None:
    b.store(p[0], squared(b, b.load(p[0], [t])), [t])


# -- what is recorded --------------------------------------------------------------------------------------


def double(b: Builder, t: Value, p: Params) -> None:
    b.store(p[0], call(b, "mul", number(b, 2.0), b.load(p[0], [t])), [t])


def add_square(b: Builder, t: Value, p: Params) -> None:
    b.store(p[0], call(b, "add", b.load(p[0], [t]), squared(b, b.load(p[1], [t]))), [t])


def store_only(b: Builder, t: Value, p: Params) -> None:
    b.store(p[0], squared(b, b.load(p[1], [t])), [t])


def unused_atomic(b: Builder, t: Value, p: Params) -> None:
    b.atomic("add", p[0], b.load(p[1], [t]), [integer(b, 0)])


@pytest.mark.parametrize("step", [double, add_square, store_only, unused_atomic])
def test_what_needs_no_old_value_records_nothing(step: Step) -> None:
    adjoint = adjoint_of_kernel(of_threads(step), 3)
    assert (adjoint.recorded, adjoint.bytes_per_thread, adjoint.has_stream) == (None, 0, False)
    check(of_threads(step), 3, [random(3), random(3), random(3)])


def test_values_outside_loops_have_fixed_places() -> None:
    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        v = b.load(p[0], [t])
        x = b.load(p[1], [t])
        flag = b.load(p[2], [t])
        b.store(p[0], call(b, "mul", v, b.cast(float64, x)), [t])
        b.store(p[1], squared(b, x), [t])
        grown = region(b, [], lambda b, _: b.store(p[3], squared(b, b.load(p[3], [t])), [t]) or [])
        b.if_(flag, grown, region(b, [], lambda b, _: []))
        b.store(p[2], b.const(bool_, False), [t])

    types = [VECTORS, ArrayType(float32, 1), ArrayType(bool_, 1), FLOATS]
    adjoint = adjoint_of_kernel(kernel(types, body), 3)
    assert adjoint.recorded is not None
    assert sorted(offsets(adjoint.recorded, Record)) == [0, 24, 32, 40]  # 24 bytes, then 4, 1 and 8 in 8 each
    assert set(offsets(adjoint.function, Recall)) <= {0, 24, 32, 40}
    assert (adjoint.bytes_per_thread, adjoint.has_stream) == (48, False)


def test_what_the_adjoint_does_not_need_is_not_kept() -> None:
    """One of the two loads of overwritten elements is needed."""

    def step(b: Builder, t: Value, p: Params) -> None:
        x, y = b.load(p[0], [t]), b.load(p[1], [t])
        b.store(p[0], squared(b, x), [t])
        b.store(p[1], call(b, "mul", y, number(b, 3.0)), [t])

    assert adjoint_of_kernel(of_threads(step), 3).bytes_per_thread == 8


def test_every_thread_and_every_iteration_keeps_its_own() -> None:
    """x[t] *= x[t], n[t] times: x, x^2, x^4 and so on are on record, thread after thread."""

    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        looped(b, b.load(p[1], [t]), lambda b, _: square_in_place(b, t, p))

    adjoint, records = adjoint_of_kernel(kernel([FLOATS, INTS], body), 3), Records()
    x = np.array([2.0, 3.0, 5.0])
    counts = np.array([2, 0, 3], np.int32)
    cells = [ArrayCell(x.copy(), np.ones(3), float64), ArrayCell(counts, None, int32)]
    assert adjoint.recorded is not None
    run_kernel(adjoint.recorded, 3, cells, records=records)
    assert list(records.stream.values()) == [2.0, 4.0, 5.0, 25.0, 625.0]
    assert list(records.stream) == [0, 8, 16, 24, 32]
    assert records.starts == {(0,): 0, (1,): 16, (2,): 16}
    run_kernel(adjoint.function, 3, cells, order="descending", records=records)
    powers = 2.0**counts
    np.testing.assert_allclose(cells[0].gradient, powers * x ** (powers - 1), rtol=1e-14)


def test_positions_in_a_loop_are_closed_forms() -> None:
    """Two loads in each iteration, yet the reverse loop keeps no state."""

    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)

        def step(b: Builder, _: Value) -> None:
            square_in_place(b, t, p)
            b.store(p[1], call(b, "mul", b.load(p[1], [t]), b.load(p[0], [t])), [t])

        looped(b, b.load(p[2], [t]), step)

    function = kernel([FLOATS, FLOATS, INTS], body)
    loops = [op for op in adjoint_of_kernel(function, 2).function.walk() if isinstance(op, ReverseLoop)]
    assert [loop.states for loop in loops] == [0]
    check(function, 3, [random(3), random(3), np.array([0, 1, 4], np.int32)])


# -- positions through regions -----------------------------------------------------------------------------


def in_a_branch(b: Builder, t: Value, p: Params, k: Value) -> None:
    """Iterations keep one value, two values or none."""
    even = call(b, "eq", call(b, "mod", call(b, "add", k, t), integer(b, 2)), integer(b, 0))

    def then(b: Builder, _: Params) -> list[Value]:
        square_in_place(b, t, p)
        large = call(b, "gt", b.load(p[0], [t]), number(b, 0.1))
        b.if_(large, region(b, [], lambda b, _: square_in_place(b, t, p) or []), region(b, [], lambda b, _: []))
        return []

    b.if_(even, region(b, [], then), region(b, [], lambda b, _: []))


def nested(b: Builder, t: Value, p: Params, k: Value) -> None:
    looped(b, k, lambda b, j: in_a_branch(b, t, p, j))
    square_in_place(b, t, p)


def with_atomics(b: Builder, t: Value, p: Params, k: Value) -> None:
    old = b.atomic("exch", p[1], b.load(p[0], [t]), [call(b, "mod", k, integer(b, 2))])
    b.store(p[0], call(b, "sin", call(b, "add", old, b.load(p[0], [t]))), [t])
    b.atomic("max", p[1], call(b, "mul", old, b.load(p[0], [t])), [integer(b, 1)])


@pytest.mark.parametrize("step", [in_a_branch, nested, with_atomics], ids=lambda step: step.__name__)
def test_streams_through_loops_and_branches(step: Callable[..., None]) -> None:
    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        square_in_place(b, t, p)
        looped(b, b.load(p[2], [t]), lambda b, k: step(b, t, p, k))
        looped(b, integer(b, 2), lambda b, k: square_in_place(b, t, p))

    check(kernel([FLOATS, FLOATS, INTS], body), 4, [random(4), random(4), np.array([0, 3, 5, 1], np.int32)])


def test_a_loop_that_stops_on_a_carried_value() -> None:
    """while c < 2: x[t] *= x[t] + 0.9; c += x[t]."""

    def step(b: Builder, t: Value, p: Params) -> None:
        def body(b: Builder, a: Params) -> list[Value]:
            x = b.load(p[0], [t])
            b.store(p[0], call(b, "mul", x, call(b, "add", x, number(b, 0.9))), [t])
            return [call(b, "add", a[1], b.load(p[0], [t]))]

        test = region(b, [float64], lambda b, a: [call(b, "lt", a[0], number(b, 2.0))])
        end, _ = b.loop(None, [number(b, 0.0)], test, region(b, [int64, float64], body))
        b.store(p[1], squared(b, end), [t])

    check(of_threads(step), 3, [np.array([0.3, 0.8, 1.5]), np.zeros(3), np.zeros(3)])


# -- values ------------------------------------------------------------------------------------------------


def index_from_counter(b: Builder, t: Value, p: Params) -> None:
    at = b.atomic("add", p[2], integer(b, 1), [integer(b, 0)])
    b.store(p[1], call(b, "sin", b.load(p[0], [at])), [at])


def square_of_old(b: Builder, t: Value, p: Params) -> None:
    old = b.atomic("add", p[0], call(b, "sin", b.load(p[1], [t])), [integer(b, 0)])
    b.store(p[1], squared(b, old), [t])


def neighbour(b: Builder, t: Value, p: Params) -> None:
    b.store(p[0], call(b, "sin", b.load(p[0], [t])), [call(b, "add", t, integer(b, 1))])


def two_writers(b: Builder, t: Value, p: Params) -> None:
    at = call(b, "mod", t, integer(b, 2))
    b.store(p[0], call(b, "mul", b.load(p[0], [at]), b.load(p[1], [t])), [at])


def overwritten_after_use(b: Builder, t: Value, p: Params) -> None:
    b.store(p[1], squared(b, b.load(p[0], [t])), [t])
    b.store(p[0], number(b, 1.0), [t])


def swap(b: Builder, t: Value, p: Params) -> None:
    after = call(b, "add", t, integer(b, 1))
    first, second = b.load(p[0], [t]), b.load(p[0], [after])
    b.store(p[1], call(b, "mul", first, second), [t])
    b.store(p[0], second, [t])
    b.store(p[0], first, [after])


def compare_and_swap(b: Builder, t: Value, p: Params) -> None:
    """Threads 0 and 2 find what they expect, and thread 2 finds what thread 0 stored."""
    expected = b.load(p[0], [call(b, "mul", integer(b, 3), call(b, "mod", t, integer(b, 2)))])
    old = b.atomic("cas", p[0], squared(b, b.load(p[1], [t])), [integer(b, 0)], expected=expected)
    b.store(p[1], call(b, "sin", old), [t])


def two_extremes(b: Builder, t: Value, p: Params) -> None:
    b.atomic("max", p[0], b.load(p[1], [t]), [integer(b, 0)])
    b.atomic("min", p[0], squared(b, b.load(p[1], [t])), [integer(b, 0)])


def old_extremum(b: Builder, t: Value, p: Params) -> None:
    old = b.atomic("max", p[0], b.load(p[1], [t]), [integer(b, 0)])
    b.store(p[1], squared(b, old), [t])


STEPS = (
    square_in_place,
    index_from_counter,
    square_of_old,
    neighbour,
    two_writers,
    overwritten_after_use,
    swap,
    compare_and_swap,
    two_extremes,
    old_extremum,
)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_overwritten_values(step: Step, threads: int) -> None:
    function = of_threads(step, FLOATS, FLOATS, INTS)
    memory = [random(5), np.random.default_rng(2).uniform(0.2, 1.0, 5), np.zeros(1, np.int32)]
    check(function, threads, memory)
    assert adjoint_of_kernel(function, threads).recorded is not None or step is neighbour


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_one_array_for_two_parameters(step: Step) -> None:
    function = of_threads(step, FLOATS, FLOATS, INTS)
    memory = random(5)
    arguments = [memory, memory, np.zeros(1, np.int32)]
    seed = np.random.default_rng(3).uniform(-1.0, 1.0, 5)
    found = gradients_by_adjoint(function, 4, arguments, [seed, seed, None], may_alias=True)
    single = of_threads(lambda b, t, p: step(b, t, (p[0], p[0], p[1])), FLOATS, INTS)
    expected = gradients_by_duals(single, 4, [memory, arguments[2]], [seed, None])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-14)


def test_a_transform_overwritten_by_component() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        v = b.load(p[0], [i], ("p",))
        b.store(p[0], number(b, 9.0), [i], (0,))
        b.store(p[1], call(b, "dot", v, v), [i])

    check(kernel([ArrayType(transformation(float64), 1), FLOATS], body), 2, [random(2, 7), random(2)])


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("is_used", [False, True])
def test_a_tie_has_exactly_one_winner(kind: str, is_used: bool) -> None:
    """Three equal values and an equal start: all of the gradient reaches one of the four."""

    def step(b: Builder, t: Value, p: Params) -> None:
        old = b.atomic(kind, p[0], b.load(p[1], [t]), [integer(b, 0)])
        if is_used:
            b.store(p[2], call(b, "mul", old, number(b, 0.0)), [t])

    memory, seeds = [np.full(1, 0.5), np.full(3, 0.5), np.zeros(3)], [np.ones(1), np.zeros(3), np.zeros(3)]
    found = gradients_by_adjoint(of_threads(step), 3, memory, seeds)
    assert sorted([*found[0], *found[1]]) == [0, 0, 0, 1]


# -- native code -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_read_only"),
    [
        ("y[i] = x[i] * x[i + 1];", True),
        ("y[i] = x(i, 2) == 1 ? sin(x[n[i]]) : 0;", True),
        ("y[i] = 1;", True),
        ("x[i] = 1;", False),
        ("x [n[i]] += 1;", False),
        ("x(i, j) <<= 1;", False),
        ("x[i]++;", False),
        ("--x[i];", False),
        ("x[i][0] = 1;", False),
        ("x[i].y = 1;", False),
        ("double* to = &x[i];", False),
        ("double* to = x.data;", False),
        ("atomicAdd(&x[i], 1);", False),
        ("atomicAdd(x, i, 1);", False),
        ("fill(x);", False),
        ("y[atomicMax(x[i], 2)] = 1;", False),
    ],
)
def test_what_the_text_of_a_snippet_does_to_an_array(text: str, is_read_only: bool) -> None:
    assert only_reads(text, "x") == is_read_only


def test_names_in_snippets_are_whole_words() -> None:
    assert uses("adj_y[i] += x[i];", "x")
    assert not uses("adj_y[i] += xs[i] * adj_x[i];", "x")
    assert not uses(None, "x")
