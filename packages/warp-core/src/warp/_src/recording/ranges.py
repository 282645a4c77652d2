"""Which bytes were written last by what: stamps per byte range, and the overlap of strided layouts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, NamedTuple

import numpy as np

_OVERLAP_EFFORT = 10_000


class Layout(NamedTuple):
    """The bytes that a strided view covers: address, extents, byte strides and bytes of one element."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_size: int


class WriteLog:
    """The stamps of the last writes to the bytes of one allocation."""

    __slots__ = ("_ends", "_stamps", "_starts", "_strided")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._stamps: list[int] = []
        self._strided: dict[Layout, int] = {}

    def write(self, low: int, high: int, stamp: int) -> None:
        """Note that the bytes [low, high) were written; a write of everything known so far takes constant time."""
        starts, ends = self._starts, self._ends
        if self._strided:
            self._forget_strided(low, high)
        if not starts or (low <= starts[0] and high >= ends[-1]):
            starts[:], ends[:], self._stamps[:] = (low,), (high,), (stamp,)
            return
        first = bisect_right(ends, low)
        last = bisect_left(starts, high)
        pieces = [(low, high, stamp)]
        if first < last:
            if starts[first] < low:
                pieces.insert(0, (starts[first], low, self._stamps[first]))
            if ends[last - 1] > high:
                pieces.append((high, ends[last - 1], self._stamps[last - 1]))
        starts[first:last] = [piece[0] for piece in pieces]
        ends[first:last] = [piece[1] for piece in pieces]
        self._stamps[first:last] = [piece[2] for piece in pieces]

    def write_strided(self, layout: Layout, stamp: int) -> None:
        """Note that the elements of a view with gaps were written; the bytes between them keep their stamps."""
        self._strided[layout] = stamp

    def stamps(self, low: int, high: int, layout: Layout | None = None) -> list[int]:
        """Return the stamps of the last writes to [low, high), or to the elements of `layout` within it."""
        first = bisect_right(self._ends, low)
        last = bisect_left(self._starts, high)
        if layout is None:
            found = self._stamps[first:last]
        else:
            found = [
                self._stamps[index]
                for index in range(first, last)
                if is_touching(layout, bytes_layout(self._starts[index], self._ends[index]))
            ]
        if self._strided and layout in self._strided:
            latest = self._strided[layout]
            found = [stamp for stamp in found if stamp > latest]
        if self._strided:
            wanted = layout or bytes_layout(low, high)
            found += [stamp for written, stamp in self._strided.items() if is_touching(written, wanted)]
        return found

    def absorb(self, other: WriteLog) -> None:
        """Take over the writes noted in another log, in the order in which they happened."""
        for start, end, stamp in sorted(zip(other._starts, other._ends, other._stamps, strict=True)):
            self.write(start, end, stamp)
        self._strided.update(other._strided)

    def copy(self) -> WriteLog:
        """Return a log with the same stamps."""
        made = WriteLog()
        made._starts, made._ends = self._starts.copy(), self._ends.copy()
        made._stamps, made._strided = self._stamps.copy(), self._strided.copy()
        return made

    def _forget_strided(self, low: int, high: int) -> None:
        covered = [layout for layout in self._strided if low <= layout.pointer and _end(layout) <= high]
        for layout in covered:
            del self._strided[layout]


def bytes_layout(low: int, high: int) -> Layout:
    """Return the layout of the bytes [low, high)."""
    return Layout(low, (high - low,), (1,), 1)


def is_touching(first: Layout, second: Layout) -> bool:
    """Say whether two views have a byte in common; True where the exact answer would take too long."""
    if first.pointer >= _end(second) or second.pointer >= _end(first):
        return False
    try:
        return np.shares_memory(_as_bytes(first), _as_bytes(second), max_work=_OVERLAP_EFFORT)  # type: ignore[arg-type]  # the stubs of NumPy know two values
    except np.exceptions.TooHardError:
        return True


def _end(layout: Layout) -> int:
    extent = sum((size - 1) * stride for size, stride in zip(layout.shape, layout.strides, strict=True))
    return layout.pointer + extent + layout.element_size


class _Address:
    """An address to be looked at, never read."""

    def __init__(self, layout: Layout) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (layout.pointer, True),
            "shape": (*layout.shape, layout.element_size),
            "strides": (*layout.strides, 1),
            "typestr": "|u1",
        }


def _as_bytes(layout: Layout) -> np.ndarray[Any, Any]:
    return np.asarray(_Address(layout))
