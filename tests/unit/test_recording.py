"""The storage registry, stamps of writes, and the current recorder."""

from __future__ import annotations

import contextvars
import gc
import random
import threading

import numpy as np
import pytest

import warp as wp
from warp.recording import Layout, Recordable, current_recorder, mark_written, recording, stamps_of, storage_of


def version(made: wp.array) -> int:
    return max(stamps_of(made), default=0)


def test_wrappers_of_one_memory_share_a_storage() -> None:
    memory = np.zeros(10, np.float32)
    first, second = wp.array(memory[:6], copy=False), wp.array(memory[4:], copy=False)
    by_address = wp.array(ptr=memory.ctypes.data + 8, shape=2, dtype=float)
    view = first[2:]
    assert len({id(storage_of(made)) for made in (first, second, by_address, view)}) == 1
    assert storage_of(wp.zeros(3)) is not storage_of(first)


def test_overlapping_wrappers_found_late_are_merged() -> None:
    memory = np.zeros(30, np.uint8)
    left, right = (wp.array(ptr=memory.ctypes.data + at, shape=10, dtype=wp.uint8) for at in (0, 15))
    assert storage_of(left) is not storage_of(right)
    left.fill_(1)
    before = version(left)
    whole = wp.array(ptr=memory.ctypes.data + 5, shape=20, dtype=wp.uint8)
    merged = storage_of(whole)
    assert storage_of(left) is storage_of(right) is merged
    assert version(left) == version(whole) == before
    assert version(right) == 0
    right.fill_(1)
    assert version(whole) == version(right) > before


def test_every_write_raises_the_version_of_its_range() -> None:
    made = wp.zeros(4)
    seen = [version(made)]
    for write in (
        lambda: made.fill_(1),
        lambda: made.zero_(),
        lambda: made.assign([1, 2, 3, 4]),
        lambda: wp.copy(made, wp.zeros(4)),
        lambda: made[1:3].fill_(2),
        lambda: made.__setitem__(0, 1.0),
        lambda: mark_written((made,)),
    ):
        write()
        seen.append(version(made))
    assert seen == sorted(set(seen))
    before = version(made[:2])
    made[2:].fill_(1)
    assert version(made[:2]) == before


def test_only_memory_that_somebody_asked_for_has_versions() -> None:
    known, unknown = wp.zeros(4), wp.zeros(4)
    assert version(known) == 0
    for made in (known, unknown):
        made.fill_(1)
    assert unknown.storage is None
    assert version(unknown) == 0 < version(known)
    unknown.fill_(2)
    assert version(unknown) > version(known)
    alias = wp.array(ptr=known.ptr + 4, shape=1, dtype=float)
    alias.fill_(3)
    assert version(known) > version(unknown)


def test_while_something_is_recorded_all_memory_has_versions() -> None:
    made, other = wp.zeros(4), wp.zeros(4)
    with recording(_List()):
        made.fill_(1)
        thread = threading.Thread(target=other.zero_)
        thread.start()
        thread.join()
    assert version(made) > 0
    assert version(other) > 0


def test_columns_are_apart() -> None:
    made = wp.zeros((3, 2))
    assert version(made) == 0
    made[:, 0].fill_(1)
    assert version(made[:, 1]) == 0
    assert version(made[1]) == version(made[:, 0]) > 0
    first = version(made[:, 0])
    made[0].fill_(1)
    assert version(made[:, 0]) > first
    assert stamps_of(made[:, 1]) == [version(made[0])]


def test_range_stamps_agree_with_stamps_per_byte() -> None:
    rng = random.Random(1)
    made = wp.zeros(40, dtype=wp.uint8)
    expected = np.zeros(40, int)
    for _ in range(300):
        low = rng.randrange(40)
        high = rng.randrange(low + 1, 41)
        expected[low:high] = mark_written((made[low:high],))
        low = rng.randrange(40)
        high = rng.randrange(low + 1, 41)
        assert set(stamps_of(made[low:high])) == set(expected[low:high]) - {0}


def test_a_freed_block_is_forgotten() -> None:
    memory = np.zeros(10, np.uint8)
    made = wp.array(memory, copy=False)
    made.fill_(1)
    del made
    gc.collect()
    assert version(wp.array(memory, copy=False)) == 0


def test_layout() -> None:
    made = wp.zeros((3, 2), dtype=wp.vec3)
    assert made[:, 1].layout() == Layout(made.ptr + 12, (3,), (24,), 12)


class _List:
    def __init__(self) -> None:
        self.events: list[Recordable] = []

    def about_to_write(self, arrays: object) -> None:
        pass

    def record(self, event: Recordable) -> None:
        self.events.append(event)

    def note_foreign_write(self, arrays: object) -> None:
        pass

    def begin_scope(self, name: str, metadata: object = None) -> None:
        pass

    def end_scope(self) -> None:
        pass


def test_recorder_belongs_to_the_thread_and_context() -> None:
    recorder = _List()
    outside = contextvars.copy_context()
    seen: list[object] = []
    with recording(recorder):
        assert current_recorder() is recorder
        thread = threading.Thread(target=lambda: seen.append(current_recorder()))
        thread.start()
        thread.join()
        seen.append(outside.run(current_recorder))
        with recording(None):
            wp.zeros(3).fill_(1.0)
        made = wp.zeros(3)
        made.fill_(1.0)
    assert seen == [None, None]
    (event,) = recorder.events
    assert event.label == "fill_"
    assert list(event.writes) == [made]
    assert event.location.startswith(__file__)
    assert event.stamp == version(made)


def test_many_threads_keep_the_log_whole() -> None:
    made = wp.zeros(8, dtype=wp.uint8)
    assert version(made) == 0

    def work(at: int) -> None:
        for _ in range(200):
            mark_written((made[at : at + 1],))

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(stamps_of(made))) == 8


@pytest.mark.parametrize("size", [0, 3])
def test_storage_bump_and_version(size: int) -> None:
    storage = storage_of(wp.zeros(size, dtype=wp.uint8))
    assert storage.version(storage.begin, storage.end) == 0
    if size:
        assert storage.bump(storage.begin, storage.end) == storage.version(storage.begin, storage.begin + 1)
