"""Comparisons, and operators on bools and bits; those without a name of their own in Python are internal."""

from __future__ import annotations

import operator

import numpy as np

from warp._src.builtins.declare import builtin
from warp._src.builtins.patterns import A, B, I, S, T, Ten, X
from warp._src.builtins.reference import Number, wrapped
from warp._src.builtins.rules import BOOLEAN, INTEGER
from warp._src.types.scalars import bool_

GROUP = "Operators"


def shift_left(a: Number, b: Number) -> Number:
    """Shift left; a count outside the width gives 0."""
    return wrapped(int(a) << int(b) if 0 <= int(b) < 8 * a.dtype.itemsize else 0, a)


def shift_right(a: Number, b: Number) -> Number:
    """Shift right and fill with the sign; a count outside the width leaves the fill."""
    width = 8 * a.dtype.itemsize
    return wrapped(int(a) >> (int(b) if 0 <= int(b) < width else width), a)


@builtin(cpp="({a} == {b})", adjoint=BOOLEAN, reference=operator.eq, group=GROUP, internal=True)
def eq(a: A, b: A) -> bool_:
    """Tell whether two scalars are equal; nan equals nothing."""


@builtin(
    "eq",
    cpp="wp::tensor_eq({a}, {b})",
    adjoint=BOOLEAN,
    reference=lambda a, b: (a == b).all(),
    group=GROUP,
    internal=True,
)
def eq_tensors(a: Ten[X, T], b: Ten[X, T]) -> bool_:
    """Tell whether all components are equal."""


@builtin(cpp="({a} != {b})", adjoint=BOOLEAN, reference=operator.ne, group=GROUP, internal=True)
def ne(a: A, b: A) -> bool_:
    """Tell whether two scalars differ; nan differs from everything."""


@builtin(
    "ne",
    cpp="!wp::tensor_eq({a}, {b})",
    adjoint=BOOLEAN,
    reference=lambda a, b: (a != b).any(),
    group=GROUP,
    internal=True,
)
def ne_tensors(a: Ten[X, T], b: Ten[X, T]) -> bool_:
    """Tell whether any component differs."""


@builtin(cpp="({a} < {b})", adjoint=BOOLEAN, reference=operator.lt, group=GROUP, internal=True)
def lt(a: S, b: S) -> bool_:
    """Tell whether `a` is less than `b`; false if either is nan."""


@builtin(cpp="({a} <= {b})", adjoint=BOOLEAN, reference=operator.le, group=GROUP, internal=True)
def le(a: S, b: S) -> bool_:
    """Tell whether `a` is at most `b`; false if either is nan."""


@builtin(cpp="({a} > {b})", adjoint=BOOLEAN, reference=operator.gt, group=GROUP, internal=True)
def gt(a: S, b: S) -> bool_:
    """Tell whether `a` is greater than `b`; false if either is nan."""


@builtin(cpp="({a} >= {b})", adjoint=BOOLEAN, reference=operator.ge, group=GROUP, internal=True)
def ge(a: S, b: S) -> bool_:
    """Tell whether `a` is at least `b`; false if either is nan."""


@builtin(cpp="({a} && {b})", adjoint=BOOLEAN, reference=lambda a, b: np.bool_(a and b), group=GROUP, internal=True)
def logical_and(a: bool_, b: bool_) -> bool_:
    """Tell whether both are true."""


@builtin(cpp="({a} || {b})", adjoint=BOOLEAN, reference=lambda a, b: np.bool_(a or b), group=GROUP, internal=True)
def logical_or(a: bool_, b: bool_) -> bool_:
    """Tell whether at least one is true."""


@builtin(cpp="!{a}", adjoint=BOOLEAN, reference=lambda a: np.bool_(not a), group=GROUP, internal=True)
def logical_not(a: B) -> bool_:
    """Tell whether a bool is false, or an integer 0."""


@builtin(cpp="{B}({a} & {b})", adjoint=INTEGER, reference=operator.and_, group=GROUP)
def bit_and(a: B, b: B) -> B:
    """And, bit by bit.

    Example: `wp.bit_and(True, False)` is False.
    """


@builtin(cpp="{B}({a} | {b})", adjoint=INTEGER, reference=operator.or_, group=GROUP)
def bit_or(a: B, b: B) -> B:
    """Or, bit by bit.

    Example: `wp.bit_or(True, False)` is True.
    """


@builtin(cpp="{B}({a} ^ {b})", adjoint=INTEGER, reference=operator.xor, group=GROUP)
def bit_xor(a: B, b: B) -> B:
    """Exclusive or, bit by bit.

    Example: `wp.bit_xor(True, False)` is True.
    """


@builtin(cpp="{I}(~{a})", adjoint=INTEGER, reference=operator.invert, group=GROUP)
def invert(a: I) -> I:
    """Flip all bits.

    Example: `wp.invert(6)` is -7.
    """


@builtin(cpp="wp::shl({a}, {b})", adjoint=INTEGER, reference=shift_left, group=GROUP, internal=True)
def shl(a: I, b: I) -> I:
    """Shift left by `b` bits; 0 if `b` is negative or not less than the width."""


@builtin(cpp="wp::shr({a}, {b})", adjoint=INTEGER, reference=shift_right, group=GROUP, internal=True)
def shr(a: I, b: I) -> I:
    """Shift right by `b` bits and fill with the sign; the sign alone if `b` is negative or not less than the width."""


__all__ = ["GROUP", "shift_left", "shift_right"]
