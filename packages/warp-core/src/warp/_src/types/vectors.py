"""Vector types of any length and scalar type."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from warp._src.types.scalar_base import Number, Scalar, as_number
from warp._src.types.scalars import float32, scalar_from
from warp._src.types.tensor_arithmetic import ComponentArithmetic
from warp._src.types.tensor_base import ANY_LENGTH, Tensor

__all__ = ["SUFFIXES", "Vector", "component_property", "is_generic_scalar", "short_suffix", "tensor_scalar", "vector"]

SUFFIXES: dict[str, str] = {
    "b": "int8",
    "ub": "uint8",
    "s": "int16",
    "us": "uint16",
    "i": "int32",
    "ui": "uint32",
    "l": "int64",
    "ul": "uint64",
    "h": "float16",
    "f": "float32",
    "d": "float64",
}


class Vector(ComponentArithmetic):
    """A column of scalars."""

    __slots__ = ()
    category: ClassVar[str] = "vector"
    splats: ClassVar[bool] = True
    x: Number
    y: Number
    z: Number
    w: Number

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            values = self.values[key]
            return vector(len(values), self.scalar).from_numbers(values) if values else []
        try:
            return self.values[key]
        except IndexError:
            raise IndexError(f"index {key} is out of range for {self.name}") from None

    def __setitem__(self, key: int | slice, value: object) -> None:
        if not isinstance(key, slice):
            self.values[key] = self.scalar.convert(as_number(value, self.name))
            return
        count = len(self.values[key])
        if count:
            self.values[key] = vector(count, self.scalar)(value).values

    def multiply(self, other: Tensor) -> Any:
        """Return NotImplemented: a matrix on the right knows the product, two vectors have none."""
        if isinstance(other, Vector):
            raise TypeError(f"{self.name} * {other.name} is ambiguous; use wp.cw_mul() or wp.dot()")
        return NotImplemented


def vector(length: Any, dtype: Any = float32) -> type[Vector]:
    """Return the vector type of `length` components (Any for a generic annotation) of scalar type `dtype`.

    The same class is returned for the same arguments. Raises TypeError for a bad dtype, ValueError for a bad length.
    """
    scalar = tensor_scalar(dtype, "vector")
    return _vector_class(tensor_length(length, "vector"), scalar)


@cache
def _vector_class(count: int, scalar: Any) -> type[Vector]:
    attributes: dict[str, Any] = {
        "scalar": scalar,
        "shape": (count,),
        "length": count,
        "origin": (vector, (count, scalar)),
    }
    attributes.update({axis: component_property(index) for index, axis in zip(range(count), "xyzw", strict=False)})
    created: type[Vector] = new_tensor_class(Vector, _vector_name(count, scalar), attributes)
    return created


def _vector_name(length: int, scalar: Any) -> str:
    suffix = short_suffix(scalar)
    if suffix and 2 <= length <= 4:
        return f"vec{length}{suffix}"
    if suffix in ("h", "f", "d") and length == 6:
        return f"spatial_vector{suffix}"
    return f"vec_t({'Any' if length == ANY_LENGTH else length},{_scalar_name(scalar)})"


def new_tensor_class(base: type[Any], name: str, attributes: dict[str, Any]) -> Any:
    """Make the class of one tensor type; size and alignment follow from its scalar type and length."""
    scalar, length = attributes["scalar"], attributes["length"]
    generic = is_generic_scalar(scalar) or length < 0
    layout = {
        "name": name,
        "generic": generic,
        "size": 0 if generic else scalar.size * length,
        "alignment": 1 if generic else scalar.alignment,
        "__slots__": (),
        "__module__": base.__module__,
        "__doc__": f"{name}: {base.__doc__}",
    }
    return type(name, (base,), {**layout, **attributes})


def component_property(index: int) -> property:
    """Return the property that reads and writes one component."""

    def read(self: Tensor) -> Number:
        return self.values[index]

    def write(self: Tensor, value: object) -> None:
        self.values[index] = self.scalar.convert(as_number(value, self.name))

    return property(read, write, doc=f"Component {index}.")


def tensor_scalar(dtype: Any, what: str) -> Any:
    """Return the scalar type that `dtype` stands for, or the TypeVar or Any of a generic; else TypeError."""
    scalar: type[Scalar] | None = scalar_from(dtype)
    if scalar is not None:
        return scalar
    if is_generic_scalar(dtype):
        return dtype
    raise TypeError(f"{what} dtype must be a scalar type, got {getattr(dtype, 'name', dtype)!r}")


def tensor_length(length: Any, what: str) -> int:
    """Return a checked length, ANY_LENGTH for typing.Any."""
    if length is Any or length is ANY_LENGTH:
        return ANY_LENGTH
    if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
        raise TypeError(f"{what} length must be an integer, got {length!r}")
    if length < 1:
        raise ValueError(f"{what} length must be at least 1, got {length}")
    return int(length)


def is_generic_scalar(dtype: object) -> bool:
    """Tell whether `dtype` is typing.Any or a TypeVar."""
    return dtype is Any or isinstance(dtype, TypeVar)


def short_suffix(scalar: Any) -> str | None:
    """Return the letters that short names use for a scalar type, None for bool and generics."""
    name = getattr(scalar, "name", None)
    return next((suffix for suffix, full in SUFFIXES.items() if full == name), None)


def _scalar_name(scalar: Any) -> str:
    return str(getattr(scalar, "name", None) or getattr(scalar, "__name__", "Any"))
