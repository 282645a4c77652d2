"""How the elements of an array lie in memory."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from warp._src.array.elements import contiguous_strides
from warp._src.array.memory import reach


class Geometry(NamedTuple):
    """How elements lie in memory; all counts are of bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    """Number of elements."""
    is_contiguous: bool
    low: int
    """Where the elements begin, from the first one on."""
    high: int
    """Where they end."""


@lru_cache(maxsize=1024)
def geometry_of(shape: tuple[int, ...], strides: tuple[int, ...] | None, element_size: int) -> Geometry:
    """Return the geometry of elements; without strides they are row-major without gaps."""
    natural, size = contiguous_strides(shape, element_size), math.prod(shape)
    is_contiguous = (
        strides is None
        or strides == natural
        or not size
        or all(extent == 1 or a == b for extent, a, b in zip(shape, strides, natural, strict=True))
    )
    if is_contiguous or strides is None:
        return Geometry(shape, natural, size, True, 0, size * element_size)
    return Geometry(shape, strides, size, False, *reach(shape, strides, element_size))
