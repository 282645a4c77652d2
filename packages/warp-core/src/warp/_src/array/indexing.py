"""Host-side indices: checked, and applied the same way to values and gradients."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from warp.errors import ArgumentError


class IndexArgumentError(ArgumentError, IndexError):
    """An index is of the wrong kind or out of range."""


class Index(NamedTuple):
    """A checked index: one int or slice per dimension."""

    key: tuple[int | slice, ...]
    is_element: bool
    """Whether every dimension has an int."""


def parse_index(key: Any, shape: tuple[int, ...]) -> Index:
    """Check an index against a shape. An Ellipsis stands for whole dimensions."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(part is Ellipsis for part in parts):
        parts = _expand(parts, len(shape))
    if len(parts) > len(shape):
        raise IndexArgumentError(f"index: {len(parts)} indices for an array of {len(shape)} dimensions")
    parts += [slice(None)] * (len(shape) - len(parts))
    checked = tuple(_check(part, size, axis) for axis, (part, size) in enumerate(zip(parts, shape, strict=True)))
    return Index(checked, not any(isinstance(part, slice) for part in checked))


def _expand(parts: list[Any], dimensions: int) -> list[Any]:
    places = [position for position, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise IndexArgumentError("index: only one Ellipsis may be given")
    missing = max(dimensions - len(parts) + 1, 0)
    return [*parts[: places[0]], *[slice(None)] * missing, *parts[places[0] + 1 :]]


def _check(part: Any, size: int, axis: int) -> int | slice:
    if isinstance(part, slice):
        return _check_slice(part, size)
    if isinstance(part, bool) or not hasattr(part, "__index__"):
        raise IndexArgumentError(
            f"index: dimension {axis} takes an int, a slice or a 1-D array of int32, got {type(part).__qualname__}"
        )
    position = operator.index(part)
    if not -size <= position < size:
        raise IndexArgumentError(f"index {position} is out of range for dimension {axis} of size {size}")
    return position + size if position < 0 else position


def _check_slice(part: slice, size: int) -> slice:
    try:
        start, stop, step = part.indices(size)
    except (TypeError, ValueError) as error:
        raise IndexArgumentError(f"index: {error}") from error
    if step < 0:
        # None stands for the place before the first element, which -1 would not.
        return slice(start, None if stop < 0 else stop, step) if start > stop else slice(0, 0, 1)
    return slice(start, max(start, stop), step)
