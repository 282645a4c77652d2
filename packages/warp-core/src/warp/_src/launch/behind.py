"""The arrays that kernels reach through arrays of structs: only descriptors in memory say which they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from warp._src.array.array import array
from warp._src.array.core import DESCRIPTOR_SIZE
from warp._src.array.elements import element_layout
from warp._src.launch.memory import arrays_in
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.struct_type import StructType


def arrays_behind(args: Iterable[Any]) -> list[Any]:
    """Give the arrays that elements of arrays of structs among arguments refer to now, each once."""
    found: dict[tuple[Any, bytes], Any] = {}
    waiting = [holder for arg in args for holder in arrays_in(arg)]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder.dtype, StructType) and holder.size:
            for dtype, descriptor in _descriptors(holder):
                if (dtype, descriptor) not in found and any(descriptor[:8]):
                    found[dtype, descriptor] = _array_of(holder, dtype, descriptor)
                    waiting.append(found[dtype, descriptor])
    return list(found.values())


def _descriptors(holder: array) -> Iterator[tuple[Any, bytes]]:
    """Yield element types and descriptors of the arrays in the elements of an array of structs."""
    paths = list(_array_fields(holder.dtype))
    for element in holder.numpy().reshape(-1) if paths else ():
        for path, dtype in paths:
            value = element
            for name in path:
                value = value[name]
            yield dtype, bytes(value)[:DESCRIPTOR_SIZE]


def _array_fields(struct: StructType) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, type in struct.fields.items():
        if isinstance(type, StructType):
            for path, dtype in _array_fields(type):
                yield (name, *path), dtype
        elif isinstance(type, (ArrayType, IndexedArrayType)):
            yield (name,), type.dtype


def _array_of(holder: array, dtype: Any, descriptor: bytes) -> Any:
    """Give the array that the holder was made of, or one like it."""
    kept: Sequence[Any] = holder.owner if isinstance(holder.owner, list) else ()
    for candidate in kept:
        candidate = getattr(candidate, "data", candidate)
        if isinstance(candidate, array) and candidate.dtype is dtype and candidate.descriptor() == descriptor:
            return candidate
    return array.described(descriptor, element_layout(dtype), holder.device, holder)


__all__ = ["arrays_behind"]
