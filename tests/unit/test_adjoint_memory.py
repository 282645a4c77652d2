"""The adjoint of memory: stores, atomics, several threads, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit.gradient_checks import adjoint_of_kernel, check, gradients_by_adjoint
from tests.unit.ir_programs import call, kernel, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Location, Value
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell, Records
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import float64, int32, int64
from warp._src.types.structs import struct
from warp._src.types.tensors import vector

VEC = vector(3, float64)
FLOATS = ArrayType(float64, 1)
VECTORS = ArrayType(VEC, 1)
INTS = ArrayType(int32, 1)
Params = tuple[Value, ...]
Write = Callable[[Builder, Params], Any]


@struct
class Holder:
    values: FLOATS
    weight: float64


def number(b: Builder, value: float) -> Value:
    return b.const(float64, value)


def integer(b: Builder, value: int) -> Value:
    return b.const(int32, value)


def squared(b: Builder, x: Value) -> Value:
    return call(b, "mul", x, x)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.2, 1.0, shape)


# -- stores ----------------------------------------------------------------------------------------------


def test_a_store_takes_the_gradient_and_leaves_zero() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.store(p[1], squared(b, b.load(p[0], [i])), [i])
        b.store(p[1], call(b, "sin", b.load(p[0], [i])), [i])

    x = random(3)
    gradients = gradients_by_adjoint(kernel([FLOATS] * 2, body), 3, [x, np.zeros(3)], [np.zeros(3), np.ones(3)])
    np.testing.assert_allclose(gradients[0], np.cos(x), rtol=1e-14)
    assert gradients[1].tolist() == [0, 0, 0]


def test_an_inactive_store_stops_the_gradient() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.store(p[0], number(b, 1.0), [i])

    assert gradients_by_adjoint(kernel([FLOATS], body), 2, [random(2)], [np.ones(2)])[0].tolist() == [0, 0]


def test_components_and_dynamic_components_of_elements() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        v = b.load(p[0], [i])
        b.store(p[1], call(b, "mul", v, b.extract(v, (1,))), [i])
        b.store(p[1], call(b, "dot", v, v), [i], (None,), [i])
        b.store(p[1], b.load(p[0], [i], (None,), [i]), [i], (0,))

    check(kernel([VECTORS, VECTORS], body), 3, [random(3, 3), random(3, 3)])


def test_in_place_operations_that_need_no_old_value() -> None:
    """y += x*x; y = 2*y; y[0] is cleared."""

    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.store(p[1], call(b, "add", b.load(p[1], [i]), squared(b, b.load(p[0], [i]))), [i])
        b.store(p[1], call(b, "mul", number(b, 2.0), b.load(p[1], [i])), [i])
        first = call(b, "eq", i, integer(b, 0))
        clear = region(b, [], lambda b, _: b.store(p[1], number(b, 0.0), [i]) or [])
        b.if_(first, clear, region(b, [], lambda b, _: []))

    check(kernel([FLOATS, FLOATS], body), 3, [random(3), random(3)])


def test_a_trajectory_in_one_array() -> None:
    """p[k + 1] = sin(p[k]) * p[0] along a row of the thread's own."""

    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)

        def step(b: Builder, a: Params) -> list[Value]:
            after = call(b, "add", a[0], integer(b, 1))
            b.store(p[0], call(b, "mul", call(b, "sin", b.load(p[0], [i, a[0]])), b.load(p[1], [i])), [i, after])
            return []

        b.loop(integer(b, 5), [], None, region(b, [int32], step))

    check(kernel([ArrayType(float64, 2), FLOATS], body), 2, [random(2, 6), random(2)])


def test_threads_that_hand_on_a_value_run_backwards() -> None:
    """x[t + 1] = 0.5 * x[t] + x[t + 1]: linear, so that nothing is needed, but the order matters."""

    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        after = call(b, "add", t, integer(b, 1))
        half = call(b, "mul", number(b, 0.5), b.load(p[0], [t]))
        b.store(p[0], call(b, "add", half, b.load(p[0], [after])), [after])

    check(kernel([FLOATS], body), 4, [random(5)])
    function, seed = kernel([FLOATS], body), [0.0, 0.0, 0.0, 0.0, 1.0]
    assert gradients_by_adjoint(function, 4, [random(5)], [seed])[0].tolist() == [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]


def test_one_array_for_two_parameters() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.store(p[1], call(b, "mul", number(b, 3.0), b.load(p[0], [i])), [i])

    memory = random(2)
    seed = np.ones(2)
    found = gradients_by_adjoint(kernel([FLOATS] * 2, body), 2, [memory, memory], [seed, seed], may_alias=True)
    assert found[0].tolist() == [3, 3]


def test_an_array_without_gradient_cuts_the_path() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.store(p[1], squared(b, b.load(p[0], [i])), [i])

    assert gradients_by_adjoint(kernel([FLOATS] * 2, body), 2, [random(2), random(2)], [np.zeros(2), None])[
        0
    ].tolist() == [0, 0]


def test_an_array_from_a_struct_in_a_branch() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)

        def then(b: Builder, _: Params) -> list[Value]:
            holder = b.load(p[0], [integer(b, 0)])
            inner = b.load(p[0], [integer(b, 1)], ("values",))
            x = call(b, "mul", b.load(b.extract(holder, ("values",)), [i]), b.load(inner, [i]))
            return [call(b, "mul", x, b.extract(holder, ("weight",)))]

        test = call(b, "gt", i, integer(b, 0))
        (y,) = b.if_(test, region(b, [], then), region(b, [], lambda b, _: [number(b, 1.0)]))
        b.atomic("add", p[1], y, [i])

    function = kernel([ArrayType(Holder, 1), FLOATS], body)
    cells = [ArrayCell(random(2), np.zeros(2), float64) for _ in range(2)]
    holders = np.empty(2, dtype=object)
    holders[:] = [{"values": cell, "weight": np.float64(2.0)} for cell in cells]
    gradients = np.empty(2, dtype=object)
    gradients[:] = [{"values": cell, "weight": np.float64(0.0)} for cell in cells]
    arguments = [ArrayCell(holders, gradients, Holder), ArrayCell(np.zeros(2), np.ones(2), float64)]
    adjoint, records = adjoint_of_kernel(function, 2), Records()
    assert adjoint.recorded is not None  # an array from memory could be the one that is written
    run_kernel(adjoint.recorded, 2, arguments, records=records)
    run_kernel(adjoint.function, 2, arguments, order="descending", records=records)
    assert cells[0].gradient.tolist() == [0, 2 * cells[1].primal[1]]
    assert cells[1].gradient.tolist() == [0, 2 * cells[0].primal[1]]


# -- atomics ---------------------------------------------------------------------------------------------


def atomic_kernel(kind: str, is_used: bool = False) -> Function:
    """An atomic with x[t]^2 on element t % 2; p[2] takes the old value if that is used."""

    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        at = call(b, "mod", t, integer(b, 2))
        old = b.atomic(kind, p[1], squared(b, b.load(p[0], [t])), [at])
        if is_used:
            b.store(p[2], call(b, "mul", number(b, 3.0), old), [t])

    return kernel([FLOATS] * 3, body)


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("kind", ["add", "sub", "exch"])
def test_atomics_and_the_values_that_they_return(kind: str, is_used: bool) -> None:
    check(atomic_kernel(kind, is_used), 5, [random(5), random(2), random(5)])


@pytest.mark.parametrize("start", [-1.0, 0.5, 2.0])
@pytest.mark.parametrize("kind", ["min", "max"])
def test_the_extremum_takes_the_gradient(kind: str, start: float) -> None:
    check(atomic_kernel(kind), 6, [random(6), np.full(2, start), np.zeros(6)])


def test_the_extremum_of_vectors_is_componentwise() -> None:
    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        b.atomic("max", p[1], b.load(p[0], [t]), [integer(b, 0)])

    check(kernel([VECTORS, VECTORS], body), 4, [random(4, 3), np.full((1, 3), 0.4)])


def test_one_of_several_equal_values_wins() -> None:
    x = np.array([0.5, 0.9, 0.1, 0.9, 0.9])
    seeds = [np.zeros(5), np.array([1.0, 0.0]), None]
    gradient = gradients_by_adjoint(atomic_kernel("max"), 5, [x, np.zeros(2), np.zeros(5)], seeds)
    assert sorted(gradient[0]) == [0, 0, 0, 0, 1.8]
    assert gradient[1].tolist() == [0, 0]


def test_reads_of_the_running_and_of_the_final_extremum() -> None:
    def after_each(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        b.atomic("max", p[1], b.load(p[0], [t]), [integer(b, 0)])
        b.store(p[2], b.load(p[1], [integer(b, 0)]), [t])

    def of_its_own(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        b.loop(
            integer(b, 3),
            [],
            None,
            region(b, [int32], lambda b, a: [b.atomic("max", p[1], element(b, p, a[0]), [t])][:0]),
        )
        b.store(p[2], squared(b, b.load(p[1], [t])), [t])

    def element(b: Builder, p: Params, k: Value) -> Value:
        return squared(b, b.load(p[0], [k]))

    check(kernel([FLOATS] * 3, after_each), 3, [np.array([0.3, 0.9, 0.5]), np.array([0.4]), np.zeros(3)])
    check(kernel([FLOATS] * 3, of_its_own), 3, [random(3), np.array([0.0, 0.4, 5.0]), np.zeros(3)])


def test_a_read_that_no_gradient_flows_through_does_no_harm() -> None:
    """if x > m: atomic_max(m, x) compares only."""

    def body(b: Builder, p: Params) -> None:
        (t,) = b.thread_index(1)
        x, zero = b.load(p[0], [t]), integer(b, 0)
        both = call(b, "gt", x, number(b, 0.3))
        best = region(b, [], lambda b, _: [b.atomic("max", p[1], x, [zero])][:0])
        b.if_(both, best, region(b, [], lambda b, _: []))

    check(kernel([FLOATS] * 2, body), 5, [random(5), np.zeros(1)])


# -- refusals --------------------------------------------------------------------------------------------


def at_lines(*parts: Write) -> Write:
    """Build each part on a line of its own, from 11 on."""

    def body(b: Builder, p: Params) -> None:
        for line, part in enumerate(parts, 11):
            with b.at(Location("example.py", line)):
                part(b, p)

    return body


def needed_square(b: Builder, p: Params) -> None:
    (i,) = b.thread_index(1)
    b.store(p[1], squared(b, b.load(p[0], [i])), [i])


def overwrite(b: Builder, p: Params) -> None:
    b.store(p[0], number(b, 1.0), list(b.thread_index(1)))


def condition_that_writes(b: Builder, p: Params) -> None:
    (i,) = b.thread_index(1)

    def test(b: Builder, a: Params) -> list[Value]:
        b.atomic("add", p[1], squared(b, a[0]), [i])
        return [call(b, "lt", a[0], number(b, 3.0))]

    step = region(b, [int64, float64], lambda b, a: [call(b, "add", a[1], a[1])])
    b.loop(None, [b.load(p[0], [i])], region(b, [float64], test), step)


def condition_that_reads(b: Builder, p: Params) -> None:
    """while p0[i] < 3: p0[i] *= 1 + p0[i]."""
    (i,) = b.thread_index(1)
    test = region(b, [], lambda b, _: [call(b, "lt", b.load(p[0], [i]), number(b, 3.0))])

    def step(b: Builder, _: Params) -> list[Value]:
        x = b.load(p[0], [i])
        b.store(p[0], call(b, "mul", x, call(b, "add", number(b, 1.0), x)), [i])
        return []

    b.loop(None, [], test, region(b, [int64], step))


@pytest.mark.parametrize("write", [condition_that_writes, condition_that_reads])
def test_conditions_that_work_on_memory(write: Write) -> None:
    function = kernel([FLOATS, FLOATS], write)
    assert not adjoint_of_kernel(function, 4).problems
    check(function, 4, [random(4), random(4)])


def native_without_adjoint(b: Builder, p: Params) -> None:
    (i,) = b.thread_index(1)
    (y,) = b.native(("x",), [b.load(p[0], [i])], float64, "return x * x;", name="square")
    b.store(p[1], y, [i])


def native_that_writes(b: Builder, p: Params) -> None:
    b.native(("x",), [p[0]], None, "x[0] = 1;", name="fill")


def native_with_adjoint(b: Builder, p: Params) -> None:
    (i,) = b.thread_index(1)
    adjoint = "adj_x[i] += 2 * x[i] * adj_y[i]; adj_y[i] = 0;"
    b.native(("x", "y", "i"), [p[0], p[1], i], None, "y[i] = x[i] * x[i];", adjoint_snippet=adjoint, name="square")


@pytest.mark.parametrize(
    ("parts", "threads", "line", "text"),
    [
        ((overwrite, native_without_adjoint), 1, 12, "'square' called in line 12 has no adjoint snippet"),
        ((overwrite, native_that_writes), 1, 12, "'fill' called in line 12 has no adjoint snippet"),
        ((native_with_adjoint, overwrite), 1, 11, "line 12 may change what the adjoint of native code in line 11"),
    ],
)
def test_what_cannot_be_right_is_refused_with_the_line(
    parts: Sequence[Write], threads: int, line: int, text: str
) -> None:
    function = kernel([FLOATS, FLOATS, INTS], at_lines(*parts))
    found = adjoint_of_kernel(function, threads).problems
    assert any(text in problem.text and problem.loc.line == line for problem in found), found
