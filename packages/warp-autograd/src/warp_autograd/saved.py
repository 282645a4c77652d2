"""Values that were overwritten, kept beside the memory that they were in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from warp.recording import RecordedArray

_WORTH_COMPARING = 1024
_SAMPLES = 64


class SavedValues:
    """A copy of a part of memory, or of those of its words that changed, which can change places with the memory."""

    __slots__ = ("_place", "_values", "_where")

    def __init__(self, place: np.ndarray[Any, Any]) -> None:
        self._place = place
        self._values = place.copy()
        self._where: Any = ...

    @property
    def nbytes(self) -> int:
        """Return the size of the copy."""
        return int(self._values.nbytes) + (0 if self._where is ... else int(self._where.nbytes))

    def changes(self) -> Changes | None:
        """Compare the copy with the memory; None if most of it differs, or if comparing does not pay."""
        place, values = self._place, self._values
        if place.nbytes < _WORTH_COMPARING or not place.flags.c_contiguous or place.dtype != np.uint8:
            return None
        if place.nbytes % 8 == 0:
            place, values = place.view(np.uint64), values.view(np.uint64)
        step = max(1, place.size // _SAMPLES)
        if (place[::step] != values[::step]).mean() > 0.25:
            return None
        where = np.flatnonzero(place != values)
        if where.nbytes + where.size * place.itemsize > place.nbytes // 2:
            return None
        return Changes(place, where, values[where])

    def reduce(self, changes: Changes) -> None:
        """Keep only what has changed."""
        self._place, self._where, self._values = changes

    def swap(self) -> None:
        """Exchange the copy and the contents of the memory."""
        present = self._place[self._where].copy()
        self._place[self._where] = self._values
        self._values = present


class Changes(NamedTuple):
    """The words of a part of memory that differ from a copy: where they are, and what they were."""

    place: np.ndarray[Any, Any]
    where: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]


class UndoLog:
    """What operations overwrote, by their position on the tape, so that memory can be taken back and forth."""

    def __init__(self) -> None:
        self._saved: dict[int, list[SavedValues]] = {}
        self.nbytes = 0
        """Bytes kept in all."""

    def save(self, position: int, place: np.ndarray[Any, Any]) -> SavedValues:
        """Copy a part of memory that the operation at a position is about to overwrite."""
        saved = SavedValues(place)
        self.nbytes += saved.nbytes
        self._saved.setdefault(position, []).append(saved)
        return saved

    def reduce(self, copies: Sequence[SavedValues]) -> bool:
        """Keep of copies only what the operation has changed, if that is little; say whether it was done."""
        changes = []
        for saved in copies:
            changed = saved.changes()
            if changed is None:
                return False
            changes.append(changed)
        for saved, changed in zip(copies, changes, strict=True):
            self.nbytes -= saved.nbytes
            saved.reduce(changed)
            self.nbytes += saved.nbytes
        return True

    def clear(self) -> None:
        """Give up all copies."""
        self._saved.clear()
        self.nbytes = 0

    @contextmanager
    def rewinding(self) -> Iterator[Rewind]:
        """Take memory back step by step inside a `with` block; afterwards it is as it was before."""
        rewind = Rewind(self._saved)
        try:
            yield rewind
        finally:
            rewind.undo()


class Rewind:
    """Takes memory back to what it was before operations of a tape ran, from the last one on."""

    def __init__(self, saved: dict[int, list[SavedValues]]) -> None:
        self._saved = saved
        self._ahead = sorted(saved)
        self._swapped: list[SavedValues] = []

    def before(self, position: int) -> None:
        """Go back to the contents that memory had before the operation at a position ran."""
        while self._ahead and self._ahead[-1] >= position:
            for saved in reversed(self._saved[self._ahead.pop()]):
                # Noted first: an interruption must not leave the exchange half done and forgotten.
                self._swapped.append(saved)
                saved.swap()

    def undo(self) -> None:
        """Put everything back."""
        while self._swapped:
            self._swapped.pop().swap()


def bytes_of(array: RecordedArray, low: int, high: int) -> np.ndarray[Any, Any]:
    """Return the memory at the addresses [low, high) of an array without gaps."""
    whole: np.ndarray[Any, Any] = array.numpy().reshape(-1).view(np.uint8)
    return whole[low - array.bounds[0] : high - array.bounds[0]]
