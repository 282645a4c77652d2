"""Dead code elimination: what is unused goes, what acts stays, results do not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tests.unit.ir_programs import build, call, kernel, region, reverse_loop

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.interp import run_function, run_kernel
from warp._src.ir.ops import Call, If, Invoke, Load, Loop, Native, ReverseLoop, Space, Store
from warp._src.ir.verify import verify
from warp._src.passes.liveness import Liveness, eliminate_dead
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float64, int32

FLOATS = ArrayType(float64, 1)


def swept(function: Function) -> Function:
    eliminate_dead(function.body)
    verify(function)
    return function


def count(function: Function, kind: type) -> int:
    return sum(isinstance(op, kind) for op in function.walk())


def test_unused_values_and_loads_go() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        b.load(p[1], [b.const(int32, 0)])
        call(b, "mul", p[0], p[0])
        return [p[0]]

    assert [type(op).__name__ for op in swept(build([float64, FLOATS], body)).body.ops] == ["Yield"]


def test_branches_lose_dead_results_and_keep_effects() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        def then(b: Builder, a: tuple[Value, ...]) -> Sequence[Value]:
            b.store(p[2], p[1], [b.const(int32, 0)])
            return [call(b, "add", p[1], p[1]), call(b, "mul", p[1], p[1])]

        first, _ = b.if_(p[0], region(b, [], then), region(b, [], lambda b, a: [p[1], p[1]]))
        return [first]

    function = swept(build([bool_, float64, FLOATS], body))
    (branch,) = (op for op in function.body.ops if isinstance(op, If))
    assert len(branch.results) == 1
    assert count(function, Call) == 1
    assert count(function, Store) == 1


def test_a_loop_without_use_goes_and_one_that_stores_stays() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        dead = region(b, [int32, float64], lambda b, a: [call(b, "add", a[1], a[1])])
        b.loop(p[0], [b.const(float64, 1.0)], None, dead)

        def step(b: Builder, a: tuple[Value, ...]) -> list[Value]:
            b.store(p[1], a[1], [a[0]])
            return [call(b, "mul", a[1], b.const(float64, 2.0)), call(b, "add", a[2], a[2])]

        b.loop(p[0], [b.const(float64, 1.0)] * 2, None, region(b, [int32, float64, float64], step))

    function = swept(kernel([int32, FLOATS], body))
    (loop,) = (op for op in function.body.ops if isinstance(op, Loop))
    assert len(loop.inits) == 1
    memory = np.zeros(3)
    run_kernel(function, 1, [3, memory])
    assert memory.tolist() == [1, 2, 4]


def test_what_ends_a_loop_stays() -> None:
    """Only the count is used: the value that the condition tests has to be carried on."""

    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        test = region(b, [float64, float64], lambda b, a: [call(b, "gt", a[0], b.const(float64, 1.0))])

        def step(b: Builder, a: tuple[Value, ...]) -> list[Value]:
            return [call(b, "mul", a[1], b.const(float64, 0.5)), call(b, "add", a[2], a[1])]

        return [b.loop(p[1], [p[0], p[0]], test, region(b, [int32, float64, float64], step))[2]]

    function = swept(build([float64, int32], body))
    (loop,) = (op for op in function.body.ops if isinstance(op, Loop))
    assert len(loop.inits) == 1
    assert run_function(function, [8.0, 100]) == (3,)


def test_values_that_feed_each_other_round_a_loop_stay() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        step = region(b, [int32, float64, float64, float64], lambda b, a: [a[2], call(b, "add", a[2], p[1]), a[3]])
        return [b.loop(p[0], [p[1], p[1], p[1]], None, step)[0]]

    function = swept(build([int32, float64], body))
    (loop,) = (op for op in function.body.ops if isinstance(op, Loop))
    assert len(loop.inits) == 2
    assert run_function(function, [4, 1.0]) == (4.0,)


def test_reverse_loops_lose_dead_states_and_adjoints() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        advance = region(b, [int32, float64, float64], lambda b, a: [call(b, "mul", a[1], a[1]), a[2]])

        def backward(b: Builder, a: tuple[Value, ...]) -> list[Value]:
            return [call(b, "mul", a[3], a[1]), call(b, "mul", a[4], a[2])]

        reverse = region(b, [int32, float64, float64, float64, float64], backward)
        return [reverse_loop(b, p[0], [p[1], p[1]], [p[1], p[1]], advance, reverse)[0]]

    function = swept(build([int32, float64], body))
    (loop,) = (op for op in function.body.ops if isinstance(op, ReverseLoop))
    assert (loop.states, len(loop.results)) == (1, 1)
    assert run_function(function, [2, 3.0]) == (3.0 * 9.0 * 3.0,)


def custom(body: Any, gradient_body: Any) -> Function:
    function = build([FLOATS, float64], body)
    gradient = build([FLOATS, float64], gradient_body)
    return replace(function, custom_gradient=gradient)


def stores(b: Builder, p: tuple[Value, ...]) -> list[Value]:
    b.store(p[0], p[1], [b.const(int32, 0)])
    return []


def adds_gradient(b: Builder, p: tuple[Value, ...]) -> list[Value]:
    b.atomic("add", p[0], p[1], [b.const(int32, 0)], space=Space.GRADIENT)
    return []


def test_calls_and_native_code_that_act_stay() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.invoke(custom(stores, lambda b, p: []), p)
        b.invoke(custom(lambda b, p: [], adds_gradient), p)
        b.invoke(build([float64], lambda b, p: [p[0]]), p[1:])
        b.native(("x",), p[1:], float64, "return x;")

    function = swept(kernel([FLOATS, float64], body))
    assert (count(function, Invoke), count(function, Native), count(function, Load)) == (2, 1, 0)


def test_liveness_names_outer_values_and_arguments() -> None:
    outer = Value(float64)
    b = Builder()
    inner = region(b, [float64, float64], lambda b, a: [call(b, "add", a[0], outer)])
    live = Liveness(inner)
    assert live.is_live(outer)
    assert live.is_live(inner.args[0])
    assert not live.is_live(inner.args[1])
