"""What a tape keeps of every operation, and which of them wrote an array last."""

from __future__ import annotations

from array import array as numbers
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from warp.recording import (
    Recordable,
    RecordedArray,
    RunTable,
    caller_location,
    is_overlapping,
    storage_of,
)


class Entry(NamedTuple):
    """One recorded operation, its arrays, and the stamps of its runs."""

    event: Recordable
    recorded: int
    """Stamp of the run that was recorded."""
    last_run: int
    """Stamp of the operation's last run, on the tape or repeated off it."""
    reads: Sequence[RecordedArray]
    writes: Sequence[RecordedArray]
    arrays: Sequence[RecordedArray]
    """Those and all others that the operation was given."""

    @property
    def text(self) -> str:
        """Return label and place of the call."""
        return f"'{self.event.label}' ({self.event.location})"


def _entry(event: Recordable, recorded: int, last_run: int) -> Entry:
    return Entry(event, recorded, last_run, event.reads, event.writes, tuple(event.arrays()))


class Operations:
    """The operations of a tape in order."""

    def __init__(self, owner: object) -> None:
        self.events: list[Recordable] = []
        self.recorded = numbers("q")
        """Stamps of the recorded runs."""
        self._runs = RunTable(owner, self.events)

    def __len__(self) -> int:
        return len(self.events)

    def append(self, event: Recordable, stamp: int) -> None:
        """Add an operation that ran at a stamp."""
        self.events.append(event)
        self.recorded.append(stamp)
        self._runs.append(stamp)

    def entry(self, index: int) -> Entry:
        """Return one operation with its stamps as they are now."""
        return _entry(self.events[index], self.recorded[index], self._runs.stamps[index])

    def entries(self) -> list[Entry]:
        """Return all operations with their stamps as they are now."""
        return list(map(_entry, self.events, self.recorded, self._runs.stamps))

    def is_run_at(self, stamp: int) -> bool:
        """Say whether a stamp is that of a recorded run."""
        place = bisect_left(self.recorded, stamp)
        if place < len(self.recorded) and self.recorded[place] == stamp:
            return True
        # Operations of several threads may not be in the order of their stamps.
        return stamp in self.recorded

    def clear(self) -> None:
        """Forget everything."""
        self.events.clear()
        del self.recorded[:]
        self._runs.clear()


class CustomEvent(Recordable):
    """A function of the user's that only runs in the backward pass."""

    is_opaque = True

    def __init__(self, backward: Callable[[], object], arrays: Iterable[RecordedArray]) -> None:
        self.label = getattr(backward, "__name__", "record_func")
        self.location = caller_location()
        self.reads = self._arrays = tuple(arrays)
        self.writes = tuple(array for array in self._arrays if array.is_written)
        self._needed = tuple(array for array in self._arrays if array.is_read)
        self._backward = backward

    def arrays(self) -> Iterable[RecordedArray]:
        """Return the arrays that the function uses."""
        return self._arrays

    def needed(self) -> Sequence[RecordedArray]:
        """Return the arrays that `mark_read` was called on."""
        return self._needed

    def run_adjoint(self) -> None:
        """Call the function."""
        self._backward()


class WriteHistory:
    """Which operations of a tape write which memory."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._indices: defaultdict[int, list[int]] = defaultdict(list)
        self._arrays: defaultdict[int, list[RecordedArray]] = defaultdict(list)
        for index, entry in enumerate(entries):
            for array in entry.writes:
                storage = id(storage_of(array))
                self._indices[storage].append(index)
                self._arrays[storage].append(array)

    def last_writer(self, array: RecordedArray, before: int) -> int | None:
        """Return the index of the last operation before index `before` that writes to the array's elements."""
        storage = id(storage_of(array))
        indices = self._indices.get(storage)
        if indices is None:
            return None
        arrays = self._arrays[storage]
        for place in range(bisect_left(indices, before) - 1, -1, -1):
            if is_overlapping(arrays[place], array):
                return indices[place]
        return None

    def is_replaced(self, array: RecordedArray, after: int) -> bool:
        """Say whether a single operation after index `after` writes to all of the array."""
        storage = id(storage_of(array))
        indices = self._indices.get(storage, [])
        return is_covered(array, self._arrays[storage][bisect_left(indices, after + 1) :])


def is_covered(array: RecordedArray, others: Iterable[RecordedArray]) -> bool:
    """Say whether one of other arrays has all elements of an array."""
    low, high = array.bounds
    layout = array.layout()
    return any(
        other.layout() == layout or (other.is_contiguous and other.bounds[0] <= low and high <= other.bounds[1])
        for other in others
    )
