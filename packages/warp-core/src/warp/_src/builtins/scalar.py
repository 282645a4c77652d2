"""Elementary functions of one or two floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F
from warp._src.builtins.rules import first_unless

GROUP = "Scalar math"

_POSITIVE = Sampling(ranges={"x": (0.2, 3.0)})
_INSIDE = Sampling(ranges={"x": (-0.9, 0.9)})


def _arc_slope(x: Expr, adj: Expr) -> Expr:
    """Give adj / sqrt(1 - x^2), and 0 at the ends of the domain."""
    return first_unless(f.abs(x).equals(1.0), adj / f.sqrt((1.0 - x) * (1.0 + x)))


def _turn(y: Expr, x: Expr, adj: Expr, numerator: Expr) -> Expr:
    """Give adj * numerator / (x^2 + y^2) without overflow, and 0 at the origin."""
    scale = f.max(f.abs(x), f.abs(y))
    a, b, c = x / scale, y / scale, numerator / scale
    return f.where(scale > 0.0, adj * c / (a * a + b * b) / scale, adj.zero())


@builtin(
    cpp="wp::sin({x})",
    adjoint={"x": lambda x, adj: adj * f.cos(x)},
    reference=np.sin,
    group=GROUP,
    bounded=True,
)
def sin(x: F) -> F:
    """Sine of an angle in radians.

    Example: `wp.sin(0.5)` is 0.479426.
    """


@builtin(
    cpp="wp::cos({x})",
    adjoint={"x": lambda x, adj: -(adj * f.sin(x))},
    reference=np.cos,
    group=GROUP,
    bounded=True,
)
def cos(x: F) -> F:
    """Cosine of an angle in radians.

    Example: `wp.cos(0.5)` is 0.877583.
    """


@builtin(
    cpp="wp::tan({x})",
    adjoint={"x": lambda ret, adj: adj * (ret * ret + 1.0)},
    reference=np.tan,
    group=GROUP,
    sampling=Sampling(ranges={"x": (-1.2, 1.2)}),
)
def tan(x: F) -> F:
    """Tangent of an angle in radians.

    Example: `wp.tan(0.5)` is 0.546302.
    """


@builtin(
    cpp="wp::asin({x})",
    adjoint={"x": lambda x, adj: _arc_slope(x, adj)},
    reference=np.arcsin,
    group=GROUP,
    sampling=_INSIDE,
)
def asin(x: F) -> F:
    """Arc sine in radians, nan outside [-1, 1]; the derivative at -1 and 1 is taken as 0.

    Example: `wp.asin(0.5)` is 0.523599.
    """


@builtin(
    cpp="wp::acos({x})",
    adjoint={"x": lambda x, adj: -_arc_slope(x, adj)},
    reference=np.arccos,
    group=GROUP,
    sampling=_INSIDE,
)
def acos(x: F) -> F:
    """Arc cosine in radians, nan outside [-1, 1]; the derivative at -1 and 1 is taken as 0.

    Example: `wp.acos(0.5)` is 1.0472.
    """


@builtin(
    cpp="wp::atan({x})",
    adjoint={"x": lambda x, adj: adj / (x * x + 1.0)},
    reference=np.arctan,
    group=GROUP,
    bounded=True,
)
def atan(x: F) -> F:
    """Arc tangent in radians.

    Example: `wp.atan(0.5)` is 0.463648.
    """


@builtin(
    cpp="wp::atan2({y}, {x})",
    adjoint={
        "y": lambda y, x, adj: _turn(y, x, adj, x),
        "x": lambda y, x, adj: -_turn(y, x, adj, y),
    },
    reference=np.arctan2,
    group=GROUP,
    bounded=True,
    sampling=Sampling(condition=lambda y, x: math.hypot(x, y) > 0.3 and not (x < 0 and abs(y) < 0.05)),
)
def atan2(y: F, x: F) -> F:
    """Angle of the point (x, y) in radians, from -pi to pi; its derivatives at the origin are taken as 0.

    Example: `wp.atan2(1.0, 2.0)` is 0.463648.
    """


@builtin(
    cpp="wp::sinh({x})",
    adjoint={"x": lambda x, adj: adj * f.cosh(x)},
    reference=np.sinh,
    group=GROUP,
)
def sinh(x: F) -> F:
    """Hyperbolic sine.

    Example: `wp.sinh(0.5)` is 0.521095.
    """


@builtin(
    cpp="wp::cosh({x})",
    adjoint={"x": lambda x, adj: adj * f.sinh(x)},
    reference=np.cosh,
    group=GROUP,
)
def cosh(x: F) -> F:
    """Hyperbolic cosine.

    Example: `wp.cosh(0.5)` is 1.12763.
    """


@builtin(
    cpp="wp::tanh({x})",
    adjoint={"x": lambda ret, adj: adj * (1.0 - ret * ret)},
    reference=np.tanh,
    group=GROUP,
    bounded=True,
)
def tanh(x: F) -> F:
    """Hyperbolic tangent.

    Example: `wp.tanh(0.5)` is 0.462117.
    """


@builtin(
    cpp="wp::exp({x})",
    adjoint={"x": lambda ret, adj: adj * ret},
    reference=np.exp,
    group=GROUP,
)
def exp(x: F) -> F:
    """Exponential function.

    Example: `wp.exp(1.0)` is 2.71828.
    """


@builtin(
    cpp="wp::log({x})",
    adjoint={"x": lambda x, adj: adj / x},
    reference=np.log,
    group=GROUP,
    sampling=_POSITIVE,
)
def log(x: F) -> F:
    """Natural logarithm: -inf at 0, nan below.

    Example: `wp.log(2.0)` is 0.693147.
    """


@builtin(
    cpp="wp::log2({x})",
    adjoint={"x": lambda x, adj: adj / x / math.log(2.0)},
    reference=np.log2,
    group=GROUP,
    sampling=_POSITIVE,
)
def log2(x: F) -> F:
    """Logarithm to base 2: -inf at 0, nan below.

    Example: `wp.log2(8.0)` is 3.
    """


@builtin(
    cpp="wp::log10({x})",
    adjoint={"x": lambda x, adj: adj / x / math.log(10.0)},
    reference=np.log10,
    group=GROUP,
    sampling=_POSITIVE,
)
def log10(x: F) -> F:
    """Logarithm to base 10: -inf at 0, nan below.

    Example: `wp.log10(100.0)` is 2.
    """


@builtin(
    cpp="wp::sqrt({x})",
    adjoint={"x": lambda ret, adj: adj * 0.5 / ret},
    reference=np.sqrt,
    group=GROUP,
    sampling=_POSITIVE,
)
def sqrt(x: F) -> F:
    """Square root, nan below 0; its derivative at 0 is inf.

    Example: `wp.sqrt(2.25)` is 1.5.
    """


@builtin(
    cpp="wp::cbrt({x})",
    adjoint={"x": lambda ret, adj: adj / (ret * ret * 3.0)},
    reference=np.cbrt,
    group=GROUP,
    sampling=Sampling(condition=lambda x: abs(x) > 0.1),
)
def cbrt(x: F) -> F:
    """Cube root; its derivative at 0 is inf.

    Example: `wp.cbrt(8.0)` is 2.
    """


def _interpolate(a: Any, b: Any, t: Any) -> Any:
    return a * (1 - t) + b * t


@builtin(
    cpp="wp::lerp({a}, {b}, {t})",
    adjoint={
        "a": lambda t, adj: adj * (1.0 - t),
        "b": lambda t, adj: adj * t,
        "t": lambda a, b, adj: adj * (b - a),
    },
    reference=_interpolate,
    group=GROUP,
)
def lerp(a: F, b: F, t: F) -> F:
    """Interpolate linearly: a * (1 - t) + b * t.

    Example: `wp.lerp(0.5, 0.25, 0.75)` is 0.3125.
    """


def _smooth(a: Any, b: Any, x: Any) -> Any:
    t = (x - a) / (b - a)
    t = a * 0 if t < 0 else t
    t = a * 0 + 1 if t > 1 else t
    return t * t * (3 - t * 2)


def _smooth_slope(a: Expr, b: Expr, x: Expr, adj: Expr, numerator: Expr) -> Expr:
    """Give adj * 6 t (1 - t) * numerator / (b - a), and 0 outside the edges."""
    width = b - a
    t = (x - a) / width
    inside = f.logical_and(t > 0.0, t < 1.0)
    return f.where(inside, adj * (t * (1.0 - t) * 6.0) * numerator / width, adj.zero())


@builtin(
    cpp="wp::smoothstep({a}, {b}, {x})",
    adjoint={
        "a": lambda a, b, x, adj: _smooth_slope(a, b, x, adj, (x - b) / (b - a)),
        "b": lambda a, b, x, adj: _smooth_slope(a, b, x, adj, (a - x) / (b - a)),
        "x": lambda a, b, x, adj: _smooth_slope(a, b, x, adj, a.constant(1.0)),
    },
    reference=_smooth,
    group=GROUP,
    sampling=Sampling(ranges={"a": (-1.0, 0.0), "b": (1.0, 2.0)}),
)
def smoothstep(a: F, b: F, x: F) -> F:
    """Rise smoothly from 0 at `a` to 1 at `b`: t * t * (3 - 2 * t) with t = (x - a) / (b - a) clamped to [0, 1].

    Example: `wp.smoothstep(0.0, 2.0, 0.5)` is 0.15625.
    """


__all__ = ["GROUP"]
