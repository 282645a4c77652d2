"""Arrays that a launch makes when it needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warp._src.array.array import array


class ArrayDescriptor:
    """A foreign tensor, checked and ready to be an argument of a kernel; cheaper to make than an array."""

    __slots__ = ("_arguments", "_array", "_make")

    def __init__(self, make: Callable[..., array], arguments: tuple[Any, ...]) -> None:
        self._make = make
        self._arguments = arguments
        self._array: array | None = None

    def as_array(self) -> array:
        """Return the array, the same one every time."""
        if self._array is None:
            self._array = self._make(*self._arguments)
        return self._array
