"""Arithmetic operators on scalars."""

from __future__ import annotations

import math

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import f
from warp._src.builtins.patterns import F, I, S
from warp._src.builtins.reference import Number, constant, is_integer, wrapped
from warp._src.builtins.rules import INTEGER, PIECEWISE_CONSTANT, first_if

GROUP = "Operators"


def divide(a: Number, b: Number) -> Number:
    """Divide; integers toward zero, and by zero to zero."""
    if not is_integer(a):
        return a / b
    return wrapped(_quotient(int(a), int(b)), a)


def floor_divide(a: Number, b: Number) -> Number:
    """Divide and round down; integers by zero give zero."""
    if not is_integer(a):
        return np.floor(a / b)
    return wrapped(int(a) // int(b) if b else 0, a)


def modulo(a: Number, b: Number) -> Number:
    """Give the remainder with the sign of the dividend; integers modulo zero give zero."""
    if not is_integer(a):
        return np.fmod(a, b)
    return wrapped(int(a) - int(b) * _quotient(int(a), int(b)) if b else 0, a)


def power(x: Number, y: Number) -> Number:
    """Raise to a power; integer results wrap around, a negative exponent divides 1 by the power."""
    if not is_integer(x):
        return x**y
    base, exponent = int(x), int(y)
    if exponent >= 0:
        return wrapped(pow(base, exponent, 1 << 64), x)
    return wrapped(_quotient(1, base ** (-exponent % 2 + 2)) if abs(base) <= 1 else 0, x)


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@builtin(
    cpp="{S}({a} + {b})",
    adjoint={"a": lambda adj: adj, "b": lambda adj: adj},
    reference=lambda a, b: a + b,
    group=GROUP,
)
def add(a: S, b: S) -> S:
    """Add; integers wrap around.

    Example: `wp.add(0.5, 0.25)` is 0.75.
    """


@builtin(
    cpp="{S}({a} - {b})",
    adjoint={"a": lambda adj: adj, "b": lambda adj: -adj},
    reference=lambda a, b: a - b,
    group=GROUP,
)
def sub(a: S, b: S) -> S:
    """Subtract; integers wrap around.

    Example: `wp.sub(0.5, 0.25)` is 0.25.
    """


@builtin(
    cpp="{S}({a} * {b})",
    adjoint={"a": lambda b, adj: adj * b, "b": lambda a, adj: adj * a},
    reference=lambda a, b: a * b,
    group=GROUP,
)
def mul(a: S, b: S) -> S:
    """Multiply; integers wrap around.

    Example: `wp.mul(0.5, 0.25)` is 0.125.
    """


@builtin(
    cpp="wp::div({a}, {b})",
    adjoint={"a": lambda b, adj: adj / b, "b": lambda b, ret, adj: -((adj * ret) / b)},
    reference=divide,
    group=GROUP,
    sampling=Sampling(ranges={"b": (0.5, 2.0)}),
)
def div(a: S, b: S) -> S:
    """Divide; integers toward zero, and an integer divided by zero gives 0.

    Example: `wp.div(7.5, 2.0)` is 3.75.
    """


@builtin(
    cpp="wp::floordiv({a}, {b})",
    adjoint=PIECEWISE_CONSTANT,
    reference=floor_divide,
    group=GROUP,
    sampling=Sampling(condition=lambda a, b: abs(a / b - round(a / b)) > 0.01),
)
def floordiv(a: S, b: S) -> S:
    """Divide and round down; an integer divided by zero gives 0.

    Example: `wp.floordiv(7.5, 2.0)` is 3.
    """


@builtin(
    cpp="wp::mod({a}, {b})",
    adjoint={"a": lambda adj: adj, "b": lambda a, b, adj: -(adj * f.trunc(a / b))},
    reference=modulo,
    group=GROUP,
    sampling=Sampling(condition=lambda a, b: abs(b) > 0.1 and abs(a / b - round(a / b)) > 0.01),
)
def mod(a: S, b: S) -> S:
    """Remainder of the division toward zero; it has the sign of `a`. An integer modulo 0 gives 0.

    Example: `wp.mod(7.5, 2.0)` is 1.5.
    """


@builtin(
    "pow",
    cpp="wp::pow({x}, {y})",
    adjoint={
        "x": lambda x, y, adj: first_if(f.ne(y, 0.0), adj * (y * f.pow(x, y - 1.0))),
        "y": lambda x, y, ret, adj: f.where(f.logical_and(x.equals(0.0), y > 0.0), adj.zero(), adj * (ret * f.log(x))),
    },
    reference=power,
    group="Scalar math",
    sampling=Sampling(ranges={"x": (0.2, 2.0)}),
)
def pow_float(x: F, y: F) -> F:
    """Raise `x` to the power `y`.

    Example: `wp.pow(2.0, 3.0)` is 8.
    """


@builtin(
    "pow",
    cpp="wp::pow({x}, {y})",
    adjoint=INTEGER,
    reference=power,
    group="Scalar math",
)
def pow_int(x: I, y: I) -> I:
    """Raise an integer to an integer power; the result wraps around, a negative power is 1 / x**-y.

    Example: `wp.pow(6, 3)` is 216.
    """


@builtin(
    cpp="{S}(-{x})",
    adjoint={"x": lambda adj: -adj},
    reference=lambda x: -x,
    group=GROUP,
)
def neg(x: S) -> S:
    """Negate; integers wrap around.

    Example: `wp.neg(0.5)` is -0.5.
    """


@builtin(
    cpp="{x}",
    adjoint={"x": lambda adj: adj},
    reference=lambda x: x,
    group=GROUP,
)
def pos(x: S) -> S:
    """Give the number itself.

    Example: `wp.pos(0.5)` is 0.5.
    """


@builtin(
    cpp="wp::radians({x})",
    adjoint={"x": lambda adj: adj * (math.pi / 180.0)},
    reference=lambda x: x * constant(math.pi / 180.0, x),
    group="Scalar math",
)
def radians(x: F) -> F:
    """Convert degrees to radians.

    Example: `wp.radians(180.0)` is 3.14159.
    """


@builtin(
    cpp="wp::degrees({x})",
    adjoint={"x": lambda adj: adj * (180.0 / math.pi)},
    reference=lambda x: x * constant(180.0 / math.pi, x),
    group="Scalar math",
)
def degrees(x: F) -> F:
    """Convert radians to degrees.

    Example: `wp.degrees(1.0)` is 57.2958.
    """


__all__ = ["GROUP", "divide", "floor_divide", "modulo", "power"]
