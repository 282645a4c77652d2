"""Which values earlier operations of a tape need, and copies of those that later ones overwrite.

A recorded operation may need the values that its arrays had right after it. As long as nobody overwrites them, the
memory itself keeps them, and nobody has to know what is needed. Only when an operation is about to write a range of
memory are the earlier operations with arrays there asked; if one needs values in the range, the part that is going to
be overwritten is copied, once for all of them. An operation that turns out to have changed little of it, such as one
row of a trajectory, leaves only what it has changed; the rest is still needed.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warp.errors import AutogradError
from warp.recording import (
    Layout,
    RecordedArray,
    follow,
    is_followed,
    is_touching,
    stamps_between,
    stamps_of,
    storage_of,
)
from warp_autograd.address_index import AddressIndex
from warp_autograd.entries import Operations
from warp_autograd.saved import SavedValues, UndoLog


@dataclass(eq=False, slots=True)
class Range:
    """Memory whose values operations may need: the bytes [low, high), or the elements of a view with gaps."""

    low: int
    high: int
    layout: Layout | None
    readers: list[int] = field(default_factory=list)
    """Operations that have not been asked yet."""
    needing: list[int] = field(default_factory=list)
    """Operations that need values here."""
    covered: dict[Layout, int] | None = None
    """Views with gaps that were saved here, and how many of `needing` that served."""
    is_rest: bool = False
    """Whether the range is what is left of larger ones."""

    def is_touched_by(self, array: RecordedArray) -> bool:
        """Say whether an array that lies around here has a byte in common with the range."""
        if self.layout is None and array.is_contiguous:
            return True
        if self.layout is None:
            return is_touching(array.layout(), Layout(self.low, (self.high - self.low,), (1,), 1))
        return is_touching(array.layout(), self.layout)

    def is_filled_by(self, array: RecordedArray) -> bool:
        """Say whether an array has all bytes of the range."""
        if self.layout is not None and array.layout() == self.layout:
            return True
        return array.is_contiguous and array.bounds[0] <= self.low and self.high <= array.bounds[1]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """An operation on the tape, and a range that it needs values of, which a later one overwrites."""

    reader: int
    item: Range


class Copy(NamedTuple):
    """What was copied of an array that is about to be overwritten, and the ranges that it was needed for."""

    array: RecordedArray
    items: Sequence[Range]
    parts: Sequence[SavedValues]


class _Follower:
    """Lives as long as a tape has operations."""

    __slots__ = ("__weakref__",)


class Snapshots:
    """Follows who needs which memory, and saves it before it is overwritten if `is_saving`.

    Which memory operations use is only looked up when something writes to a block of memory that one of them uses.
    """

    def __init__(self, operations: Operations, is_saving: bool, limit: int | None) -> None:
        self.undo = UndoLog()
        self._operations = operations
        self._is_saving = is_saving
        self._limit = limit
        self._index: defaultdict[str, AddressIndex[Range]] = defaultdict(AddressIndex)
        self._by_key: dict[tuple[int, int, bool] | Layout, Range] = {}
        self._carrying: set[int] = set()
        self._tracked = bytearray()
        self._saved: set[int] = set()
        self._lost: defaultdict[int, list[tuple[Range, str]]] = defaultdict(list)
        self._token = _Follower()
        self._follower = weakref.ref(self._token)

    # ------------------------------------------------------------------ while recording

    def followed(self, arrays: Sequence[RecordedArray]) -> list[RecordedArray]:
        """Return those of some arrays that are in a block of memory that an operation uses."""
        follower = self._follower
        return [array for array in arrays if is_followed(array, follower)]

    def watch(self, arrays: Iterable[RecordedArray]) -> None:
        """Follow the memory of arrays that an operation uses."""
        follower = self._follower
        for array in arrays:
            follow(array, follower)

    def note(self, surprises: Sequence[RecordedArray], copies: Sequence[Copy]) -> None:
        """Take note of what the operation that was just added to the tape has overwritten.

        `copies` come from `before_write`; `surprises` are the arrays that were written without it.
        """
        index = len(self._operations) - 1
        self._catch_up(index)
        for copy in copies:
            self._settle(copy)
        if self._is_saving:
            self._lose(surprises, index)

    def _catch_up(self, stop: int | None = None) -> None:
        """Look up which memory the operations use, as far as that has not been done yet."""
        for index in range(len(self._tracked), len(self._operations) if stop is None else stop):
            event = self._operations.events[index]
            self._look_up(index, event.reads, event.writes)

    def _look_up(self, index: int, reads: Sequence[RecordedArray], writes: Sequence[RecordedArray]) -> None:
        """Follow the arrays of an operation, if gradients can pass through it."""
        arrays = (*reads, *writes)
        carrying = self._carrying
        is_tracked = any(array.requires_grad or id(storage_of(array)) in carrying for array in arrays)
        self._tracked.append(is_tracked)
        if not is_tracked:
            return
        carrying.update(id(storage_of(array)) for array in writes)
        for array in arrays:
            low, high = array.bounds
            if low < high:
                readers = self._range(low, high, None if array.is_contiguous else array.layout(), array).readers
                if not readers or readers[-1] != index:  # not read and written both
                    readers.append(index)

    def knows(self, array: RecordedArray) -> bool:
        """Say whether an operation through which gradients can pass used memory of the array."""
        if not is_followed(array, self._follower):
            return False
        self._catch_up()
        return any(found.is_touched_by(array) for found in self._index[array.device.alias].overlapping(*array.bounds))

    def before_write(self, arrays: Iterable[RecordedArray]) -> tuple[list[Overwrite], list[Copy]]:
        """Save what earlier operations need of arrays that are about to be overwritten; return who needs it.

        Raises AutogradError if that takes more memory than allowed.
        """
        found: list[Overwrite] = []
        copies: list[Copy] = []
        for array in arrays:
            touched = self._needed_of(array)
            if touched:
                found.append(Overwrite(touched[0].needing[-1], touched[0]))
                if self._is_saving:
                    copies.append(self._save(array, touched))
        return found, copies

    def after_write(self, arrays: Iterable[RecordedArray]) -> list[Overwrite]:
        """Return who needs the former values of arrays that were overwritten without being saved."""
        found = (self._needed_of(array) for array in arrays)
        return [Overwrite(touched[0].needing[-1], touched[0]) for touched in found if touched]

    def describe(self, overwrite: Overwrite) -> str:
        """Return what messages say of who needs which array."""
        entry = self._operations.entry(overwrite.reader)
        needed = self._needed(overwrite.reader, overwrite.item)
        what = entry.event.describe(needed[0]) if needed else "array"
        return f"the {what}, which the adjoint of {entry.text} needs"

    def _save(self, array: RecordedArray, touched: Sequence[Range]) -> Copy:
        low, high = array.bounds
        spans = _merge((max(low, item.low), min(high, item.high)) for item in touched)
        places = [array.contents.bytes_between(*span) for span in spans] if array.is_contiguous else [array]
        nbytes = sum(math.prod(place.contents.shape) * place.contents.dtype.itemsize for place in places)
        self._check_limit(nbytes, array, touched[0])
        position = len(self._operations)
        parts = [self.undo.save(position, place) for place in places]
        for item in touched:
            for member in self._still_valid(item, array):
                self._saved.add(member)
        return Copy(array, touched, parts)

    def _settle(self, copy: Copy) -> None:
        """Take what was copied out of what is needed, unless only what the operation has changed is kept."""
        if not self.undo.reduce(copy.parts):
            for item in copy.items:
                if item.needing:
                    self._shrink(item, copy.array)

    def _still_valid(self, item: Range, array: RecordedArray) -> Sequence[int]:
        """Return who can use the copy and was not known to; who came before a write off the tape cannot."""
        members = self._uncovered(item, array)
        if array.is_contiguous:
            stamps = stamps_between(array, max(array.bounds[0], item.low), min(array.bounds[1], item.high))
        else:
            stamps = stamps_of(array)
        recorded = self._operations.recorded
        off_tape = [stamp for stamp in stamps if stamp > recorded[0] and not self._operations.is_run_at(stamp)]
        for member in members if off_tape else ():
            if recorded[member] < max(off_tape):
                self._lost[member].append((item, "was overwritten off the tape"))
        return () if item.is_rest else members

    def _check_limit(self, nbytes: int, array: RecordedArray, item: Range) -> None:
        if self._limit is None:
            self._limit = array.device.free_memory // 2 or array.device.total_memory // 2
        if self.undo.nbytes + nbytes > self._limit:
            what = self.describe(Overwrite(item.needing[-1], item))
            raise AutogradError(
                f"{what}, is about to be overwritten; to keep {nbytes} bytes of it besides the {self.undo.nbytes} that "
                f"this tape keeps already would exceed snapshot_limit={self._limit}. Write to another array, "
                "give launches only the slices that they use, run long simulations in "
                "warp.autograd.checkpointed_loop, or give the tape a higher limit."
            )

    # ------------------------------------------------------------------ before the backward pass

    def is_followed(self, index: int) -> bool:
        """Say whether whatever the tape overwrites of what an operation needs is either saved or known to be lost."""
        # If its memory was not looked up, nothing on the tape has overwritten it since.
        return self._is_saving and (index >= len(self._tracked) or bool(self._tracked[index]))

    def is_saved(self, index: int) -> bool:
        """Say whether values that an operation needs were overwritten and saved."""
        return index in self._saved

    def why_lost(self, index: int, array: RecordedArray) -> str | None:
        """Say why values that an operation needs of an array were overwritten without being saved."""
        for item, reason in self._lost.get(index, ()):
            if _is_in(item, array):
                return reason
        return None

    def stamps(self, index: int, array: RecordedArray) -> list[int]:
        """Return the stamps of those elements of an array that were not saved for an operation."""
        if index not in self._saved:
            return stamps_of(array)
        found: list[int] = []
        for item in self._index[array.device.alias].overlapping(*array.bounds):
            if (index in item.needing or index in item.readers) and _is_in(item, array):
                if array.is_contiguous:
                    low, high = array.bounds
                    found += stamps_between(array, max(low, item.low), min(high, item.high))
                else:
                    found += stamps_of(array)
        return found

    def clear(self) -> None:
        """Forget everything."""
        self.undo.clear()
        self._index.clear()
        self._by_key.clear()
        self._carrying.clear()
        self._tracked.clear()
        self._saved.clear()
        self._lost.clear()
        self._token = _Follower()
        self._follower = weakref.ref(self._token)

    # ------------------------------------------------------------------ ranges

    def _range(self, low: int, high: int, layout: Layout | None, like: RecordedArray, is_rest: bool = False) -> Range:
        key = (low, high, is_rest) if layout is None else layout
        found = self._by_key.get(key)
        if found is None:
            found = Range(low, high, layout, is_rest=is_rest)
            self._by_key[key] = found
            self._index[like.device.alias].add(low, high, found)
        return found

    def _needed_of(self, array: RecordedArray) -> list[Range]:
        """Return the ranges with bytes of an array that operations need, which are asked now."""
        if not is_followed(array, self._follower):
            return []
        self._catch_up()
        return [item for item in self._touched(array) if self._uncovered(item, array)]

    def _touched(self, array: RecordedArray) -> Iterator[Range]:
        low, high = array.bounds
        for item in self._index[array.device.alias].overlapping(low, high) if low < high else ():
            if (item.readers or item.needing) and item.is_touched_by(array):
                item.needing += [index for index in item.readers if self._needed(index, item)]
                item.readers.clear()
                yield item

    def _needed(self, index: int, item: Range) -> list[RecordedArray]:
        try:
            needed = self._operations.events[index].needed()
        except AutogradError:
            return []  # a backward pass through the operation is refused anyway
        return [array for array in needed if _is_in(item, array)]

    @staticmethod
    def _uncovered(item: Range, array: RecordedArray) -> list[int]:
        served = item.covered.get(array.layout(), 0) if item.covered else 0
        return item.needing[served:]

    def _shrink(self, item: Range, array: RecordedArray) -> None:
        """Take the bytes of an array out of a range."""
        if item.is_filled_by(array):
            if item.is_rest:
                self._drop(item, array)
            item.needing = []
            item.covered = None
            return
        if item.layout is not None or not array.is_contiguous:
            item.covered = {**(item.covered or {}), array.layout(): len(item.needing)}
            return
        members, item.needing = item.needing, []
        if item.is_rest:
            self._drop(item, array)
        for low, high in ((item.low, array.bounds[0]), (array.bounds[1], item.high)):
            if low < high:
                self._range(low, high, None, array, is_rest=True).needing += members

    def _drop(self, item: Range, like: RecordedArray) -> None:
        self._index[like.device.alias].remove(item.low, item.high, item)
        del self._by_key[item.low, item.high, True]

    def _lose(self, arrays: Iterable[RecordedArray], writer: int) -> None:
        """Give up what an operation has overwritten without saying so before."""
        for array in arrays:
            low, high = array.bounds
            for item in self._index[array.device.alias].overlapping(low, high) if low < high else ():
                members = [*self._uncovered(item, array), *item.readers]
                if not members or not item.is_touched_by(array):
                    continue
                reason = f"was overwritten later on the tape by {self._operations.entry(writer).text}"
                for member in members:
                    self._lost[member].append((Range(item.low, item.high, item.layout), reason))
                item.needing += item.readers
                item.readers.clear()
                self._shrink(item, array)


def _is_in(item: Range, array: RecordedArray) -> bool:
    low, high = array.bounds
    return low < item.high and item.low < high and item.is_touched_by(array)


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of ranges as disjoint ones."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
