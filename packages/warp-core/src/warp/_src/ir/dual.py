"""Dual numbers: a value and its derivatives along several directions, the oracle of the gradient tests.

NumPy's ufuncs dispatch to the methods below, on a single `Dual` and on object arrays of them, so the reference
implementation of a builtin serves both. At kinks and poles the conventions of GRADIENTS.md section 7 hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Derivative = Any  # float64 array of shape (directions,), or 0.0 for a constant


class Dual:
    """A float64 with derivatives; comparisons look at the value alone.

    There is no `__float__`: a conversion would lose the derivatives unnoticed.
    """

    __slots__ = ("d", "value")
    __hash__ = None  # type: ignore[assignment]  # equality is by value, and values repeat

    def __init__(self, value: float, d: Derivative = 0.0) -> None:
        self.value = float(value)
        self.d = d

    def __repr__(self) -> str:
        return f"Dual({self.value}, {self.d})"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        if any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
            return ufunc(*(_as_objects(x) for x in inputs))
        function = _FUNCTIONS.get(ufunc.__name__)
        if function is None:
            return NotImplemented
        return function(*(as_dual(x.item() if isinstance(x, np.ndarray) else x) for x in inputs))

    # -- arithmetic ------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.d + other.d)
        return _binary(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary(np.add, other, self)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value - other.value, self.d - other.d)
        return _binary(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary(np.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, _scaled(self.d, other.value) + _scaled(other.d, self.value))
        return _binary(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            inverse = _divide(1.0, other.value)
            value = _divide(self.value, other.value)
            return Dual(value, _scaled(self.d, inverse) - _scaled(other.d, value * inverse))
        return _binary(np.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary(np.divide, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _binary(np.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _binary(np.floor_divide, other, self)

    def __mod__(self, other: Any) -> Any:
        return _binary(np.remainder, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _binary(np.remainder, other, self)

    def __pow__(self, other: Any) -> Any:
        return _binary(np.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _binary(np.power, other, self)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.d)

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Dual:
        return -self if self.value < 0.0 else Dual(abs(self.value), self.d)

    # -- comparisons, on the value -----------------------------------------------------------------------

    def __bool__(self) -> bool:
        return self.value != 0.0

    def __eq__(self, other: object) -> Any:
        return self.value == _value(other)

    def __ne__(self, other: object) -> Any:
        return self.value != _value(other)

    def __lt__(self, other: Any) -> Any:
        return self.value < _value(other)

    def __le__(self, other: Any) -> Any:
        return self.value <= _value(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > _value(other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= _value(other)

    # -- piecewise constant functions -----------------------------------------------------------------

    def __trunc__(self) -> int:
        return math.trunc(self.value)

    def __floor__(self) -> int:
        return math.floor(self.value)

    def __ceil__(self) -> int:
        return math.ceil(self.value)

    def __getattr__(self, name: str) -> Any:
        # NumPy calls `element.sin()` for `np.sin` of an object array.
        function = _FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(name)
        return lambda *others: function(self, *(as_dual(other) for other in others))


def as_dual(x: Any) -> Any:
    """Give `x` as a Dual with zero derivatives if it is a real number; a Dual stays as it is."""
    return x if isinstance(x, Dual) else Dual(float(x))


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Dual) else x


def _as_objects(x: Any) -> Any:
    if isinstance(x, np.ndarray) and x.dtype == object:
        return x
    result = np.empty(np.shape(x), dtype=object)
    flat = result.reshape(-1)
    for index, element in enumerate(np.asarray(x, dtype=object).reshape(-1)):
        flat[index] = as_dual(element)
    return result


def _binary(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return ufunc(_as_objects(left), _as_objects(right))
    return _FUNCTIONS[ufunc.__name__](as_dual(left), as_dual(right))


def _scaled(d: Derivative, factor: float) -> Derivative:
    """Give d * factor, where a derivative of 0 wins over an infinite factor (the strong zero)."""
    if math.isfinite(factor):
        return d * factor
    with np.errstate(invalid="ignore"):
        return np.where(np.equal(d, 0.0), 0.0, np.multiply(d, factor))


def _divide(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.divide(x, y))


def _smooth(ufunc: np.ufunc, derivative: Callable[[float, float], Any]) -> Callable[[Dual], Dual]:
    """Make the dual function of one variable from its ufunc and derivative(x, f(x))."""

    def function(x: Dual) -> Dual:
        with np.errstate(all="ignore"):
            value = float(ufunc(x.value))
            factor = float(derivative(np.float64(x.value), np.float64(value)))
        return Dual(value, _scaled(x.d, factor))

    return function


def _constant(ufunc: np.ufunc) -> Callable[..., Any]:
    """Make the dual function of a piecewise constant ufunc: its derivatives are 0."""

    def function(*args: Dual) -> Any:
        value = ufunc(*(arg.value for arg in args))
        return value if isinstance(value, (bool, np.bool_)) else Dual(float(value))

    return function


def _remainder(ufunc: np.ufunc, quotient: Callable[[float], float]) -> Callable[[Dual, Dual], Dual]:
    def function(x: Dual, y: Dual) -> Dual:
        with np.errstate(all="ignore"):
            value = float(ufunc(x.value, y.value))
            factor = float(quotient(np.float64(x.value) / y.value))
        return Dual(value, x.d - _scaled(y.d, factor))

    return function


def _power(x: Dual, y: Dual) -> Dual:
    with np.errstate(all="ignore"):
        base, exponent = np.float64(x.value), np.float64(y.value)
        value = float(base**exponent)
        by_x = 0.0 if exponent == 0.0 else float(exponent * base ** (exponent - 1.0))
        by_y = 0.0 if base == 0.0 else float(value * np.log(base))
    return Dual(value, _scaled(x.d, by_x) + _scaled(y.d, by_y))


def _arctan2(y: Dual, x: Dual) -> Dual:
    square = x.value * x.value + y.value * y.value
    if square == 0.0:
        return Dual(math.atan2(y.value, x.value), 0.0 * (x.d + y.d))
    return Dual(math.atan2(y.value, x.value), y.d * (x.value / square) - x.d * (y.value / square))


def _hypot(x: Dual, y: Dual) -> Dual:
    value = math.hypot(x.value, y.value)
    if value == 0.0:
        return Dual(0.0, 0.0 * (x.d + y.d))
    return Dual(value, x.d * (x.value / value) + y.d * (y.value / value))


def _selection(ufunc: np.ufunc) -> Callable[[Dual, Dual], Dual]:
    """Make max or min: the derivative is that of the operand that won, of the second at a tie."""

    def function(x: Dual, y: Dual) -> Dual:
        value = float(ufunc(x.value, y.value))
        return Dual(value, y.d if value == y.value else x.d)

    return function


def _where_open(x: float, derivative: float) -> float:
    """Give the derivative of asin and acos, 0 at +-1."""
    return 0.0 if abs(x) >= 1.0 else derivative


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": Dual.__add__,
    "subtract": Dual.__sub__,
    "multiply": Dual.__mul__,
    "divide": Dual.__truediv__,
    "true_divide": Dual.__truediv__,
    "power": _power,
    "float_power": _power,
    "negative": Dual.__neg__,
    "positive": Dual.__pos__,
    "absolute": Dual.__abs__,
    "fabs": Dual.__abs__,
    "fmod": _remainder(np.fmod, np.trunc),
    "remainder": _remainder(np.remainder, np.floor),
    "maximum": _selection(np.maximum),
    "minimum": _selection(np.minimum),
    "fmax": _selection(np.fmax),
    "fmin": _selection(np.fmin),
    "arctan2": _arctan2,
    "hypot": _hypot,
    "conjugate": Dual.__pos__,
    "reciprocal": _smooth(np.reciprocal, lambda x, v: -v * v),
    "square": _smooth(np.square, lambda x, v: 2.0 * x),
    "sin": _smooth(np.sin, lambda x, v: np.cos(x)),
    "cos": _smooth(np.cos, lambda x, v: -np.sin(x)),
    "tan": _smooth(np.tan, lambda x, v: 1.0 + v * v),
    "arcsin": _smooth(np.arcsin, lambda x, v: _where_open(x, 1.0 / np.sqrt(1.0 - x * x))),
    "arccos": _smooth(np.arccos, lambda x, v: _where_open(x, -1.0 / np.sqrt(1.0 - x * x))),
    "arctan": _smooth(np.arctan, lambda x, v: 1.0 / (1.0 + x * x)),
    "sinh": _smooth(np.sinh, lambda x, v: np.cosh(x)),
    "cosh": _smooth(np.cosh, lambda x, v: np.sinh(x)),
    "tanh": _smooth(np.tanh, lambda x, v: 1.0 - v * v),
    "arcsinh": _smooth(np.arcsinh, lambda x, v: 1.0 / np.sqrt(x * x + 1.0)),
    "arccosh": _smooth(np.arccosh, lambda x, v: 1.0 / np.sqrt(x * x - 1.0)),
    "arctanh": _smooth(np.arctanh, lambda x, v: 1.0 / (1.0 - x * x)),
    "exp": _smooth(np.exp, lambda x, v: v),
    "exp2": _smooth(np.exp2, lambda x, v: v * math.log(2.0)),
    "expm1": _smooth(np.expm1, lambda x, v: v + 1.0),
    "log": _smooth(np.log, lambda x, v: 1.0 / x),
    "log2": _smooth(np.log2, lambda x, v: 1.0 / (x * math.log(2.0))),
    "log10": _smooth(np.log10, lambda x, v: 1.0 / (x * math.log(10.0))),
    "log1p": _smooth(np.log1p, lambda x, v: 1.0 / (1.0 + x)),
    "sqrt": _smooth(np.sqrt, lambda x, v: 0.5 / v),
    "cbrt": _smooth(np.cbrt, lambda x, v: 1.0 / (3.0 * v * v)),
    "degrees": _smooth(np.degrees, lambda x, v: 180.0 / math.pi),
    "rad2deg": _smooth(np.degrees, lambda x, v: 180.0 / math.pi),
    "radians": _smooth(np.radians, lambda x, v: math.pi / 180.0),
    "deg2rad": _smooth(np.radians, lambda x, v: math.pi / 180.0),
    **{
        ufunc.__name__: _constant(ufunc)
        for ufunc in (
            np.floor,
            np.ceil,
            np.trunc,
            np.rint,
            np.sign,
            np.floor_divide,
            np.isnan,
            np.isinf,
            np.isfinite,
            np.signbit,
            np.equal,
            np.not_equal,
            np.less,
            np.less_equal,
            np.greater,
            np.greater_equal,
            np.logical_and,
            np.logical_or,
            np.logical_not,
        )
    },
}

__all__ = ["Derivative", "Dual", "as_dual"]
