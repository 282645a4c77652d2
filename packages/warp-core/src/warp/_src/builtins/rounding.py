"""Rounding, signs and classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import f
from warp._src.builtins.patterns import F, I, S
from warp._src.builtins.reference import constant
from warp._src.builtins.rules import BOOLEAN, PIECEWISE_CONSTANT
from warp._src.types.scalars import bool_

GROUP = "Scalar math"

_AWAY_FROM_INTEGERS = Sampling(condition=lambda x: abs(x - round(x)) > 0.01)
_AWAY_FROM_HALVES = Sampling(condition=lambda x: abs(2 * x - round(2 * x)) > 0.01)
_AWAY_FROM_ZERO = Sampling(condition=lambda x: abs(x) > 0.05)


def round_away(x: Any) -> Any:
    """Round to the nearest integer, ties away from zero."""
    whole = np.trunc(x)
    return whole + np.sign(x) if abs(x - whole) >= 0.5 else whole


def sign_of(x: Any) -> Any:
    return constant(-1, x) if x < 0 else constant(1, x)


@builtin(
    cpp="wp::floor({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=np.floor,
    group=GROUP,
    sampling=_AWAY_FROM_INTEGERS,
)
def floor(x: F) -> F:
    """Round down to an integer.

    Example: `wp.floor(2.5)` is 2.
    """


@builtin(
    cpp="wp::ceil({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=np.ceil,
    group=GROUP,
    sampling=_AWAY_FROM_INTEGERS,
)
def ceil(x: F) -> F:
    """Round up to an integer.

    Example: `wp.ceil(2.5)` is 3.
    """


@builtin(
    cpp="wp::trunc({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=np.trunc,
    group=GROUP,
    sampling=_AWAY_FROM_INTEGERS,
)
def trunc(x: F) -> F:
    """Round toward zero to an integer.

    Example: `wp.trunc(-2.5)` is -2.
    """


@builtin(
    cpp="wp::rint({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=np.rint,
    group=GROUP,
    sampling=_AWAY_FROM_HALVES,
)
def rint(x: F) -> F:
    """Round to the nearest integer, ties to the even one.

    Example: `wp.rint(2.5)` is 2.
    """


@builtin(
    "round",
    cpp="wp::round({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=round_away,
    group=GROUP,
    sampling=_AWAY_FROM_HALVES,
)
def round_(x: F) -> F:
    """Round to the nearest integer, ties away from zero.

    Example: `wp.round(2.5)` is 3.
    """


@builtin(
    cpp="wp::frac({x})",
    adjoint={"x": lambda adj: adj},
    reference=lambda x: x - np.trunc(x),
    group=GROUP,
    sampling=_AWAY_FROM_INTEGERS,
)
def frac(x: F) -> F:
    """Give what truncation leaves, x - trunc(x); it has the sign of `x`.

    Example: `wp.frac(-2.75)` is -0.75.
    """


@builtin(
    "abs",
    cpp="wp::abs({x})",
    adjoint={"x": lambda x, adj: adj * f.sign(x)},
    reference=abs,
    group=GROUP,
    sampling=_AWAY_FROM_ZERO,
)
def abs_(x: S) -> S:
    """Absolute value; the lowest integer stays as it is. The derivative at 0 is taken as 1.

    Example: `wp.abs(-2.5)` is 2.5.
    """


@builtin(
    cpp="wp::sign({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=sign_of,
    group=GROUP,
    bounded=True,
    sampling=_AWAY_FROM_ZERO,
)
def sign(x: S) -> S:
    """Give -1 for x < 0, else 1 (for 0 and nan too).

    Example: `wp.sign(-2.5)` is -1.
    """


@builtin(
    cpp="wp::step({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=lambda x: constant(1, x) if x < 0 else constant(0, x),
    group=GROUP,
    bounded=True,
    sampling=_AWAY_FROM_ZERO,
)
def step(x: S) -> S:
    """Give 1 for x < 0, else 0.

    Example: `wp.step(-2.5)` is 1.
    """


@builtin(
    cpp="wp::nonzero({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=lambda x: constant(0, x) if x == 0 else constant(1, x),
    group=GROUP,
    bounded=True,
    sampling=_AWAY_FROM_ZERO,
)
def nonzero(x: S) -> S:
    """Give 0 for x == 0, else 1.

    Example: `wp.nonzero(-2.5)` is 1.
    """


@builtin(cpp="wp::isfinite({a})", adjoint=BOOLEAN, reference=np.isfinite, group=GROUP)
def isfinite(a: F) -> bool_:
    """Tell whether `x` is neither infinite nor nan.

    Example: `wp.isfinite(0.5)` is True.
    """


@builtin(cpp="wp::isnan({a})", adjoint=BOOLEAN, reference=np.isnan, group=GROUP)
def isnan(a: F) -> bool_:
    """Tell whether `x` is nan.

    Example: `wp.isnan(0.5)` is False.
    """


@builtin(cpp="wp::isinf({a})", adjoint=BOOLEAN, reference=np.isinf, group=GROUP)
def isinf(a: F) -> bool_:
    """Tell whether `x` is inf or -inf.

    Example: `wp.isinf(0.5)` is False.
    """


@builtin("isfinite", cpp="true", adjoint=BOOLEAN, reference=lambda a: np.bool_(True), group=GROUP)
def isfinite_int(a: I) -> bool_:
    """Give True: an integer is always finite.

    Example: `wp.isfinite(6)` is True.
    """


@builtin("isnan", cpp="false", adjoint=BOOLEAN, reference=lambda a: np.bool_(False), group=GROUP)
def isnan_int(a: I) -> bool_:
    """Give False: an integer is never nan.

    Example: `wp.isnan(6)` is False.
    """


@builtin("isinf", cpp="false", adjoint=BOOLEAN, reference=lambda a: np.bool_(False), group=GROUP)
def isinf_int(a: I) -> bool_:
    """Give False: an integer is never infinite.

    Example: `wp.isinf(6)` is False.
    """


__all__ = ["GROUP", "round_away", "sign_of"]
