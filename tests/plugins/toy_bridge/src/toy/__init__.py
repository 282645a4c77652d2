"""A framework with everything a bridge has to deal with: own types, devices, strides and gradients, and no NumPy."""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
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


_numbers = itertools.count()


@dataclass(frozen=True, eq=False)
class Operation:
    """What made tensors of other tensors: `adjoint` turns adjoints of the outputs into those of the inputs, or None."""

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    adjoint: Callable[[list[Tensor]], Sequence[Tensor | None]]
    number: int = field(default_factory=lambda: next(_numbers))


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
        self.operation: Operation | None = None

    def __getitem__(self, index: Any) -> Tensor:
        """Return a view; `index` holds slices only."""
        address, shape, strides = self.address, list(self.shape), list(self.strides)
        for axis, part in enumerate(index if isinstance(index, tuple) else (index,)):
            start, stop, step = part.indices(self.shape[axis])
            address += start * self.strides[axis] * self.dtype.size
            shape[axis] = len(range(start, stop, step))
            strides[axis] = step * self.strides[axis]
        view = Tensor(address, shape, strides, self.dtype, self.owner)
        record([self], [view], lambda adjoints: [_spread(self, index, adjoints[0])])
        return view

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


# ---------------------------------------------------------------------------------------------------- differentiation


def record(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], adjoint: Callable[[list[Tensor]], Sequence[Tensor | None]]
) -> None:
    """Say how tensors were made of others, and how adjoints go back."""
    operation = Operation(inputs, outputs, adjoint)
    for output in outputs:
        output.operation = operation


def differentiate(outputs: Sequence[Tensor], adjoints: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return adjoints of the inputs for those of the outputs, in reverse mode."""
    found: dict[Tensor, Tensor] = {}
    waiting = set()
    for output, adjoint in zip(outputs, adjoints, strict=True):
        _accumulate(found, output, adjoint)
        waiting.add(output.operation)
    while operation := max(filter(None, waiting), key=lambda operation: operation.number, default=None):
        waiting.remove(operation)
        given = [found.get(output) or zeros_like(output) for output in operation.outputs]
        for tensor, adjoint in zip(operation.inputs, operation.adjoint(given), strict=True):
            if adjoint is not None:
                _accumulate(found, tensor, adjoint)
                waiting.add(tensor.operation)
    return [found.get(tensor) or zeros_like(tensor) for tensor in inputs]


def _accumulate(found: dict[Tensor, Tensor], tensor: Tensor, adjoint: Tensor) -> None:
    total = found.setdefault(tensor, zeros_like(tensor))
    for address, old, new in zip(total.addresses(), total.elements(), adjoint.elements(), strict=True):
        ctypes.memmove(address, struct.pack(total.dtype.code, old + new), total.dtype.size)


def _spread(whole: Tensor, index: Any, adjoint: Tensor) -> Tensor:
    """Return the adjoint of a tensor for that of a part of it."""
    made = zeros_like(whole)
    part = made[index]
    for address, value in zip(part.addresses(), adjoint.elements(), strict=True):
        ctypes.memmove(address, struct.pack(part.dtype.code, value), part.dtype.size)
    return made
