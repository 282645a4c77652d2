"""Arrays that a launch makes when it needs them."""

from __future__ import annotations

from collections.abc import Callable

from warp._src.array.array import array


class ArrayDescriptor:
    """A foreign tensor, checked and ready to be an argument of a kernel; cheaper to make than an array."""

    __slots__ = ("_array", "_make")

    def __init__(self, make: Callable[[], array]) -> None:
        self._make = make
        self._array: array | None = None

    def as_array(self) -> array:
        """Return the array, the same one every time."""
        if self._array is None:
            self._array = self._make()
        return self._array
