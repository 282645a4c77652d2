"""Array types: the annotations of kernel parameters and struct fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from warp._src.types.scalar_base import type_of
from warp._src.types.scalars import scalar_from

__all__ = ["MAX_DIMENSIONS", "ArrayType", "IndexedArrayType"]

MAX_DIMENSIONS = 4


@dataclass(frozen=True, repr=False)
class _ArrayAnnotation:
    """Element type and rank; `dtype` may be typing.Any or a TypeVar in generic signatures."""

    dtype: Any
    ndim: int = 1

    kind_name: ClassVar[str]
    size: ClassVar[int]
    alignment: ClassVar[int] = 8

    def __post_init__(self) -> None:
        scalar = scalar_from(self.dtype)
        if scalar is not None:
            object.__setattr__(self, "dtype", scalar)
        if isinstance(self.dtype, _ArrayAnnotation):
            raise TypeError(f"the elements of an array cannot be arrays, got {self.dtype.name}")
        if isinstance(self.ndim, bool) or not isinstance(self.ndim, int) or not 1 <= self.ndim <= MAX_DIMENSIONS:
            raise ValueError(f"an array has 1 to {MAX_DIMENSIONS} dimensions, got {self.ndim!r}")

    @property
    def name(self) -> str:
        """Text of the type, such as array(dtype=float32, ndim=2)."""
        element = str(getattr(self.dtype, "name", None) or getattr(self.dtype, "__name__", self.dtype))
        element = element.removeprefix("Any") or "Any"
        return f"{self.kind_name}(dtype={element}, ndim={self.ndim})"

    def __repr__(self) -> str:
        return self.name

    def coerce(self, value: object) -> Any:
        """Return `value` if it is None or an array of this dtype and rank; else TypeError or ValueError."""
        if value is None:
            return None
        dtype, ndim = getattr(value, "dtype", None), getattr(value, "ndim", None)
        if dtype is None or ndim is None:
            raise TypeError(f"expected {self.name}, got {type_of(value)}")
        dtype = scalar_from(dtype) or dtype
        found = f"array(dtype={getattr(dtype, 'name', dtype)}, ndim={ndim})"
        if self.dtype is not Any and not isinstance(self.dtype, TypeVar) and dtype != self.dtype:
            raise TypeError(f"expected {self.name}, got {found}")
        if ndim != self.ndim:
            raise ValueError(f"expected {self.name}, got {found}")
        return value

    def pack(self, value: object) -> bytes:
        """Return the C descriptor of an array, all zero for None."""
        if value is None:
            return bytes(self.size)
        descriptor = getattr(value, "descriptor", None)
        if descriptor is None:
            raise TypeError(f"expected {self.name}, got {type_of(value)}, which has no descriptor")
        data = bytes(descriptor())
        if len(data) != self.size:
            raise TypeError(f"expected {self.name}, got an array whose descriptor has {len(data)} bytes")
        return data

    def numpy_dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype of the C descriptor."""
        return np.dtype((np.void, self.size))


@dataclass(frozen=True, repr=False)
class ArrayType(_ArrayAnnotation):
    """An array of up to four dimensions, described by strides."""

    kind_name: ClassVar[str] = "array"
    size: ClassVar[int] = 120


@dataclass(frozen=True, repr=False)
class IndexedArrayType(_ArrayAnnotation):
    """An array seen through one optional list of indices per dimension."""

    kind_name: ClassVar[str] = "indexedarray"
    size: ClassVar[int] = 184
