"""A framework with everything a bridge has to deal with: own types, devices, strides and gradients, and no NumPy."""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DType:
    """A data type."""

    name: str
    code: str
    """As the struct module calls it."""

    @property
    def size(self) -> int:
        """Return the bytes of one element."""
        return struct.calcsize(self.code)


float32 = DType("float32", "f")
float64 = DType("float64", "d")
int16 = DType("int16", "h")
int32 = DType("int32", "i")
int64 = DType("int64", "q")
truth = DType("truth", "?")
complex64 = DType("complex64", "q")


@dataclass(frozen=True)
class Place:
    """A device."""

    name: str


HOST = Place("host")


class Tensor:
    """Elements in memory that `owner` keeps alive, with strides in elements."""

    def __init__(self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: DType, owner: Any) -> None:
        self.address = address
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.dtype = dtype
        self.place = HOST
        self.owner = owner
        self.needs_gradient = False
        self.gradient: Tensor | None = None

    def __getitem__(self, index: Any) -> Tensor:
        """Return a view; `index` holds slices only."""
        address, shape, strides = self.address, list(self.shape), list(self.strides)
        for axis, part in enumerate(index if isinstance(index, tuple) else (index,)):
            start, stop, step = part.indices(self.shape[axis])
            address += start * self.strides[axis] * self.dtype.size
            shape[axis] = len(range(start, stop, step))
            strides[axis] = step * self.strides[axis]
        return Tensor(address, shape, strides, self.dtype, self.owner)

    def addresses(self) -> Iterator[int]:
        """Yield the address of each element in row-major order."""
        for index in itertools.product(*map(range, self.shape)):
            yield self.address + self.dtype.size * sum(i * s for i, s in zip(index, self.strides, strict=True))

    def elements(self) -> list[Any]:
        """Return the elements in row-major order."""
        size = self.dtype.size
        return [struct.unpack(self.dtype.code, ctypes.string_at(address, size))[0] for address in self.addresses()]


def tensor(elements: Sequence[Any], shape: Sequence[int], dtype: DType) -> Tensor:
    """Return a new tensor."""
    count = len(elements)
    memory = ctypes.create_string_buffer(struct.pack(f"{count}{dtype.code}", *elements), max(1, count * dtype.size))
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return Tensor(ctypes.addressof(memory), shape, strides[::-1], dtype, memory)


def zeros_like(other: Tensor) -> Tensor:
    """Return zeros of the same shape and type."""
    return tensor([0] * len(list(other.addresses())), other.shape, other.dtype)
