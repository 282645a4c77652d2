"""Counters as closed forms: the loop does the same, and its body no longer refers to the counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.ir_programs import build, call, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.interp import run_function
from warp._src.ir.ops import Loop
from warp._src.ir.traverse import clone_function
from warp._src.ir.verify import verify
from warp._src.passes.induction import rewrite_induction
from warp._src.types.scalars import float64, int32, int64, uint8

Step = Callable[[Builder, Value, Value], Value]


def counting(step: Step, type: Any = int32, has_trip: bool = True) -> Function:
    """Sum the squares of a counter over p0 iterations from p1, step p2; gives counter and sum."""

    def loop_body(p: tuple[Value, ...]) -> Any:
        def body(b: Builder, a: tuple[Value, ...]) -> list[Value]:
            return [step(b, a[1], p[2]), call(b, "add", a[2], call(b, "mul", a[1], a[1]))]

        return body

    def function(b: Builder, p: tuple[Value, ...]) -> Any:
        index = int32 if has_trip else int64
        body = region(b, [index, type, type], loop_body(p))
        test = None if has_trip else region(b, [type, type], lambda b, a: [call(b, "lt", a[0], b.const(type, 40))])
        return b.loop(p[0] if has_trip else None, [p[1], b.const(type, 0)], test, body)[:2]

    return build([int32, type, type], function)


def rewritten(function: Function) -> Function:
    copy = clone_function(function)
    rewrite_induction(copy.body)
    verify(copy)
    return copy


def uses_counter(function: Function) -> bool:
    """Tell whether the body uses its counter for more than its next value."""
    (loop,) = (op for op in function.body.ops if isinstance(op, Loop))
    users = [op for op in loop.body.ops if loop.body.args[1] in op.operands]
    return len(users) > 1


STEPS: dict[str, Step] = {
    "constant": lambda b, i, s: call(b, "add", i, b.const(i.type, 3)),
    "constant first": lambda b, i, s: call(b, "add", b.const(i.type, 3), i),
    "down": lambda b, i, s: call(b, "sub", i, b.const(i.type, 2)),
    "outer value": lambda b, i, s: call(b, "add", i, s),
}


@pytest.mark.parametrize("type", [int32, uint8])
@pytest.mark.parametrize("name", STEPS)
def test_closed_forms(name: str, type: Any) -> None:
    before = counting(STEPS[name], type)
    after = rewritten(before)
    assert uses_counter(before)
    assert not uses_counter(after)
    for trips in (0, 1, 7, 100):
        assert run_function(after, [trips, 5, 2]) == run_function(before, [trips, 5, 2])


def test_while_loops_count_in_int64() -> None:
    before = counting(STEPS["constant"], has_trip=False)
    after = rewritten(before)
    assert not uses_counter(after)
    assert run_function(after, [0, 5, 2]) == run_function(before, [0, 5, 2])


@pytest.mark.parametrize(
    "step",
    [
        lambda b, i, s: call(b, "mul", i, s),
        lambda b, i, s: call(b, "sub", s, i),
        lambda b, i, s: call(b, "add", i, i),
        lambda b, i, s: call(b, "add", i, call(b, "mul", s, s)),
    ],
)
def test_what_is_no_counter_stays(step: Step) -> None:
    before = counting(step)
    after = rewritten(before)
    assert uses_counter(after)
    assert run_function(after, [6, 1, 2]) == run_function(before, [6, 1, 2])


def test_a_counter_that_only_one_branch_moves_stays() -> None:
    def step(b: Builder, i: Value, s: Value) -> Value:
        then = region(b, [], lambda b, a: [call(b, "add", i, s)])
        return b.if_(call(b, "lt", i, b.const(int32, 9)), then, region(b, [], lambda b, a: [i]))[0]

    before = counting(step)
    after = rewritten(before)
    assert run_function(after, [20, 1, 2]) == run_function(before, [20, 1, 2])


def test_counters_of_nested_loops() -> None:
    """An inner counter that starts at the outer one; both are used after the loops."""

    def function(b: Builder, p: tuple[Value, ...]) -> Any:
        def outer(b: Builder, a: tuple[Value, ...]) -> list[Value]:
            def inner(b: Builder, c: tuple[Value, ...]) -> list[Value]:
                return [call(b, "add", c[1], b.const(int32, 2)), call(b, "add", c[2], call(b, "mul", c[1], a[1]))]

            end, total, _ = b.loop(p[1], [a[1], a[2]], None, region(b, [int32] * 3, inner))
            return [call(b, "add", a[1], b.const(int32, 5)), call(b, "add", total, end)]

        return b.loop(p[0], [b.const(int32, 1), b.const(int32, 0)], None, region(b, [int32] * 3, outer))[:2]

    before = build([int32, int32], function)
    after = rewritten(before)
    counter, total = 1, 0
    for _ in range(4):
        inner = counter
        for _ in range(3):
            total += inner * counter
            inner += 2
        total += inner
        counter += 5
    assert run_function(after, [4, 3]) == run_function(before, [4, 3]) == (counter, total)


def test_a_float_is_no_counter() -> None:
    step = region(Builder(), [int32, float64], lambda b, a: [call(b, "add", a[1], b.const(float64, 0.1))])
    function = build([int32, float64], lambda b, p: b.loop(p[0], [p[1]], None, step)[:1])
    before = len(list(function.walk()))
    rewrite_induction(function.body)
    assert len(list(function.walk())) == before
