"""The storage registry: one write log per allocation, shared by every wrapper of its memory."""

from __future__ import annotations

import weakref
from array import array
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from threading import RLock
from typing import Any, Final, Protocol, runtime_checkable

from warp._src.recording.ranges import Layout, WriteLog, is_touching


class ArrayContents(Protocol):
    """What an array holds, on the host or on a device; reading and writing it leaves no trace on tapes."""

    @property
    def dtype(self) -> Any: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def copy(self) -> Any: ...

    def replace(self, values: Any) -> None: ...

    def clear(self) -> None: ...

    def add(self, values: Any) -> None: ...

    def filled(self, value: float) -> Any: ...

    def may_be_nonzero(self) -> bool: ...

    def bytes_between(self, low: int, high: int) -> Any: ...


@runtime_checkable
class RecordedArray(Protocol):
    """What the recording layer needs of an array; `warp.array` has it.

    `bounds` are the addresses of the first byte and past the last one, `allocation()` those of the memory block that
    the array lies in, and `layout()` describes its elements if they have gaps between them. It `is_differentiable` if
    its elements are or hold floating-point numbers.
    """

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    ptr: int
    device: Any
    bounds: tuple[int, int]
    is_contiguous: bool
    is_differentiable: bool
    storage: Storage | None
    is_read: bool
    is_written: bool

    @property
    def is_readonly(self) -> bool: ...

    @property
    def requires_grad(self) -> bool: ...

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None: ...

    @property
    def retain_grad(self) -> bool: ...

    @property
    def grad(self) -> Any: ...

    @grad.setter
    def grad(self, value: Any) -> None: ...

    @property
    def has_given_grad(self) -> bool: ...

    def allocation(self) -> tuple[int, int]: ...

    def layout(self) -> Layout: ...

    def root(self) -> RecordedArray: ...

    def note_write(self) -> None: ...

    def watch(self) -> None: ...

    def note_foreign_writes(self) -> None: ...

    def numpy(self) -> Any: ...

    @property
    def contents(self) -> ArrayContents: ...


class Storage:
    """One block of memory. Wrappers of the same memory share it; it lives as long as one of them."""

    __slots__ = ("__weakref__", "_forward", "begin", "device", "end", "followers", "log")

    def __init__(self, device: str, begin: int, end: int) -> None:
        self.device = device
        self.begin = begin
        self.end = end
        self.log = WriteLog()
        self.followers: tuple[Follower, ...] = ()
        """The recorders that have operations on this memory, and some that had."""
        self._forward: Storage | None = None

    def resolve(self) -> Storage:
        """Return the storage that took this one over, or itself."""
        found = self
        while found._forward is not None:
            found = found._forward
        return found

    def bump(self, low: int, high: int) -> int:
        """Note a write to the bytes [low, high) and return its stamp; stamps grow with time, process-wide."""
        stamp = next_stamp()
        with _lock:
            self.resolve().log.write(low, high, stamp)
        return stamp

    def version(self, low: int, high: int) -> int:
        """Return the stamp of the last write to the bytes [low, high), 0 if there was none."""
        return max(self.resolve().log.stamps(low, high), default=0)

    def absorb(self, other: Storage) -> None:
        """Take over another storage of the same block of memory."""
        self.begin = min(self.begin, other.begin)
        self.end = max(self.end, other.end)
        self.log.absorb(other.log)
        for follower in other.followers:
            self.note_follower(follower)
        other._forward = self

    def note_follower(self, follower: Follower) -> None:
        """Remember that a recorder has operations on this memory."""
        living = [other for other in self.followers if other is not follower and other() is not None]
        self.followers = (*living, follower)


Follower = Callable[[], object]
"""A weak reference to what lives as long as a recorder has operations."""


class _StorageReference(weakref.ref[Storage]):
    __slots__ = ("key",)
    key: tuple[str, int]


class StorageRegistry:
    """Find the storage of a range of addresses. Holds no storage alive."""

    def __init__(self) -> None:
        self._begins: dict[str, list[int]] = {}
        self._references: dict[tuple[str, int], _StorageReference] = {}
        # A collection may run anywhere: the callbacks only take notes, `find` acts on them.
        self._dead: deque[_StorageReference] = deque()

    def find(self, device: str, begin: int, end: int) -> Storage:
        """Return the storage of the addresses [begin, end) on a device, a new one if the range is not known."""
        if begin >= end:
            return Storage(device, begin, end)
        with _lock:
            while self._dead:
                self._forget(self._dead.popleft())
            overlapping = self._overlapping(device, begin, end)
            if len(overlapping) == 1 and overlapping[0].begin <= begin and overlapping[0].end >= end:
                return overlapping[0]
            storage = Storage(device, begin, end)
            for other in overlapping:
                self._forget(self._references[device, other.begin])
                storage.absorb(other)
            self._add(storage)
            return storage

    def knows(self, device: str, begin: int, end: int) -> bool:
        """Tell whether a storage has one of the addresses [begin, end)."""
        return device in self._begins and bool(self._overlapping(device, begin, end))

    def _overlapping(self, device: str, begin: int, end: int) -> list[Storage]:
        begins = self._begins.setdefault(device, [])
        found: list[Storage] = []
        index = bisect_left(begins, end) - 1
        while index >= 0:
            storage = self._references[device, begins[index]]()
            if storage is not None:
                if storage.end <= begin:
                    break
                found.append(storage)
            index -= 1
        return found

    def _add(self, storage: Storage) -> None:
        key = (storage.device, storage.begin)
        if key not in self._references:
            insort(self._begins[storage.device], storage.begin)
        reference = _StorageReference(storage, self._dead.append)
        reference.key = key
        self._references[key] = reference

    def _forget(self, reference: _StorageReference) -> None:
        if self._references.get(reference.key) is not reference:
            return
        del self._references[reference.key]
        device, begin = reference.key
        begins = self._begins[device]
        del begins[bisect_left(begins, begin)]


_lock: Final = RLock()
_stamps: Final = count(2, 2)
_registry: Final = StorageRegistry()


def next_stamp() -> int:
    """Return a number larger than every one returned before."""
    return next(_stamps)


def next_foreign_stamp() -> int:
    """Return such a number for a write by another framework; `is_foreign` knows it, for those are the odd ones."""
    return next(_stamps) + 1


def is_foreign(stamp: int) -> bool:
    """Tell whether a stamp is that of a write by another framework."""
    return stamp % 2 == 1


def storage_of(array: RecordedArray) -> Storage:
    """Return the storage that an array lies in; versions are kept while the array, or one like it, has it."""
    storage = array.storage
    if storage is None:
        # The root holds it too: what was written through a short-lived view must not be forgotten with it.
        root = array.root()
        if root.storage is None:
            root.storage = _registry.find(array.device.alias, *array.allocation())
        storage = array.storage = root.storage
    return storage if storage._forward is None else storage.resolve()


def _has_storage(array: RecordedArray) -> bool:
    return array.storage is not None or _registry.knows(array.device.alias, *array.bounds)


def follow(array: RecordedArray, follower: Follower) -> None:
    """Note that a recorder has an operation on an array, whose writes are remembered from now on."""
    storage = storage_of(array)
    if follower not in storage.followers:
        with _lock:
            storage.note_follower(follower)
    array.watch()


def is_followed(array: RecordedArray, follower: Follower) -> bool:
    """Tell whether a recorder has operations on memory of an array's block."""
    return follower in storage_of(array).followers


def stamps_of(array: RecordedArray) -> list[int]:
    """Return the stamps of the last writes to an array's elements, in no order; none if it was never written."""
    low, high = array.bounds
    with _lock:
        return storage_of(array).log.stamps(low, high, None if array.is_contiguous else array.layout())


def stamps_between(array: RecordedArray, low: int, high: int) -> list[int]:
    """Return the stamps of the last writes to the addresses [low, high) of the block of memory of an array."""
    with _lock:
        return storage_of(array).log.stamps(low, high)


def is_overlapping(first: RecordedArray, second: RecordedArray) -> bool:
    """Say whether two arrays have an element's byte in common."""
    if first.bounds[0] >= second.bounds[1] or second.bounds[0] >= first.bounds[1] or first.device != second.device:
        return False
    if first.is_contiguous and second.is_contiguous:
        return True
    return is_touching(first.layout(), second.layout())


def note_writes(arrays: Iterable[RecordedArray], stamp: int, is_recorded: bool = True) -> None:
    """Give the elements of `arrays` the stamp of the operation that wrote them.

    If the operation will not be recorded, only in memory that somebody asked the storage of: nobody knows of what was
    there before.
    """
    with _lock:
        for array in arrays:
            low, high = array.bounds
            if low < high and (is_recorded or _has_storage(array)):
                log = storage_of(array).log
                if array.is_contiguous:
                    log.write(low, high, stamp)
                else:
                    log.write_strided(array.layout(), stamp)


class Signed(Protocol):
    """What can be recognised when it runs again: equal signatures are runs of the same operation, None is unknown."""

    @property
    def signature(self) -> Hashable: ...


class RunTable:
    """When the operations of a recorder were run last, on the recorder or again off it.

    `events` are the operations, which the recorder appends to. One recorded n times with one signature is taken to be
    repeated in the order of the recording. Of a signature only the hash is kept, from when the first run off the
    recorder is noted: most tapes never see one.
    """

    __slots__ = ("__weakref__", "_cursors", "_events", "_places", "_signed", "owner", "stamps")

    def __init__(self, owner: object, events: Sequence[Signed]) -> None:
        self.owner = weakref.ref(owner)
        self.stamps = array("q")
        """The stamp of every operation's last run."""
        self._events = events
        self._signed = 0
        self._places: dict[int, int | list[int]] = {}
        self._cursors: dict[int, int] = {}

    def append(self, stamp: int) -> None:
        """Note the recorded run of the operation that is next in `events`."""
        if not self.stamps:
            _watching[id(self)] = weakref.ref(self, partial(_stop_watching, id(self)))
        self.stamps.append(stamp)

    def repeat(self, key: int, stamp: int) -> None:
        """Note a run off the recorder of the operations whose signature has this hash."""
        with _lock:
            self._sign()
            place = self._places.get(key)
            if isinstance(place, list):
                cursor = self._cursors.get(key, 0)
                self._cursors[key] = (cursor + 1) % len(place)
                place = place[cursor]
            if place is not None:
                self.stamps[place] = stamp

    def _sign(self) -> None:
        for place in range(self._signed, len(self.stamps)):
            signature = self._events[place].signature
            if signature is not None:
                key = hash(signature)
                known = self._places.setdefault(key, place)
                if known is not place:
                    self._places[key] = [*known, place] if isinstance(known, list) else [known, place]
        self._signed = len(self.stamps)

    def clear(self) -> None:
        """Forget everything."""
        del self.stamps[:]
        self._signed = 0
        self._places.clear()
        self._cursors.clear()
        _watching.pop(id(self), None)


_watching: Final[dict[int, weakref.ref[RunTable]]] = {}


def _stop_watching(key: int, _: object) -> None:
    _watching.pop(key, None)


def is_watching(besides: object = None) -> bool:
    """Say whether a recorder `besides` one waits for repeated operations; if not, signatures need not be made."""
    if besides is None:
        return bool(_watching)
    for reference in tuple(_watching.values()):
        table = reference()
        if table is not None and table.owner() is not besides:
            return True
    return False


def note_run(signature: Hashable, stamp: int, recorder: object) -> None:
    """Tell every recorder but the current one that an operation was run."""
    if _is_replaying.get():
        return
    key = hash(signature)
    for reference in tuple(_watching.values()):
        table = reference()
        if table is not None and (recorder is None or table.owner() is not recorder):
            table.repeat(key, stamp)


_is_replaying: Final[ContextVar[bool]] = ContextVar("warp_replaying", default=False)


@contextmanager
def replaying(arrays: Iterable[RecordedArray]) -> Iterator[None]:
    """Run operations again that write `arrays` without a trace: the versions of their memory are then as before.

    The caller puts the contents back.
    """
    with _lock:
        logs = {id(storage): (storage, storage.log.copy()) for storage in map(storage_of, arrays)}
    token = _is_replaying.set(True)
    try:
        yield
    finally:
        _is_replaying.reset(token)
        with _lock:
            for storage, log in logs.values():
                storage.resolve().log = log
