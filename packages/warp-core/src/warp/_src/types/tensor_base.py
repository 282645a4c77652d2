"""What vectors, matrices, quaternions and transforms have in common."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from warp._src.types.scalar_base import Number, Scalar, as_number, type_of

__all__ = ["ANY_LENGTH", "Tensor", "flatten", "is_number"]

ANY_LENGTH = -1
_Self = TypeVar("_Self", bound="Tensor")


class Tensor:
    """A small fixed-size value of one scalar type, mutable on the host."""

    __slots__ = ("values",)
    __array_priority__: ClassVar[float] = 1000.0

    scalar: ClassVar[type[Scalar]]
    shape: ClassVar[tuple[int, ...]]
    length: ClassVar[int]
    category: ClassVar[str]
    size: ClassVar[int]
    alignment: ClassVar[int]
    name: ClassVar[str]
    generic: ClassVar[bool] = False
    splats: ClassVar[bool] = False
    origin: ClassVar[tuple[Any, ...]]

    values: list[Number]

    def __init__(self, *arguments: object) -> None:
        """Make a value from nothing (zeros), components, or one sequence; TypeError, ValueError otherwise."""
        if self.generic:
            raise TypeError(f"{self.name} is a generic type; it only serves as an annotation")
        self.values = self._components(
            tuple(list(argument) if isinstance(argument, Iterator) else argument for argument in arguments)
        )

    def _components(self, arguments: tuple[object, ...]) -> list[Number]:
        if not arguments:
            return [self.scalar.convert(0)] * self.length
        if self.splats and len(arguments) == 1 and is_number(arguments[0]):
            return [self.scalar.convert(as_number(arguments[0], self.name))] * self.length
        self.check_arguments(arguments)
        values = list(flatten(arguments, self.name))
        if len(values) != self.length:
            raise ValueError(f"{self.name} needs {self.length} components, got {len(values)}")
        return [self.scalar.convert(value) for value in values]

    @classmethod
    def check_arguments(cls, arguments: tuple[object, ...]) -> None:
        """Refuse constructor arguments of a form that has the right count by accident."""

    @classmethod
    def from_numbers(cls: type[_Self], values: Iterable[Number]) -> _Self:
        """Make a value from `length` numbers already rounded to the scalar type."""
        instance = cls.__new__(cls)
        instance.values = list(values)
        return instance

    @classmethod
    def coerce(cls: type[_Self], value: object) -> _Self:
        """Return a copy of `value`: this type itself, or numbers in its shape; else TypeError, ValueError."""
        if isinstance(value, Tensor):
            if type(value) is not cls:
                raise TypeError(f"expected {cls.name}, got {type_of(value)}")
            return cls.from_numbers(value.values)
        if hasattr(value, "__array__"):
            value = _values_of(value, cls.name)
        if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
            raise TypeError(f"expected {cls.name}, got {type_of(value)} {value!r:.80}")
        values = [cls.scalar.coerce(number) for number in flatten((value,), cls.name)]
        shape = np.shape(value) if len(values) == cls.length else (len(values),)
        if shape != cls.shape and shape != (cls.length,):
            raise ValueError(f"expected {cls.name} of shape {cls.shape}, got a sequence of shape {shape}")
        return cls.from_numbers(values)

    @classmethod
    def pack(cls, value: object) -> bytes:
        """Return the bytes of `value`, checked as `coerce` does."""
        return cls.coerce(value).to_bytes()

    @classmethod
    def from_bytes(cls: type[_Self], data: bytes) -> _Self:
        """Read a value back from `size` bytes; ValueError if there are more or fewer."""
        if len(data) != cls.size:
            raise ValueError(f"{cls.name} needs {cls.size} bytes, got {len(data)}")
        stored = struct.unpack(f"={cls.length}{cls.scalar.format}", data)
        return cls.from_numbers(map(cls.scalar.decode, stored))

    def to_bytes(self) -> bytes:
        """Return the scalars, packed in order."""
        return struct.pack(f"={self.length}{self.scalar.format}", *map(self.scalar.encode, self.values))

    @classmethod
    def numpy_dtype(cls) -> np.dtype[Any]:
        """Return the NumPy subarray dtype of one value."""
        return np.dtype((cls.scalar.dtype, cls.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = np.array(self.values, dtype=self.scalar.numeric).reshape(self.shape)
        return array if dtype is None else array.astype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Tensor):
            return type(self) is type(other) and self.values == other.values
        if isinstance(other, (list, tuple)):
            return list(self) == list(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.values))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.scalar.show(value) for value in self.values)})"

    def __str__(self) -> str:
        return f"[{', '.join(self.scalar.show(value) for value in self.values)}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (*self.origin, self.values)


def is_number(value: object) -> bool:
    """Tell whether `value` is one number of Python, NumPy or Warp."""
    return isinstance(value, (bool, int, float, Scalar, np.number, np.bool_)) or (
        not isinstance(value, Tensor) and getattr(value, "ndim", None) == 0
    )


def flatten(arguments: Iterable[object], expected: str) -> Iterator[Number]:
    """Yield the numbers in nested sequences, tensors and arrays, in row-major order."""
    for argument in arguments:
        if isinstance(argument, Tensor):
            yield from argument.values
        elif isinstance(argument, np.ndarray):
            yield from (as_number(number, expected) for number in argument.ravel().tolist())
        elif is_number(argument) or isinstance(argument, (str, bytes)) or not isinstance(argument, Iterable):
            yield as_number(argument, expected)
        else:
            yield from flatten(argument, expected)


def _values_of(value: Any, expected: str) -> Any:
    """Return an array of another library as one of NumPy; TypeError if it refuses."""
    try:
        return np.asarray(value)
    except RuntimeError as error:
        raise TypeError(f"expected {expected}, got {type_of(value)}: {error}") from error


def _rebuild(factory: Callable[..., type[Tensor]], key: tuple[Any, ...], values: list[Number]) -> Tensor:
    return factory(*key).from_numbers(values)
