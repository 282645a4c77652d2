"""Which threads can meet, and which loads cannot be repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.ir_programs import build, call, kernel, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Location, Value
from warp._src.ir.ops import Atomic, Load, Space
from warp._src.passes.access import AccessAnalysis, mark_hazards
from warp._src.passes.induction import rewrite_induction
from warp._src.passes.inline import inline
from warp._src.passes.pipeline import accesses
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.scalars import float64, int32, int64, uint8
from warp._src.types.structs import struct
from warp._src.types.tensors import transformation, vector

VEC = vector(3, float64)
ROWS = ArrayType(float64, 2)
FLOATS = ArrayType(float64, 1)
INTS = ArrayType(int32, 1)


@struct
class Particle:
    x: VEC
    mass: float64


@struct
class Arrays:
    a: FLOATS
    b: FLOATS


Params = tuple[Value, ...]
Write = Callable[[Builder, Params], Any]


def integer(b: Builder, value: int) -> Value:
    return b.const(int32, value)


def tid(b: Builder, dimensions: int = 1) -> Any:
    found = b.thread_index(dimensions)
    return found[0] if dimensions == 1 else found


def plus(b: Builder, value: Value, offset: int) -> Value:
    return call(b, "add", value, b.const(value.type, offset))


def one(b: Builder) -> Value:
    return b.const(float64, 1.0)


# -- labels ----------------------------------------------------------------------------------------------


def covered(types: Sequence[Any], body: Write, may_alias: bool = False) -> set[int]:
    return set(accesses(kernel(types, body), may_alias=may_alias).covered)


def both_tids(b: Builder, p: Params) -> None:
    b.store(p[0], b.load(p[0], [tid(b)]), [tid(b)])


def swapped(b: Builder, p: Params) -> None:
    i, j = tid(b, 2)
    b.store(p[0], b.load(p[0], [j, i]), [i, j])


def rows(b: Builder, p: Params) -> None:
    i, j = tid(b, 2)
    b.store(b.view(p[0], [i]), one(b), [j])
    b.store(p[0], one(b), [i, j])


def in_a_loop(b: Builder, p: Params) -> None:
    i = tid(b)
    b.loop(integer(b, 3), [], None, region(b, [int32], lambda b, a: b.store(p[0], one(b), [i, a[0]]) or []))


def along_a_loop(b: Builder, p: Params) -> None:
    i = tid(b)
    at = lambda b, a: [call(b, "add", i, a[0])]  # noqa: E731
    b.loop(integer(b, 3), [], None, region(b, [int32], lambda b, a: b.store(p[0], one(b), at(b, a)) or []))


@pytest.mark.parametrize(
    ("types", "body", "expected"),
    [
        ([FLOATS], lambda b, p: b.store(p[0], one(b), [tid(b)]), {0}),
        ([FLOATS], lambda b, p: b.store(p[0], one(b), [integer(b, 0)]), set()),
        ([FLOATS], lambda b, p: b.store(p[0], one(b), [plus(b, tid(b), 4)]), {0}),
        ([FLOATS], lambda b, p: b.store(p[0], one(b), [call(b, "mul", tid(b), integer(b, 2))]), {0}),
        ([FLOATS], lambda b, p: b.store(p[0], one(b), [call(b, "floordiv", tid(b), integer(b, 2))]), set()),
        ([FLOATS], lambda b, p: b.store(p[0], one(b), [b.cast(int32, b.cast(uint8, tid(b)))]), set()),
        ([FLOATS, int32], lambda b, p: b.store(p[0], one(b), [call(b, "add", tid(b), p[1])]), {0}),
        ([FLOATS, INTS], lambda b, p: b.store(p[0], one(b), [b.load(p[1], [tid(b)])]), set()),
        ([FLOATS], lambda b, p: b.store(p[0], one(b), [call(b, "add", *tid(b, 2))]), set()),
        ([ROWS], lambda b, p: b.store(p[0], one(b), list(tid(b, 2))), {0, 1}),
        ([ROWS], lambda b, p: b.store(p[0], one(b), [tid(b)] * 2), {0}),
        ([FLOATS], both_tids, {0}),
        ([ROWS], swapped, set()),
        ([ROWS], rows, {0, 1}),
        ([ROWS], in_a_loop, {0}),
        ([FLOATS], along_a_loop, set()),
        ([IndexedArrayType(float64, 1)], lambda b, p: b.store(p[0], one(b), [tid(b)]), set()),
        ([FLOATS], lambda b, p: b.atomic("add", p[0], one(b), [tid(b)]), {0}),
        ([FLOATS], lambda b, p: b.atomic("add", p[0], one(b), [integer(b, 0)]), set()),
        ([FLOATS], lambda b, p: b.native(("x",), [p[0]], None, "x[0] = 1;"), set()),
    ],
)
def test_covered_dimensions(types: Sequence[Any], body: Write, expected: set[int]) -> None:
    assert covered(types, body) & {0, 1} == expected


def test_an_array_that_is_only_read_keeps_no_threads_apart() -> None:
    def body(b: Builder, p: Params) -> None:
        b.store(p[1], b.load(p[0], [integer(b, 0)]), [tid(b)])

    assert covered([FLOATS, FLOATS], body) == {0}
    assert covered([FLOATS, FLOATS], body, may_alias=True) == set()


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_neighbour_makes_threads_meet(offset: int) -> None:
    def body(b: Builder, p: Params) -> None:
        i = tid(b)
        b.store(p[0], b.load(p[0], [plus(b, i, offset)]), [i])

    assert covered([FLOATS], body) == (set() if offset else {0})


def test_every_written_array_must_keep_threads_apart() -> None:
    def body(b: Builder, p: Params) -> None:
        b.store(p[0], one(b), [tid(b)])
        b.store(p[1], one(b), [integer(b, 0)])

    assert covered([FLOATS, FLOATS], body) == set()


def test_members_of_structs_are_arrays_of_their_own() -> None:
    def body(b: Builder, p: Params) -> None:
        i = tid(b)
        b.store(b.extract(p[0], ("a",)), b.load(b.extract(p[0], ("b",)), [integer(b, 0)]), [i])

    summary = accesses(kernel([Arrays], body))
    assert set(summary.covered) == set(range(1))
    assert summary.writes == {((0, "a"), Space.PRIMAL)}
    assert summary.reads == {((0, "b"), Space.PRIMAL)}


def test_an_array_that_was_chosen_could_be_any() -> None:
    def body(b: Builder, p: Params) -> None:
        i = tid(b)
        choice = call(b, "lt", i, integer(b, 2))
        (a,) = b.if_(choice, region(b, [], lambda b, _: [p[0]]), region(b, [], lambda b, _: [p[1]]))
        b.store(a, one(b), [i])

    assert covered([FLOATS, FLOATS], body) == set()


# -- hazards ---------------------------------------------------------------------------------------------


def hazards(types: Sequence[Any], body: Write, threads: int = 1, may_alias: bool = False) -> list[bool]:
    """Tell for each load of the kernel whether it has a hazard in a launch of one dimension."""
    function = inline(kernel(types, body))
    rewrite_induction(function.body)
    mark_hazards(function, may_alias=may_alias, dimensions=frozenset({0} if threads > 1 else ()))
    loads = [op for op in function.walk() if isinstance(op, Load)]
    return [bool(op.hazard) for op in loads]


def load_then_store(read: Any, write: Any, store_first: bool = False) -> Write:
    def body(b: Builder, p: Params) -> None:
        i = tid(b)
        at = [b_value(b, i) for b_value in (read, write)]
        if store_first:
            b.store(p[0], one(b), [at[1]])
            b.load(p[0], [at[0]])
        else:
            b.load(p[0], [at[0]])
            b.store(p[0], one(b), [at[1]])

    return body


def same(b: Builder, i: Value) -> Value:
    return i


def shifted(offset: int) -> Any:
    return lambda b, i: plus(b, i, offset)


def fixed(index: int) -> Any:
    return lambda b, i: integer(b, index)


@pytest.mark.parametrize(
    ("read", "write", "store_first", "one_thread", "several"),
    [
        (same, same, False, True, True),
        (same, same, True, False, False),
        (same, shifted(1), False, False, True),
        (shifted(1), same, True, False, True),
        (fixed(0), fixed(1), False, False, False),
        (fixed(0), fixed(0), True, False, True),
        (fixed(0), same, False, True, True),
    ],
)
def test_straight_line(read: Any, write: Any, store_first: bool, one_thread: bool, several: bool) -> None:
    body = load_then_store(read, write, store_first)
    assert hazards([FLOATS], body, 1) == [one_thread]
    assert hazards([FLOATS], body, 2) == [several]


def loop_access(read: Any, write: Any, per_thread: bool = False) -> Write:
    """Load, then store, in a loop; in a row of the thread's own or in one that all threads share."""

    def body(b: Builder, p: Params) -> None:
        i = tid(b)

        def step(b: Builder, a: Params) -> list[Value]:
            head = [i] if per_thread else [integer(b, 0)]
            b.load(p[0], [*head, read(b, a[0])])
            b.store(p[0], one(b), [*head, write(b, a[0])])
            return []

        b.loop(integer(b, 5), [], None, region(b, [int32], step))

    return body


def reversed_(offset: int = 0) -> Any:
    return lambda b, k: plus(b, call(b, "neg", k), offset)


def doubled(offset: int) -> Any:
    return lambda b, k: plus(b, call(b, "mul", k, integer(b, 2)), offset)


@pytest.mark.parametrize(
    ("read", "write", "expected"),
    [
        (same, shifted(1), False),  # p[k + 1] = f(p[k])
        (shifted(-1), same, False),
        (same, shifted(-1), True),  # the next iteration writes p[k]
        (shifted(1), same, True),
        (same, same, True),
        (reversed_(0), reversed_(1), True),
        (reversed_(0), reversed_(-1), False),
        (doubled(0), doubled(1), False),
        (doubled(0), doubled(2), False),
        (doubled(2), doubled(0), True),
        (doubled(0), doubled(-3), False),
        (fixed(0), fixed(1), False),
        (same, fixed(7), True),
        (fixed(3), same, True),
        (doubled(0), same, True),
    ],
)
def test_loops(read: Any, write: Any, expected: bool) -> None:
    assert hazards([ROWS], loop_access(read, write)) == [expected]
    assert hazards([ROWS], loop_access(read, write, per_thread=True), 2) == [expected]


@pytest.mark.parametrize(
    ("read", "write", "expected"), [(same, shifted(1), True), (fixed(0), fixed(1), False), (fixed(0), same, True)]
)
def test_loops_of_several_threads_over_one_row(read: Any, write: Any, expected: bool) -> None:
    assert hazards([ROWS], loop_access(read, write), 2) == [expected]


def while_loop(start: int, step: int, read: int, write: int) -> Write:
    """A counter that is carried by a loop with a condition only."""

    def body(b: Builder, p: Params) -> None:
        def turn(b: Builder, a: Params) -> list[Value]:
            b.load(p[0], [plus(b, a[1], read)])
            b.store(p[0], one(b), [plus(b, a[1], write)])
            return [plus(b, a[1], step)]

        test = region(b, [int32], lambda b, a: [call(b, "lt", a[0], integer(b, 9))])
        b.loop(None, [integer(b, start)], test, region(b, [int64, int32], turn))

    return body


@pytest.mark.parametrize(
    ("step", "read", "write", "expected"),
    [(1, 0, 1, False), (1, 1, 0, True), (2, 0, 1, False), (2, 1, -1, True), (-1, 0, 1, True), (-1, 1, 0, False)],
)
def test_while_loops(step: int, read: int, write: int, expected: bool) -> None:
    assert hazards([FLOATS], while_loop(1, step, read, write)) == [expected]


def nested(read: Any, write: Any) -> Write:
    def body(b: Builder, p: Params) -> None:
        def outer(b: Builder, a: Params) -> list[Value]:
            def inner(b: Builder, c: Params) -> list[Value]:
                b.load(p[0], read(b, a[0], c[0]))
                b.store(p[0], one(b), write(b, a[0], c[0]))
                return []

            b.loop(integer(b, 3), [], None, region(b, [int32], inner))
            return []

        b.loop(integer(b, 3), [], None, region(b, [int32], outer))

    return body


@pytest.mark.parametrize(
    ("read", "write", "expected"),
    [
        (lambda b, i, j: [i, j], lambda b, i, j: [plus(b, i, 1), j], False),
        (lambda b, i, j: [i, j], lambda b, i, j: [plus(b, i, -1), j], True),
        (lambda b, i, j: [i, j], lambda b, i, j: [i, plus(b, j, 1)], False),
        (lambda b, i, j: [i, j], lambda b, i, j: [i, j], True),
        # The next round of the outer loop writes what an earlier one read.
        (lambda b, i, j: [integer(b, 0), j], lambda b, i, j: [integer(b, 0), plus(b, j, 1)], True),
        (lambda b, i, j: [integer(b, 0), j], lambda b, i, j: [integer(b, 1), j], False),
    ],
)
def test_nested_loops(read: Any, write: Any, expected: bool) -> None:
    assert hazards([ROWS], nested(read, write)) == [expected]


def test_a_later_loop_overwrites_what_an_earlier_one_read() -> None:
    def body(b: Builder, p: Params) -> None:
        b.loop(integer(b, 3), [], None, region(b, [int32], lambda b, a: [b.load(p[0], [a[0]])][:0]))
        b.loop(integer(b, 3), [], None, region(b, [int32], lambda b, a: b.store(p[0], one(b), [a[0]]) or []))
        b.loop(integer(b, 3), [], None, region(b, [int32], lambda b, a: [b.load(p[0], [a[0]])][:0]))

    assert hazards([FLOATS], body) == [True, False]


@pytest.mark.parametrize(
    ("type", "read", "write", "expected"),
    [
        (Particle, ("x",), ("mass",), False),
        (Particle, ("x", 0), ("x", 1), False),
        (Particle, ("x", 0), ("x",), True),
        (Particle, (), ("mass",), True),
        (Particle, ("mass",), ("mass",), True),
        (transformation(float64), ("p",), ("q",), False),
        (transformation(float64), ("p",), (0,), True),
        (transformation(float64), (3,), ("q",), True),
        (transformation(float64), ("q", 0), (3,), True),
    ],
)
def test_paths(type: Any, read: Any, write: Any, expected: bool) -> None:
    def body(b: Builder, p: Params) -> None:
        i = tid(b)
        value = b.load(p[0], [i], read)
        b.store(p[0], b.zero(value.type if read == write else _part(type, write)), [i], write)

    assert hazards([ArrayType(type, 1)], body) == [expected]


def _part(type: Any, path: Any) -> Any:
    b = Builder()
    return b.extract(b.zero(type), path).type


@pytest.mark.parametrize(("component", "expected"), [(0, True), (1, True)])
def test_a_dynamic_component_may_be_any(component: int, expected: bool) -> None:
    def body(b: Builder, p: Params) -> None:
        i = tid(b)
        b.load(p[0], [i], (component,))
        b.store(p[0], one(b), [i], (None,), [i])

    assert hazards([ArrayType(VEC, 1)], body) == [expected]


def test_rows_name_the_elements_of_their_array() -> None:
    def body(b: Builder, p: Params) -> None:
        first, second = b.view(p[0], [integer(b, 0)]), b.view(p[0], [integer(b, 1)])
        b.load(first, [integer(b, 2)])
        b.load(second, [integer(b, 2)])
        b.store(p[0], one(b), [integer(b, 1), integer(b, 2)])

    assert hazards([ROWS], body) == [False, True]


def test_arrays_of_different_parameters_alias_only_if_the_launch_says_so() -> None:
    def body(b: Builder, p: Params) -> None:
        b.load(p[0], [tid(b)])
        b.store(p[1], one(b), [tid(b)])

    assert hazards([FLOATS, FLOATS], body) == [False]
    assert hazards([FLOATS, FLOATS], body, may_alias=True) == [True]


def test_the_gradient_is_another_memory() -> None:
    def body(b: Builder, p: Params) -> None:
        b.load(p[0], [tid(b)])
        b.store(p[0], one(b), [tid(b)], space=Space.GRADIENT)

    assert hazards([FLOATS], body) == [False]


def test_native_code_may_write_any_element() -> None:
    def body(b: Builder, p: Params) -> None:
        b.load(p[0], [tid(b)])
        b.native(("x",), [p[0]], None, "x[0] = 1;")

    assert hazards([FLOATS], body) == [True]


def gradient_that_reads(b: Builder, p: Params) -> list[Value]:
    zero = integer(b, 0)
    b.atomic("add", p[0], p[1], [zero], space=Space.GRADIENT)
    return [b.load(p[0], [zero])]


@pytest.mark.parametrize("store_first", [False, True])
def test_what_a_custom_gradient_reads_counts_from_the_call_on(store_first: bool) -> None:
    gradient = build([FLOATS, float64], gradient_that_reads)
    callee = build([FLOATS, float64], lambda b, p: [p[1]])
    callee = replace(callee, custom_gradient=gradient, gradient_params=(1,))

    def body(b: Builder, p: Params) -> None:
        if store_first:
            b.store(p[0], one(b), [integer(b, 0)])
        b.invoke(callee, [p[0], one(b)])
        if not store_first:
            b.store(p[0], one(b), [integer(b, 0)])

    analysis = AccessAnalysis(inline(kernel([FLOATS], body)), dimensions=frozenset())
    (load,) = (access for access in analysis.accesses if isinstance(access.op, Load))
    assert bool(analysis.hazard(load)) is not store_first


def test_the_text_names_both_lines() -> None:
    def body(b: Builder, p: Params) -> None:
        with b.at(Location("example.py", 11)):
            b.load(p[0], [tid(b)])
        with b.at(Location("example.py", 12)):
            b.atomic("add", p[0], one(b), [tid(b)])

    analysis = AccessAnalysis(kernel([FLOATS], body))
    assert analysis.hazard(analysis.accesses[0]) == "an atomic in line 12 may overwrite what line 11 reads"


def test_other_writes_of_an_extremum() -> None:
    def analysed(kinds: Sequence[str]) -> tuple[AccessAnalysis, Function]:
        def body(b: Builder, p: Params) -> None:
            for kind in kinds:
                b.atomic(kind, p[0], one(b), [tid(b)])

        function = kernel([FLOATS], body)
        return AccessAnalysis(function), function

    for kinds, expected in ((("min", "min"), False), (("min", "max"), True), (("max", "add"), True)):
        analysis, _ = analysed(kinds)
        first: Any = next(access.op for access in analysis.accesses)
        assert analysis.needs_order(first) is expected


def test_the_result_of_another_extremum_shows_what_was_there_in_between() -> None:
    def body(b: Builder, p: Params) -> None:
        b.atomic("min", p[0], one(b), [tid(b)])
        found = b.atomic("min", p[0], one(b), [tid(b)])
        b.store(p[1], found, [tid(b)])

    analysis = AccessAnalysis(kernel([FLOATS, FLOATS], body))
    first, second = (access.op for access in analysis.accesses if isinstance(access.op, Atomic))
    assert analysis.needs_order(first)
    assert not analysis.needs_order(second)
