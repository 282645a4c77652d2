"""Arrays seen through lists of indices."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warp._src.array.contents import moved
from warp._src.array.elements import element_layout
from warp._src.array.events import GatherEvent
from warp._src.array.memory import Values
from warp._src.recording.recorder import current_recorder, mark_written
from warp._src.recording.storage import is_watching
from warp._src.types.arrays import IndexedArrayType
from warp._src.types.scalars import int32
from warp.errors import ArgumentError

if TYPE_CHECKING:
    from warp._src.array.array import array

_TAIL: Final = struct.Struct("=4Q4q")


class indexedarray:  # noqa: N801 - the name users know
    """An array seen through one optional list of indices per dimension.

    `indexedarray(dtype=..., ndim=...)` without data is an annotation, as is `indexedarray[dtype]`.
    """

    __slots__ = ("__weakref__", "_descriptor", "data", "device", "dtype", "indices", "ndim", "shape", "size")

    data: array
    """The array behind; values and gradient are its."""
    indices: list[array | None]
    """int32 positions per dimension, None for all."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Make an instance, or an annotation if there is no data."""
        if arguments or keywords.get("data") is not None:
            return object.__new__(cls)
        ndim = keywords.get("ndim")
        return IndexedArrayType(keywords.get("dtype", Any), 1 if ndim is None else ndim)

    def __class_getitem__(cls, dtype: Any) -> IndexedArrayType:
        return IndexedArrayType(dtype, 1)

    def __init__(self, data: Any = None, indices: Any = None, dtype: Any = Any, ndim: int | None = None) -> None:
        """See `data` through `indices`: an int32 array, or a list with an array or None per dimension."""
        if not hasattr(data, "element"):
            raise ArgumentError(f"data must be a warp.array, got {type(data).__qualname__}")
        if dtype is not Any and element_layout(dtype).dtype is not data.dtype:
            raise ArgumentError(f"dtype: expected {element_layout(dtype).dtype.name}, got {data.dtype.name}")
        if ndim is not None and ndim != data.ndim:
            raise ArgumentError(f"ndim: expected {ndim} dimensions, got {data.ndim}")
        given = list(indices) if isinstance(indices, (list, tuple)) else [indices]
        if len(given) > data.ndim:
            raise ArgumentError(f"indices: {len(given)} lists for {data.ndim} dimensions")
        given += [None] * (data.ndim - len(given))
        self.data = data
        self.indices = [_checked(data, index, axis) for axis, index in enumerate(given)]
        self.dtype = data.dtype
        self.device = data.device
        self.ndim = data.ndim
        self.shape = tuple(
            size if index is None else index.size for size, index in zip(data.shape, self.indices, strict=True)
        )
        self.size = int(np.prod(self.shape))
        self._descriptor: tuple[bytes, bytes] | None = None

    @property
    def requires_grad(self) -> bool:
        """Say whether the array behind has a gradient."""
        return self.data.requires_grad

    @property
    def grad(self) -> indexedarray | None:
        """Return the gradient of the array behind, seen through the same indices."""
        grad = self.data.grad
        if grad is None:
            return None
        seen: indexedarray = indexedarray(grad, self.indices)
        return seen

    def descriptor(self) -> bytes:
        """Return the C descriptor (`wp_indexed_array` of native/abi.h, 184 bytes)."""
        base = self.data.descriptor()
        if self._descriptor is None or self._descriptor[0] is not base:
            pointers = [0 if index is None else index.ptr for index in self.indices]
            padding = 4 - self.ndim
            tail = _TAIL.pack(*pointers, *(0,) * padding, *self.shape, *(1,) * padding)
            self._descriptor = (base, base + tail)
        return self._descriptor[1]

    def numpy(self) -> Values:
        """Return the elements as a new NumPy array."""
        picked: Values = self.data.numpy()[np.ix_(*self._axes())]
        return picked

    def contiguous(self) -> array:
        """Return a copy of the elements without gaps; differentiable, recorded on tapes."""
        made = moved(self.data, self.numpy(), self.data.element)
        made.requires_grad = self.requires_grad
        recorder = current_recorder()
        self.data.note_foreign_writes()
        if recorder is None and not is_watching():
            mark_written((made,))
            return made
        positions = np.ravel_multi_index(np.ix_(*self._axes()), self.data.shape).ravel()
        event = GatherEvent(made, self.data, positions)
        event.stamp = mark_written((made,), event.signature if is_watching(recorder) else None)
        if recorder is not None:
            recorder.record(event)
        return made

    def list(self) -> HostList:
        """Return the elements in row-major order as Python numbers, tensors or struct instances."""
        return moved(self.data, self.numpy(), self.data.element).list()

    def _axes(self) -> HostList:
        """Give the positions along each dimension, on the host."""
        pairs = zip(self.data.shape, self.indices, strict=True)
        return [np.arange(size) if index is None else index.numpy() for size, index in pairs]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __str__(self) -> str:
        return str(self.numpy())

    def __repr__(self) -> str:
        return f"indexedarray(shape={self.shape}, dtype={self.dtype.name})"


HostList = list[Any]


def is_index_array(key: Any) -> bool:
    """Say whether an index is an array of positions."""
    return hasattr(key, "descriptor")


def indexed_view(data: array, key: Any) -> indexedarray:
    """Return the array seen through the index arrays in `key`; slices in it must take whole dimensions."""
    parts = list(key) if isinstance(key, tuple) else [key]
    for axis, part in enumerate(parts):
        if isinstance(part, slice) and part == slice(None):
            parts[axis] = None
        elif not is_index_array(part):
            raise ArgumentError(f"index: dimension {axis} must be an array or ':' beside an array of positions")
    seen: indexedarray = indexedarray(data, parts)
    return seen


def _checked(data: array, index: Any, axis: int) -> array | None:
    if index is None:
        return None
    if not hasattr(index, "element"):
        try:
            values = np.ascontiguousarray(index)
        except ValueError as error:
            raise ArgumentError(f"indices: dimension {axis}: {error}") from error
        if values.dtype.kind not in "iu":
            raise ArgumentError(f"indices: dimension {axis} needs integers, got {values.dtype}")
        index = moved(data, values.astype(np.int32), element_layout(int32))
    if index.dtype is not int32 or index.ndim != 1:
        raise ArgumentError(f"indices: dimension {axis} needs a 1-D array of int32, got {index!r}")
    positions = index.numpy()
    if positions.size and not (positions.min() >= 0 and positions.max() < data.shape[axis]):
        raise ArgumentError(f"indices: dimension {axis} has positions outside 0 to {data.shape[axis] - 1}")
    kept: array = index.contiguous()
    return kept
