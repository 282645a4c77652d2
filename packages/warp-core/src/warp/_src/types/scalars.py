"""Scalar types; each class is the type itself, an instance is a host value of that type."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from typing import Any, ClassVar, TypeGuard

import numpy as np

from warp._src.types.host_arithmetic import FLOAT_OPERATIONS, INTEGER_OPERATIONS, round_integer_to_float32
from warp._src.types.scalar_base import Number, Scalar, as_number, type_of

__all__ = [
    "SCALARS",
    "Number",
    "Scalar",
    "as_number",
    "bfloat16",
    "bool_",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_float",
    "is_int",
    "is_scalar",
    "scalar_from",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class _Integer(Scalar):
    """Two's complement integer; conversions wrap, casts of floats saturate and NaN gives zero."""

    __slots__ = ()
    operations = INTEGER_OPERATIONS
    lowest: ClassVar[int]
    highest: ClassVar[int]

    def __init_subclass__(cls, size: int, signed: bool, code: str) -> None:
        cls.name = cls.__name__
        cls.dtype = cls.numeric = np.dtype(cls.__name__)
        cls.size = cls.alignment = size
        cls.kind = "i" if signed else "u"
        cls.format = code
        cls.lowest = -(1 << (8 * size - 1)) if signed else 0
        cls.highest = cls.lowest + (1 << (8 * size)) - 1

    @classmethod
    def convert(cls, value: Number) -> int:
        """Wrap an integer around; cut a float toward zero and saturate it."""
        if isinstance(value, float):
            if math.isnan(value):
                return 0
            return int(min(max(value, cls.lowest), cls.highest))
        return (int(value) - cls.lowest) % (1 << (8 * cls.size)) + cls.lowest

    @classmethod
    def coerce(cls, value: object) -> int:
        """Return `value` as an integer; TypeError unless it is one, ValueError if it is out of range."""
        number = as_number(value, cls.name)
        if isinstance(number, float):
            raise TypeError(f"expected {cls.name}, got {type_of(value)} {value!r}; cast it explicitly")
        if not cls.lowest <= number <= cls.highest:
            raise ValueError(f"{number} is out of range for {cls.name} [{cls.lowest}, {cls.highest}]")
        return int(number)


class _Float(Scalar):
    """IEEE 754 binary floating point number."""

    __slots__ = ()
    operations = FLOAT_OPERATIONS

    def __init_subclass__(cls, size: int, code: str) -> None:
        cls.name = cls.__name__
        cls.dtype = np.dtype(code)
        cls.numeric = vars(cls).get("numeric", cls.dtype)
        cls.size = cls.alignment = size
        cls.kind = "f"
        cls.format = code

    @classmethod
    def apply(cls, operator: str, left: Number, right: Number) -> Number:
        """Apply a binary operator; floor division floors the rounded quotient, as kernels do."""
        if operator == "//":
            return float(np.floor(super().apply("/", left, right)))
        return super().apply(operator, left, right)

    @classmethod
    def coerce(cls, value: object) -> Number:
        """Round any real number to this type; TypeError for anything else."""
        return cls.convert(as_number(value, cls.name))


class bool_(Scalar):  # noqa: N801 - the name users know
    """Truth value, one byte."""

    __slots__ = ()
    name = "bool"
    dtype = numeric = np.dtype(np.bool_)
    size = alignment = 1
    kind = "b"
    format = "?"
    operations: ClassVar[dict[str, Callable[[Any, Any], Any]]] = {
        operator: INTEGER_OPERATIONS[operator] for operator in ("&", "|", "^")
    }

    @classmethod
    def convert(cls, value: Number) -> bool:
        """Return whether `value` is not zero."""
        return bool(value)

    @classmethod
    def coerce(cls, value: object) -> bool:
        """Return the truth of a bool or an integer; TypeError for anything else."""
        number = as_number(value, cls.name)
        if isinstance(number, float):
            raise TypeError(f"expected bool, got {type_of(value)} {value!r}; compare it with zero")
        return bool(number)


class int8(_Integer, size=1, signed=True, code="b"):  # noqa: N801
    """Signed integer of 8 bits."""

    __slots__ = ()


class int16(_Integer, size=2, signed=True, code="h"):  # noqa: N801
    """Signed integer of 16 bits."""

    __slots__ = ()


class int32(_Integer, size=4, signed=True, code="i"):  # noqa: N801
    """Signed integer of 32 bits."""

    __slots__ = ()


class int64(_Integer, size=8, signed=True, code="q"):  # noqa: N801
    """Signed integer of 64 bits."""

    __slots__ = ()


class uint8(_Integer, size=1, signed=False, code="B"):  # noqa: N801
    """Unsigned integer of 8 bits."""

    __slots__ = ()


class uint16(_Integer, size=2, signed=False, code="H"):  # noqa: N801
    """Unsigned integer of 16 bits."""

    __slots__ = ()


class uint32(_Integer, size=4, signed=False, code="I"):  # noqa: N801
    """Unsigned integer of 32 bits."""

    __slots__ = ()


class uint64(_Integer, size=8, signed=False, code="Q"):  # noqa: N801
    """Unsigned integer of 64 bits."""

    __slots__ = ()


class float16(_Float, size=2, code="e"):  # noqa: N801
    """Half precision float."""

    __slots__ = ()

    @classmethod
    def convert(cls, value: Number) -> float:
        """Round to the nearest half, ties to even, overflow to infinity."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return float(np.float64(value).astype(np.float16))


class bfloat16(_Float, size=2, code="H"):  # noqa: N801
    """The upper half of a float32; NumPy, which has no such type, sees its bits as uint16.

    What is computed with it is computed in float32 and rounded.
    """

    __slots__ = ()
    numeric = np.dtype(np.float32)

    @classmethod
    def convert(cls, value: Number) -> float:
        """Round to eight significant bits, ties to even, overflow to infinity."""
        number = float(_sticky(value) if isinstance(value, int) and abs(value) >= 1 << 53 else value)
        if not math.isfinite(number) or number == 0:
            return number
        quantum = math.ldexp(1.0, max(math.frexp(number)[1], -125) - 8)
        rounded = round(number / quantum) * quantum
        return math.copysign(math.inf, number) if abs(rounded) >= 2.0**128 else math.copysign(rounded, number)

    @classmethod
    def encode(cls, value: Number) -> int:
        """Return the bits of a value of this type."""
        bits = int.from_bytes(struct.pack("<f", value), "little") >> 16
        return bits | 0x40 if value != value else bits

    @classmethod
    def decode(cls, stored: Number) -> float:
        """Return the value that bits stand for."""
        return float(struct.unpack("<f", (int(stored) << 16).to_bytes(4, "little"))[0])

    @classmethod
    def encode_array(cls, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the bits of numbers in a NumPy array."""
        numbers = np.ascontiguousarray(values)
        if numbers.dtype.kind in "iu" and numbers.itemsize == 8:
            numbers = np.where(np.abs(numbers.astype(np.float64)) >= 2.0**53, _sticky(numbers), numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = numbers.astype(np.float64)
            nearest = exact.astype(np.float32)
        wide = nearest.view(np.uint32)
        # First to odd, so that rounding to the upper half sees whether anything was cut off.
        is_cut = (nearest != exact) & (exact == exact)
        wide = np.where(is_cut, (wide - (np.abs(nearest) > np.abs(exact))) | 1, wide)
        rounded = (wide + 0x7FFF + (wide >> 16 & 1)) >> 16
        is_nan = (wide & 0x7FFFFFFF) > 0x7F800000
        bits = np.where(is_nan, wide >> 16 | 0x40, rounded).astype(np.uint16)
        result: np.ndarray[Any, Any] = bits.reshape(np.shape(values))
        return result

    @classmethod
    def decode_array(cls, bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the numbers, as float32, that bits in a NumPy array stand for."""
        return (bits.astype(np.uint32) << 16).view(np.float32)

    @classmethod
    def show(cls, value: Number) -> str:
        """Return the shortest decimal that a float32 reads back as the same value."""
        return str(np.float32(value))


class float32(_Float, size=4, code="f"):  # noqa: N801
    """Single precision float."""

    __slots__ = ()

    @classmethod
    def convert(cls, value: Number) -> float:
        """Round to the nearest single, ties to even, overflow to infinity."""
        return ctypes.c_float(value if isinstance(value, float) else round_integer_to_float32(value)).value


class float64(_Float, size=8, code="d"):  # noqa: N801
    """Double precision float."""

    __slots__ = ()

    @classmethod
    def convert(cls, value: Number) -> float:
        """Return `value` as a double."""
        return float(value)


SCALARS: tuple[type[Scalar], ...] = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
)


def _sticky(number: Any) -> Any:
    """Make an integer of 64 bits exact in float64 without moving it past what a narrower float rounds at."""
    return (number >> 12 << 12) | ((number & 0xFFF) + 0xFFF >> 12 << 11)


_FROM_PYTHON: dict[object, type[Scalar]] = {float: float32, int: int32, bool: bool_}
_FROM_NUMPY: dict[np.dtype[Any], type[Scalar]] = {scalar.dtype: scalar for scalar in SCALARS if scalar is not bfloat16}


def is_scalar(t: object) -> TypeGuard[type[Scalar]]:
    """Tell whether `t` is a concrete scalar type."""
    return isinstance(t, type) and t in SCALARS


def is_float(t: object) -> TypeGuard[type[Scalar]]:
    """Tell whether `t` is float16, bfloat16, float32 or float64."""
    return is_scalar(t) and t.kind == "f"


def is_int(t: object) -> TypeGuard[type[Scalar]]:
    """Tell whether `t` is a signed or unsigned integer type; bool is not."""
    return is_scalar(t) and t.kind in "iu"


def _from_numpy(dtype: np.dtype[Any]) -> type[Scalar] | None:
    # The type that other libraries add to NumPy is known by its name only.
    if dtype.kind == "V" and dtype.name == "bfloat16":
        return bfloat16
    return _FROM_NUMPY.get(dtype.newbyteorder("="))


def scalar_from(annotation: object) -> type[Scalar] | None:
    """Return the scalar type that Python's or NumPy's type stands for, or None.

    float means float32, int means int32, as in kernels.
    """
    if is_scalar(annotation):
        return annotation
    if isinstance(annotation, np.dtype):
        return _from_numpy(annotation)
    if isinstance(annotation, type):
        if issubclass(annotation, np.generic):
            return _from_numpy(np.dtype(annotation))
        return _FROM_PYTHON.get(annotation)
    return None
