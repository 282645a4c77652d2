"""Host arithmetic of tensors, rounded after every step as kernels do."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from warp._src.types.scalar_base import Number, Scalar, as_number
from warp._src.types.tensor_base import Tensor, is_number

__all__ = ["ComponentArithmetic", "dot", "scalar_operand"]

_Self = TypeVar("_Self", bound="ComponentArithmetic")
_NUMPY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class ComponentArithmetic(Tensor):
    """Sums of equal types, products and quotients with a scalar, product with another tensor."""

    __slots__ = ()

    def _componentwise(self: _Self, symbol: str, other: object, reflected: bool = False) -> Any:
        if isinstance(other, np.ndarray) and other.ndim > 0:
            mine = np.asarray(self)
            return _NUMPY[symbol](other, mine) if reflected else _NUMPY[symbol](mine, other)
        if isinstance(other, Tensor):
            if type(other) is not type(self):
                raise TypeError(f"operator '{symbol}' needs two operands of one type, got {self.name} and {other.name}")
            pairs = zip(self.values, other.values, strict=True)
            return self.from_numbers(self.scalar.apply(symbol, left, right) for left, right in pairs)
        if symbol in "+-" and isinstance(other, (list, tuple)):
            coerced = self.coerce(other)
            return coerced._componentwise(symbol, self) if reflected else self._componentwise(symbol, coerced)
        return NotImplemented

    def _scaled(self: _Self, symbol: str, other: object, reflected: bool = False) -> Any:
        if not is_number(other):
            return NotImplemented
        factor = scalar_operand(self.scalar, symbol, other, self.name)
        apply = self.scalar.apply
        if reflected:
            return self.from_numbers(apply(symbol, factor, value) for value in self.values)
        return self.from_numbers(apply(symbol, value, factor) for value in self.values)

    def multiply(self, other: Tensor) -> Any:
        """Return the product with another tensor, NotImplemented where there is none."""
        return NotImplemented

    def __add__(self, other: object) -> Any:
        return self._componentwise("+", other)

    def __radd__(self, other: object) -> Any:
        return self._componentwise("+", other, True)

    def __sub__(self, other: object) -> Any:
        return self._componentwise("-", other)

    def __rsub__(self, other: object) -> Any:
        return self._componentwise("-", other, True)

    def __mul__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self.multiply(other)
        if isinstance(other, np.ndarray) and other.ndim > 0:
            return self._componentwise("*", other)
        return self._scaled("*", other)

    def __rmul__(self, other: object) -> Any:
        if isinstance(other, np.ndarray) and other.ndim > 0:
            return self._componentwise("*", other, True)
        return self._scaled("*", other, True)

    def __truediv__(self, other: object) -> Any:
        if isinstance(other, np.ndarray) and other.ndim > 0:
            return self._componentwise("/", other)
        return self._scaled("/", other)

    def __rtruediv__(self, other: object) -> Any:
        if isinstance(other, np.ndarray) and other.ndim > 0:
            return self._componentwise("/", other, True)
        return self._scaled("/", other, True)

    def __neg__(self: _Self) -> _Self:
        return self.from_numbers(self.scalar.convert(-value) for value in self.values)

    def __pos__(self: _Self) -> _Self:
        return self.from_numbers(self.values)


def scalar_operand(scalar: type[Scalar], symbol: str, value: object, name: str) -> Number:
    """Return `value` as a number of type `scalar`; TypeError if it is a Warp scalar of another type."""
    if isinstance(value, Scalar) and type(value) is not scalar:
        raise TypeError(
            f"operator '{symbol}' between {name} and {value.name}: the scalar must be {scalar.name}; cast it"
        )
    return scalar.convert(as_number(value, scalar.name))


def dot(scalar: type[Scalar], left: Sequence[Number], right: Sequence[Number]) -> Number:
    """Return the sum of products, accumulated from the first to the last component."""
    products = [scalar.apply("*", a, b) for a, b in zip(left, right, strict=True)]
    total = products[0]
    for product in products[1:]:
        total = scalar.apply("+", total, product)
    return total
