"""Arrays of the interpreter: memory with a gradient beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from warp._src.ir.core import Type
from warp._src.types.scalars import is_scalar
from warp._src.types.signature import is_array, is_tensor, size_of

# Anything NumPy; the interpreter does not know element types statically.
Memory = Any


@dataclass(frozen=True, eq=False)
class ArrayCell:
    """An array argument: `primal` and `gradient` are ndarrays of shape dims + element shape.

    Arrays of structs are object arrays of dicts. Cells that share an ndarray, or views of one, alias. A cell
    without gradient reads 0 there and drops what is written. `indices` holds, for an indexed array, an integer
    array or None per dimension.
    """

    primal: Memory
    gradient: Memory | None
    dtype: Type
    indices: tuple[Memory | None, ...] = ()

    @classmethod
    def null(cls, type: Any) -> ArrayCell:
        """A null array: no elements, no gradient."""
        element = _element_shape(type.dtype)
        return cls(np.empty((0,) * type.ndim + element, dtype=storage_dtype(type.dtype)), None, type.dtype)

    @property
    def ndim(self) -> int:
        return int(self.primal.ndim) - len(_element_shape(self.dtype))

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each dimension, that of its index list where there is one."""
        extents = [int(extent) for extent in self.primal.shape[: self.ndim]]
        for dimension, index in enumerate(self.indices):
            if index is not None:
                extents[dimension] = len(index)
        return tuple(extents)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __bool__(self) -> bool:
        """Tell whether the array is not null."""
        return self.size > 0

    def __len__(self) -> int:
        return self.shape[0]

    def locate(self, indices: Sequence[Any]) -> tuple[int, ...]:
        """Check leading indices and follow index lists; IndexError if one is out of range."""
        located = []
        shape = self.shape
        for dimension, index in enumerate(indices):
            if not 0 <= index < shape[dimension]:
                raise IndexError(
                    f"index {int(index)} is out of range for dimension {dimension} of an array of shape {shape}"
                )
            table = self.indices[dimension] if self.indices else None
            located.append(int(index if table is None else table[int(index)]))
        return tuple(located)

    def view(self, indices: Sequence[Any]) -> ArrayCell:
        """Give the array of lower rank that starts at the leading indices; it shares the memory."""
        at = self.locate(indices)
        gradient = None if self.gradient is None else self.gradient[at]
        return replace(self, primal=self.primal[at], gradient=gradient, indices=self.indices[len(at) :])

    def along(self, axis: int, where: Sequence[int], step: int) -> ArrayCell:
        """Leave out an axis at an index (`where` has one number), or keep a slice of it (start and extent)."""
        part: Any = where[0]
        if len(where) == 1 and not 0 <= part < self.shape[axis]:
            raise IndexError(f"index {part} is out of range for dimension {axis} of an array of shape {self.shape}")
        if self.indices:
            return self._along_indexed(axis, where, step)
        if len(where) == 2:
            start, extent = where
            stop = start + extent * step
            part = slice(start, stop if stop >= 0 else None, step) if extent > 0 else slice(0, 0)
        key = (slice(None),) * axis + (part,)
        gradient = None if self.gradient is None else self.gradient[key]
        return replace(self, primal=self.primal[key], gradient=gradient)

    def _along_indexed(self, axis: int, where: Sequence[int], step: int) -> ArrayCell:
        before, table, after = self.indices[:axis], self.indices[axis], self.indices[axis + 1 :]
        whole = replace(self, indices=())
        if len(where) == 1:
            at = where[0] if table is None else int(table[where[0]])
            return replace(whole.along(axis, [at], step), indices=before + after)
        if table is None:
            return replace(whole.along(axis, where, step), indices=self.indices)
        return replace(self, indices=(*before, table[where[0] : where[0] + max(where[1], 0)], *after))


def record_size(type: Type) -> int:
    """Bytes that a recorded value takes: its size rounded up so that the next one is aligned."""
    return -(-size_of(type) // 8) * 8


@dataclass
class Records:
    """What a taped launch keeps: values by thread and offset, and a stream with each thread's start."""

    fixed: dict[tuple[tuple[int, ...], int], Any] = field(default_factory=dict)
    stream: dict[int, Any] = field(default_factory=dict)
    starts: dict[tuple[int, ...], int] = field(default_factory=dict)
    end: int = 0


def component_index(step: int | str, aggregate: Any) -> Any:
    """Turn a step into an aggregate into a key of its dict or ndarray; "p" and "q" are parts of a transform."""
    if isinstance(aggregate, Mapping):
        return step
    if isinstance(step, str):
        return slice(0, 3) if step == "p" else slice(3, 7)
    if not 0 <= step < len(aggregate):
        raise IndexError(f"component {int(step)} is out of range for a value of shape {aggregate.shape}")
    return int(step)


def extract(aggregate: Any, path: Sequence[int | str]) -> Any:
    """Give the component that `path`, with its dynamic steps filled in, leads to, as a value of its own."""
    for step in path:
        aggregate = aggregate[component_index(step, aggregate)]
    return aggregate.copy() if isinstance(aggregate, (np.ndarray, dict)) else aggregate


def insert(aggregate: Any, part: Any, path: Sequence[int | str]) -> Any:
    """Give a copy of the aggregate with one component replaced; without a path, the new value itself."""
    if not path:
        return part
    key = component_index(path[0], aggregate)
    result = aggregate.copy()
    result[key] = insert(aggregate[key], part, path[1:])
    return result


def storage_dtype(dtype: Type) -> Any:
    """Give the NumPy dtype that arrays of `dtype` are stored in; structs are dicts."""
    if is_scalar(dtype):
        return dtype.numeric
    return dtype.scalar.numeric if is_tensor(dtype) else np.dtype(object)


def _element_shape(dtype: Type) -> tuple[int, ...]:
    return tuple(dtype.shape) if is_tensor(dtype) else ()


def as_argument(value: Any, type: Type) -> Any:
    """Turn a host value into an interpreter value, except that floats stay as they are.

    Arrays may be `ArrayCell`s, ndarrays (without gradient) or None; structs dicts or anything with attributes.
    """
    if is_array(type):
        if value is None:
            return ArrayCell.null(type)
        return value if isinstance(value, ArrayCell) else ArrayCell(np.asarray(value), None, type.dtype)
    if is_scalar(type):
        raw = getattr(value, "value", value)
        return type.numeric.type(type.convert(raw.item() if isinstance(raw, np.generic) else raw))
    if is_tensor(type):
        return np.array(value, dtype=type.scalar.numeric).reshape(type.shape)
    return {
        name: as_argument(value[name] if isinstance(value, Mapping) else getattr(value, name), field)
        for name, field in type.fields.items()
    }


__all__ = ["ArrayCell", "as_argument", "component_index", "extract", "insert", "storage_dtype"]
