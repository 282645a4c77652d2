"""What a tape keeps of every operation, and which of them wrote an array last."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from warp.recording import (
    OperationRuns,
    Recordable,
    RecordedArray,
    caller_location,
    is_overlapping,
    storage_of,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded operation and the stamps of its runs."""

    event: Recordable
    recorded: int
    """Stamp of the run that was recorded."""
    runs: OperationRuns | None
    position: int

    @property
    def last_run(self) -> int:
        """Return the stamp of the operation's last run, on the tape or repeated off it."""
        return self.recorded if self.runs is None else self.runs.stamps[self.position]

    @property
    def text(self) -> str:
        """Return label and place of the call."""
        return f"'{self.event.label}' ({self.event.location})"


class CustomEvent(Recordable):
    """A function of the user's that only runs in the backward pass."""

    def __init__(self, backward: Callable[[], object], arrays: Iterable[RecordedArray]) -> None:
        self.label = getattr(backward, "__name__", "record_func")
        self.location = caller_location()
        self.reads = self._arrays = tuple(arrays)
        self.writes = tuple(array for array in self._arrays if array.is_written)
        self._backward = backward

    def arrays(self) -> Iterable[RecordedArray]:
        """Return the arrays that the function uses."""
        return self._arrays

    def run_adjoint(self) -> None:
        """Call the function."""
        self._backward()


class WriteHistory:
    """Which operations of a tape write which memory."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._indices: defaultdict[int, list[int]] = defaultdict(list)
        self._arrays: defaultdict[int, list[RecordedArray]] = defaultdict(list)
        for index, entry in enumerate(entries):
            for array in entry.event.writes:
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
