"""Values that were overwritten, kept beside the memory that they were in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warp.recording import RecordedArray


class SavedValues:
    """A copy of a part of memory, which can change places with what is there now."""

    __slots__ = ("_place", "_values")

    def __init__(self, place: RecordedArray) -> None:
        self._place = place
        self._values = place.contents.copy()

    @property
    def nbytes(self) -> int:
        """Return the size of the copy."""
        return int(self._values.capacity)

    def swap(self) -> None:
        """Exchange the copy and the contents of the memory."""
        present = self._place.contents.copy()
        self._place.contents.replace(self._values)
        self._values = present


class UndoLog:
    """What operations overwrote, by their position on the tape, so that memory can be taken back and forth."""

    def __init__(self) -> None:
        self._saved: dict[int, list[SavedValues]] = {}
        self.nbytes = 0
        """Bytes kept in all."""

    def save(self, position: int, place: RecordedArray) -> None:
        """Copy a part of memory that the operation at a position is about to overwrite."""
        saved = SavedValues(place)
        self.nbytes += saved.nbytes
        self._saved.setdefault(position, []).append(saved)

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
