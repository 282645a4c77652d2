"""Inlining of user functions: the meaning stays, calls with a gradient of their own stay too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.ir_programs import build, call, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.interp import run_function
from warp._src.ir.ops import Invoke
from warp._src.ir.verify import verify
from warp._src.passes.inline import inline, inline_all, inline_forward
from warp._src.types.scalars import bool_, float64, int32


def calls(function: Function) -> list[Invoke]:
    return [op for op in function.walk() if isinstance(op, Invoke)]


def squared() -> Function:
    return build([float64], lambda b, p: [call(b, "mul", p[0], p[0])], name="squared")


def fourth(inner: Function) -> Function:
    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        (once,) = b.invoke(inner, [p[0]])
        return b.invoke(inner, [once])

    return build([float64], body, name="fourth")


@pytest.mark.parametrize("passed", [inline, inline_forward, inline_all])
def test_nested_calls_disappear(passed: Any) -> None:
    function = build([float64], lambda b, p: b.invoke(fourth(squared()), [call(b, "add", p[0], p[0])]))
    result = passed(function)
    verify(result)
    assert not calls(result)
    assert calls(function)
    assert run_function(result, [1.5]) == run_function(function, [1.5]) == (81.0,)


def test_results_keep_their_order_and_may_be_parameters() -> None:
    swap = build([float64, float64], lambda b, p: [p[1], p[0]])

    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        for _ in range(3):
            p = b.invoke(swap, p)
        return p

    result = inline(build([float64, float64], body))
    assert not calls(result)
    assert run_function(result, [1.0, 2.0]) == (2.0, 1.0)


def test_calls_inside_branches_and_loops() -> None:
    double = build([float64], lambda b, p: [call(b, "add", p[0], p[0])])

    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        step = region(b, [int32, float64], lambda b, a: b.invoke(double, [a[1]]))
        end, _ = b.loop(p[0], [p[1]], None, step)
        then = region(b, [], lambda b, a: b.invoke(double, [end]))
        return b.if_(p[2], then, region(b, [], lambda b, a: [end]))

    result = inline(build([int32, float64, bool_], body))
    verify(result)
    assert not calls(result)
    assert run_function(result, [3, 1.0, True]) == (16.0,)
    assert run_function(result, [3, 1.0, False]) == (8.0,)


def test_calls_with_a_custom_gradient_stay_each_with_its_own_function() -> None:
    gradient = build([float64, float64], lambda b, p: [call(b, "mul", p[0], p[1])])
    custom = replace(squared(), custom_gradient=gradient, gradient_params=(0,))
    function = fourth(custom)
    first, second = calls(inline(function))
    assert first.function is not second.function
    assert first.function.custom_gradient is not second.function.custom_gradient
    assert first.function.gradient_params == (0,)
    assert not calls(inline_all(function))
    assert not calls(inline_forward(function))


def test_the_body_of_a_custom_function_has_no_calls() -> None:
    custom = replace(fourth(squared()), custom_replay=fourth(squared()))
    (left,) = calls(inline(build([float64], lambda b, p: b.invoke(custom, [p[0]]))))
    assert not calls(left.function)
    assert left.function.custom_replay is not None
    assert not calls(left.function.custom_replay)


def long_function(additions: int) -> Function:
    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        value = p[0]
        for _ in range(additions):
            value = call(b, "add", value, p[0])
        return [value]

    return build([float64], body, name="long")


@pytest.mark.parametrize(("additions", "left"), [(10, 0), (100, 2)])
def test_large_functions_that_are_called_twice_are_shared(additions: int, left: int) -> None:
    found = calls(inline(fourth(long_function(additions))))
    assert len(found) == left
    assert len({op.function for op in found}) == min(left, 1)
    assert run_function(inline_forward(fourth(long_function(additions))), [1.0]) == ((additions + 1.0) ** 2,)


def test_a_large_function_that_is_called_once_is_inlined() -> None:
    function = build([float64], lambda b, p: b.invoke(long_function(100), [p[0]]))
    assert not calls(inline(function))
