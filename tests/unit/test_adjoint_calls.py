"""The adjoint of calls: native code, custom gradients and custom replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tests.unit.gradient_checks import adjoint_of_kernel, check, gradients_by_adjoint, problems
from tests.unit.ir_programs import build, call, kernel, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.ops import Native, Space
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import float64, int32

FLOATS = ArrayType(float64, 1)
INTS = ArrayType(int32, 1)
Params = tuple[Value, ...]
Write = Callable[[Builder, Params], Any]


def number(b: Builder, value: float) -> Value:
    return b.const(float64, value)


def integer(b: Builder, value: int) -> Value:
    return b.const(int32, value)


def squared(b: Builder, x: Value) -> Value:
    return call(b, "mul", x, x)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.2, 1.0, shape)


def test_a_native_function_with_an_adjoint_gets_operands_and_adjoints() -> None:
    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        (y,) = b.native(("x",), [b.load(p[0], [i])], float64, "return x * x;", "adj_x += 2 * x * adj_ret;")
        b.store(p[1], call(b, "sin", y), [i])

    natives = [op for op in adjoint_of_kernel(kernel([FLOATS] * 2, body), 2).function.walk() if isinstance(op, Native)]
    replayed, reversed_ = natives
    assert replayed.snippet == "return x * x;"
    assert reversed_.snippet == "adj_x += 2 * x * adj_ret;"
    assert (reversed_.names, reversed_.result_names) == (("x", "adj_ret"), ("adj_x",))


def custom(types: Sequence[Any], body: Any, gradient: Any, params: tuple[int, ...]) -> Function:
    """A function with a gradient of its own, which takes the parameters and one adjoint per result."""
    function = build(types, body)
    return replace(function, custom_gradient=build([*types, *function.result_types], gradient), gradient_params=params)


def test_a_custom_gradient_is_used() -> None:
    """Five times the true derivative, to tell it from the generated one."""
    ten = custom(
        [float64],
        lambda b, p: [squared(b, p[0])],
        lambda b, p: [call(b, "mul", call(b, "mul", number(b, 10.0), p[0]), p[1])],
        (0,),
    )

    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        step = region(b, [int32, float64], lambda b, a: b.invoke(ten, [a[1]]))
        b.store(p[1], b.loop(integer(b, 2), [b.load(p[0], [i])], None, step)[0], [i])

    x = random(2)
    found = gradients_by_adjoint(kernel([FLOATS] * 2, body), 2, [x, np.zeros(2)], [np.zeros(2), np.ones(2)])
    np.testing.assert_allclose(found[0], 25 * 4 * x**3, rtol=1e-14)


def test_a_custom_gradient_of_a_function_that_takes_only_an_array() -> None:
    def gradient(b: Builder, p: Params) -> list[Value]:
        b.atomic("add", p[0], call(b, "mul", number(b, 2.0), p[2]), [p[1]], space=Space.GRADIENT)
        return []

    twice = custom([FLOATS, int32], lambda b, p: [call(b, "mul", number(b, 2.0), b.load(p[0], [p[1]]))], gradient, ())

    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.store(p[1], call(b, "sin", b.invoke(twice, [p[0], i])[0]), [i])

    check(kernel([FLOATS] * 2, body), 3, [random(3), np.zeros(3)])


def test_a_custom_gradient_of_a_function_without_result() -> None:
    def put(b: Builder, p: Params) -> list[Value]:
        b.store(p[0], squared(b, p[2]), [p[1]])
        return []

    def gradient(b: Builder, p: Params) -> list[Value]:
        adjoint = b.load(p[0], [p[1]], space=Space.GRADIENT)
        b.store(p[0], number(b, 0.0), [p[1]], space=Space.GRADIENT)
        return [call(b, "mul", call(b, "add", p[2], p[2]), adjoint)]

    function = custom([FLOATS, int32, float64], put, gradient, (2,))

    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        b.invoke(function, [p[1], i, b.load(p[0], [i])])

    check(kernel([FLOATS] * 2, body), 3, [random(3), np.zeros(3)])


def replayed(body: Any, replay: Any) -> Function:
    types = [FLOATS, INTS, float64]
    return replace(build(types, body), custom_replay=build(types, replay))


def test_a_custom_replay_gives_what_an_atomic_returned() -> None:
    def forward(b: Builder, p: Params) -> list[Value]:
        (i,) = b.thread_index(1)
        at = b.atomic("add", p[1], integer(b, 1), [integer(b, 0)])
        b.store(p[1], at, [call(b, "add", i, integer(b, 1))])
        return [at]

    def replay(b: Builder, p: Params) -> list[Value]:
        (i,) = b.thread_index(1)
        return [b.load(p[1], [call(b, "add", i, integer(b, 1))])]

    function = replayed(forward, replay)

    def body(b: Builder, p: Params) -> None:
        (i,) = b.thread_index(1)
        (at,) = b.invoke(function, [p[0], p[1], number(b, 0.0)])
        b.store(p[0], squared(b, b.load(p[2], [i])), [call(b, "sub", integer(b, 2), at)])

    check(kernel([FLOATS, INTS, FLOATS], body), 3, [np.zeros(3), np.zeros(4, np.int32), random(3)])


def test_a_custom_replay_of_what_carries_a_gradient_is_refused() -> None:
    def put(b: Builder, p: Params) -> list[Value]:
        b.store(p[0], squared(b, p[2]), [integer(b, 0)])
        return []

    def body_with(function: Function) -> Write:
        def body(b: Builder, p: Params) -> None:
            results = b.invoke(function, [p[0], p[1], b.load(p[2], [integer(b, 0)])])
            for result in results:
                b.store(p[0], result, [integer(b, 0)])

        return body

    for function in (
        replayed(put, lambda b, p: []),
        replayed(lambda b, p: [squared(b, p[2])], lambda b, p: [p[2]]),
        replayed(lambda b, p: [b.load(p[0], [integer(b, 1)])], lambda b, p: [p[2]]),
    ):
        (text,) = problems(kernel([FLOATS, INTS, FLOATS], body_with(function)))
        assert "custom replay but no custom gradient" in text
