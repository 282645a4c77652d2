"""Arrays that belong to one work item: values of a fixed shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from warp._src.types.scalars import is_scalar
from warp._src.types.signature import is_array, type_name
from warp._src.types.struct_type import StructType
from warp._src.types.vectors import vector
from warp.errors import KernelTypeError

__all__ = ["LocalArrayType", "leaf_key", "local_array"]


class LocalArrayType(StructType):
    """An array of known shape as a record: a vector for the numbers of each field of its elements."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Lay out an array; KernelTypeError for elements that hold arrays, and for an empty shape."""
        name = f"local array(shape={shape}, dtype={type_name(dtype)})"
        count = math.prod(shape)
        if not shape or count < 1:
            raise KernelTypeError(f"a local array needs at least one element, got shape {shape}")
        leaves = _leaves(dtype, ())
        self.vectors: dict[str, Any] = {leaf_key(path): vector(count * size, scalar) for path, scalar, size in leaves}
        super().__init__(name, self.vectors, key="local_array")
        self.shape = shape
        self.ndim = len(shape)
        self.dtype = dtype


@lru_cache(maxsize=4096)
def local_array(shape: tuple[int, ...], dtype: Any) -> LocalArrayType:
    """Give the type of local arrays of a shape and element type; there is one for each."""
    return LocalArrayType(shape, dtype)


def leaf_key(path: tuple[str, ...]) -> str:
    """Name the vector that holds what a path of struct fields leads to in every element."""
    return ".".join(path) or "values"


def _leaves(dtype: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    """Give path, scalar type and number of scalars of each part of an element that is no struct."""
    if isinstance(dtype, StructType):
        for field, kind in dtype.fields.items():
            yield from _leaves(kind, (*path, field))
    elif is_array(dtype):
        raise KernelTypeError(f"a local array cannot hold arrays, as field '{'.'.join(path)}' of its elements does")
    else:
        yield (path, dtype, 1) if is_scalar(dtype) else (path, dtype.scalar, dtype.length)
