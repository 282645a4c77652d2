"""Arithmetic on Python numbers that follows kernel semantics; the caller rounds or wraps the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FLOAT_OPERATIONS", "INTEGER_OPERATIONS", "round_integer_to_float32"]

_WIDEST = 64


def _add(a: Any, b: Any) -> Any:
    return a + b


def _subtract(a: Any, b: Any) -> Any:
    return a - b


def _multiply(a: Any, b: Any) -> Any:
    return a * b


def _divide_floats(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _modulo_floats(a: float, b: float) -> float:
    if b == 0.0 or math.isinf(a) or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


def _power_floats(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.power(np.float64(a), np.float64(b)))


def _divide_integers(a: int, b: int) -> int:
    """Divide toward zero; division by zero gives zero."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _floor_divide_integers(a: int, b: int) -> int:
    return 0 if b == 0 else a // b


def _modulo_integers(a: int, b: int) -> int:
    """Return the remainder with the sign of the dividend; modulo zero gives zero."""
    return 0 if b == 0 else a - b * _divide_integers(a, b)


def _power_integers(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << _WIDEST)
    return _divide_integers(1, pow(a, -b)) if abs(a) <= 1 else 0


def _shift_left(a: int, b: int) -> int:
    return a << b if 0 <= b < _WIDEST else 0


def _shift_right(a: int, b: int) -> int:
    return a >> b if 0 <= b < _WIDEST else (-1 if a < 0 else 0)


def _bit_and(a: int, b: int) -> int:
    return a & b


def _bit_or(a: int, b: int) -> int:
    return a | b


def _bit_xor(a: int, b: int) -> int:
    return a ^ b


FLOAT_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide_floats,
    "%": _modulo_floats,
    "**": _power_floats,
}

INTEGER_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide_integers,
    "//": _floor_divide_integers,
    "%": _modulo_integers,
    "**": _power_integers,
    "<<": _shift_left,
    ">>": _shift_right,
    "&": _bit_and,
    "|": _bit_or,
    "^": _bit_xor,
}


def round_integer_to_float32(value: int) -> float:
    """Return a double that rounds to the float32 nearest to `value`.

    A wide integer would be rounded twice on its way through a double, so its low bits are folded into a
    sticky bit first.
    """
    excess = value.bit_length() - 40
    if excess <= 0:
        return float(value)
    magnitude = abs(value)
    kept = (magnitude >> excess) | (1 if magnitude & ((1 << excess) - 1) else 0)
    return math.copysign(math.ldexp(float(kept), excess), value)
