"""What all scalar types have in common: the class is the type, an instance is a host value."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

__all__ = ["Number", "Scalar", "as_number", "type_of"]

Number: TypeAlias = "bool | int | float"
_Self = TypeVar("_Self", bound="Scalar")


class Scalar:
    """A number on the host, held rounded or wrapped to its type."""

    __slots__ = ("value",)
    __array_priority__: ClassVar[float] = 1000.0

    name: ClassVar[str]
    dtype: ClassVar[np.dtype[Any]]
    size: ClassVar[int]
    alignment: ClassVar[int]
    kind: ClassVar[str]
    format: ClassVar[str]
    operations: ClassVar[dict[str, Callable[[Any, Any], Any]]]
    # In which NumPy computes with values of this type; `dtype` is how arrays store them.
    numeric: ClassVar[np.dtype[Any]]

    value: Number

    def __init__(self, value: object = 0) -> None:
        """Cast `value`: integers wrap around, floats are rounded to nearest even or cut toward zero."""
        self.value = self.convert(as_number(value, self.name))

    @classmethod
    def convert(cls, value: Number) -> Number:
        """Cast a Python number to the value this type would hold."""
        raise TypeError(f"'{cls.__name__}' is not a concrete scalar type, cannot hold {value!r}")

    @classmethod
    def coerce(cls, value: object) -> Number:
        """Convert `value` where no information may be lost by kind or range.

        Raises TypeError for a wrong kind (a float for an integer), ValueError for an integer out of range.
        """
        raise TypeError(f"'{cls.__name__}' is not a concrete scalar type, cannot hold {value!r}")

    @classmethod
    def encode(cls, value: Number) -> Number:
        """Return a value of this type as its `format` and `dtype` store it."""
        return value

    @classmethod
    def decode(cls, stored: Number) -> Number:
        """Return the value that was stored."""
        return stored

    @classmethod
    def pack(cls, value: object) -> bytes:
        """Return the bytes of `value`, checked as `coerce` does."""
        return struct.pack(f"={cls.format}", cls.encode(cls.coerce(value)))

    @classmethod
    def numpy_dtype(cls) -> np.dtype[Any]:
        """Return the NumPy dtype of one value."""
        return cls.dtype

    @classmethod
    def show(cls, value: Number) -> str:
        """Return the shortest text that reads back as the same value."""
        return str(cls.dtype.type(value))

    @classmethod
    def apply(cls, operator: str, left: Number, right: Number) -> Number:
        """Apply a binary operator to two values of this type."""
        operation = cls.operations.get(operator)
        if operation is None:
            raise TypeError(f"operator '{operator}' is not defined for {cls.name}")
        return cls.convert(operation(left, right))

    def _operand(self, other: object, operator: str) -> Number | None:
        if isinstance(other, Scalar):
            if type(other) is not type(self):
                raise TypeError(
                    f"operator '{operator}' needs two operands of one type, got {self.name} and {other.name}; "
                    "cast one of them"
                )
            return other.value
        if isinstance(other, (bool, int, float, np.number, np.bool_)):
            return self.convert(as_number(other, self.name))
        return None

    def _binary(self: _Self, operator: str, other: object, reflected: bool = False) -> _Self:
        operand = self._operand(other, operator)
        if operand is None:
            return NotImplemented  # type: ignore[no-any-return]  # asks the other operand
        left, right = (operand, self.value) if reflected else (self.value, operand)
        return type(self)(self.apply(operator, left, right))

    def __add__(self: _Self, other: object) -> _Self:
        return self._binary("+", other)

    def __radd__(self: _Self, other: object) -> _Self:
        return self._binary("+", other, True)

    def __sub__(self: _Self, other: object) -> _Self:
        return self._binary("-", other)

    def __rsub__(self: _Self, other: object) -> _Self:
        return self._binary("-", other, True)

    def __mul__(self: _Self, other: object) -> _Self:
        return self._binary("*", other)

    def __rmul__(self: _Self, other: object) -> _Self:
        return self._binary("*", other, True)

    def __truediv__(self: _Self, other: object) -> _Self:
        return self._binary("/", other)

    def __rtruediv__(self: _Self, other: object) -> _Self:
        return self._binary("/", other, True)

    def __floordiv__(self: _Self, other: object) -> _Self:
        return self._binary("//", other)

    def __rfloordiv__(self: _Self, other: object) -> _Self:
        return self._binary("//", other, True)

    def __mod__(self: _Self, other: object) -> _Self:
        return self._binary("%", other)

    def __rmod__(self: _Self, other: object) -> _Self:
        return self._binary("%", other, True)

    def __pow__(self: _Self, other: object) -> _Self:
        return self._binary("**", other)

    def __rpow__(self: _Self, other: object) -> _Self:
        return self._binary("**", other, True)

    def __and__(self: _Self, other: object) -> _Self:
        return self._binary("&", other)

    def __rand__(self: _Self, other: object) -> _Self:
        return self._binary("&", other, True)

    def __or__(self: _Self, other: object) -> _Self:
        return self._binary("|", other)

    def __ror__(self: _Self, other: object) -> _Self:
        return self._binary("|", other, True)

    def __xor__(self: _Self, other: object) -> _Self:
        return self._binary("^", other)

    def __rxor__(self: _Self, other: object) -> _Self:
        return self._binary("^", other, True)

    def __lshift__(self: _Self, other: object) -> _Self:
        return self._binary("<<", other)

    def __rlshift__(self: _Self, other: object) -> _Self:
        return self._binary("<<", other, True)

    def __rshift__(self: _Self, other: object) -> _Self:
        return self._binary(">>", other)

    def __rrshift__(self: _Self, other: object) -> _Self:
        return self._binary(">>", other, True)

    def __neg__(self: _Self) -> _Self:
        if self.kind == "b":
            raise TypeError("operator '-' is not defined for bool")
        return type(self)(-self.value)

    def __pos__(self: _Self) -> _Self:
        return type(self)(self.value)

    def __abs__(self: _Self) -> _Self:
        return type(self)(abs(self.value))

    def __invert__(self: _Self) -> _Self:
        if not isinstance(self.value, int) or self.kind == "b":
            raise TypeError(f"operator '~' is not defined for {self.name}")
        return type(self)(-self.value - 1)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        if not isinstance(self.value, int):
            raise TypeError(f"'{self.name}' cannot be used as an index")
        return int(self.value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Scalar):
            return self.value == other.value
        if isinstance(other, (bool, int, float, np.number, np.bool_)):
            return bool(self.value == other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def _order(self, other: object, operator: str) -> tuple[Number, Number] | None:
        operand = self._operand(other, operator)
        return None if operand is None else (self.value, operand)

    def __lt__(self, other: object) -> bool:
        pair = self._order(other, "<")
        return NotImplemented if pair is None else pair[0] < pair[1]

    def __le__(self, other: object) -> bool:
        pair = self._order(other, "<=")
        return NotImplemented if pair is None else pair[0] <= pair[1]

    def __gt__(self, other: object) -> bool:
        pair = self._order(other, ">")
        return NotImplemented if pair is None else pair[0] > pair[1]

    def __ge__(self, other: object) -> bool:
        pair = self._order(other, ">=")
        return NotImplemented if pair is None else pair[0] >= pair[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.value, dtype=self.numeric if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"{self.name}({self.show(self.value)})"

    def __str__(self) -> str:
        return self.show(self.value)


def as_number(value: object, expected: str) -> Number:
    """Return the Python number behind a scalar of Python, NumPy, Warp or a framework; else TypeError."""
    number: object = value
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        number = value.item()
    if isinstance(number, bool):
        return number
    if isinstance(number, int):
        return int(number)
    if isinstance(number, float):
        return float(number)
    converted = None if isinstance(number, (complex, np.ndarray, type)) else _number_of_framework(number)
    if converted is not None:
        return converted
    raise TypeError(f"expected a number for {expected}, got {type_of(value)} {value!r:.80}")


def _number_of_framework(value: object) -> Number | None:
    """Return the number that an object stands for, None if it is none."""
    # Some frameworks' floats have an `__index__` that cuts them off; `item` keeps the kind.
    for protocol in ("item", "__index__", "__float__"):
        method = getattr(value, protocol, None)
        try:
            found = None if method is None else method()
        except (TypeError, ValueError, RuntimeError):
            continue
        if isinstance(found, (int, float)):
            return found
    return None


def type_of(value: object) -> str:
    """Return the name of the type of a host value, as error messages show it."""
    name = getattr(type(value), "name", None)
    return name if isinstance(name, str) else type(value).__name__
