"""The error function and its inverses, and functions of signs and bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F, I
from warp._src.builtins.rules import INTEGER
from warp._src.ir.dual import Dual
from warp._src.types.scalars import int32

GROUP = "Scalar math"

_HALF_ROOT_PI = 0.5 * math.sqrt(math.pi)
_AWAY_FROM_ZERO = Sampling(condition=lambda x, y: abs(x) > 0.05 and abs(y) > 0.05)


def inverse_complement(z: float) -> float:
    """Give the x whose erfc is z by Newton's method, in logarithms where erfc is small."""
    if not 0.0 <= z <= 2.0:
        return math.nan
    if z == 0.0 or z == 2.0:
        return math.inf if z == 0.0 else -math.inf
    if z > 1.0:
        return -inverse_complement(2.0 - z)
    if z > 0.5:
        return inverse(1.0 - z)
    x = math.sqrt(-math.log(z))
    for _ in range(8):
        value = math.erfc(x)
        x += math.log(value / z) * value * _HALF_ROOT_PI * math.exp(x * x)
    return x


def inverse(x: float) -> float:
    """Give the y whose erf is x, by Newton's method."""
    if not abs(x) <= 0.5:
        return math.copysign(inverse_complement(1.0 - abs(x)), x)
    y = x * _HALF_ROOT_PI
    for _ in range(5):
        y -= (math.erf(y) - x) * _HALF_ROOT_PI * math.exp(y * y)
    return y


def smooth(function: Callable[[float], float], slope: Callable[[float, float], float]) -> Callable[[Any], Any]:
    """Make a reference from a function of Python's floats and its derivative, given x and the value."""

    def reference(x: Any) -> Any:
        if isinstance(x, Dual):
            value = function(x.value)
            return Dual(value, x.d * slope(x.value, value))
        return x.dtype.type(function(float(x)))

    return reference


def _gauss(x: float) -> float:
    return math.exp(-x * x) / _HALF_ROOT_PI


def _inverse_slope(ret: Expr, adj: Expr) -> Expr:
    return adj * f.exp(ret * ret) * _HALF_ROOT_PI


def _copysign(x: Any, y: Any) -> Any:
    return abs(x) * (-1 if math.copysign(1.0, y.value if isinstance(y, Dual) else float(y)) < 0 else 1)


@builtin(
    cpp="wp::erf({x})",
    adjoint={"x": lambda x, adj: adj * f.exp(-(x * x)) / _HALF_ROOT_PI},
    reference=smooth(math.erf, lambda x, value: _gauss(x)),
    group=GROUP,
    bounded=True,
)
def erf(x: F) -> F:
    """Error function, from -1 to 1.

    Example: `wp.erf(0.5)` is 0.5205.
    """


@builtin(
    cpp="wp::erfc({x})",
    adjoint={"x": lambda x, adj: -(adj * f.exp(-(x * x)) / _HALF_ROOT_PI)},
    reference=smooth(math.erfc, lambda x, value: -_gauss(x)),
    group=GROUP,
    bounded=True,
)
def erfc(x: F) -> F:
    """Complement of the error function, 1 - erf(x), precise where it is small.

    Example: `wp.erfc(0.5)` is 0.4795.
    """


@builtin(
    cpp="wp::erfinv({x})",
    adjoint={"x": lambda ret, adj: _inverse_slope(ret, adj)},
    reference=smooth(inverse, lambda x, value: math.exp(value * value) * _HALF_ROOT_PI),
    group=GROUP,
    sampling=Sampling(ranges={"x": (-0.95, 0.95)}),
)
def erfinv(x: F) -> F:
    """Inverse of the error function: infinite at -1 and 1, nan beyond.

    Example: `wp.erfinv(0.5)` is 0.4769.
    """


@builtin(
    cpp="wp::erfcinv({x})",
    adjoint={"x": lambda ret, adj: -_inverse_slope(ret, adj)},
    reference=smooth(inverse_complement, lambda x, value: -math.exp(value * value) * _HALF_ROOT_PI),
    group=GROUP,
    sampling=Sampling(ranges={"x": (0.05, 1.95)}),
)
def erfcinv(x: F) -> F:
    """Inverse of `erfc`: infinite at 0 and 2, nan beyond.

    Example: `wp.erfcinv(0.5)` is 0.4769.
    """


@builtin(
    cpp="wp::copysign({x}, {y})",
    adjoint={
        "x": lambda x, y, adj: adj * f.copysign(x.constant(1.0), x) * f.copysign(y.constant(1.0), y),
        "y": lambda y: y.zero(),
    },
    reference=_copysign,
    group=GROUP,
    sampling=_AWAY_FROM_ZERO,
)
def copysign(x: F, y: F) -> F:
    """Give `x` the sign of `y`, also where these are zeros.

    Example: `wp.copysign(3.0, -0.0)` is -3.
    """


@builtin(
    cpp="wp::bit_count({x})",
    adjoint=INTEGER,
    reference=lambda x: np.int32((int(x) & ((1 << 8 * x.dtype.itemsize) - 1)).bit_count()),
    group=GROUP,
    bounded=True,
)
def bit_count(x: I) -> int32:
    """Count the bits that are 1; negative numbers are two's complement.

    Example: `wp.bit_count(wp.int8(-1))` is 8.
    """


__all__ = ["GROUP", "smooth"]
