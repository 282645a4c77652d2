"""The checkpoint schedule: every state once, within the slots and Griewank's bound on the work."""

from __future__ import annotations

from functools import cache
from math import comb

import pytest

from warp._src.ir.checkpoints import Checkpoints


def sweep(trips: int, slots: int, online: bool) -> tuple[list[int], int, list[int]]:
    """Run a reverse sweep over states that are their own iteration numbers.

    Gives the visited states, the largest number of slots in use and how often each iteration was advanced.
    """
    schedule = Checkpoints(slots)
    memory: dict[int, int] = {}
    advanced = [0] * trips
    for k in range(trips if online else 1):
        slot = schedule.record(k)
        if slot is not None:
            memory[slot] = k
    visited, most = [], len(schedule.held)
    for k in range(trips - 1, -1, -1):
        position, slot = schedule.restore(k)
        assert memory[slot] == position
        while position < k:
            target, free = schedule.next_advance(position, k)
            assert position < target <= k
            for step in range(position, target):
                advanced[step] += 1
            if free is not None:
                assert free not in {slot for at, slot in schedule.held if at != target}
                memory[free] = target
            position = target
        visited.append(position)
        most = max(most, len(schedule.held))
    return visited, most, advanced


@cache
def fewest_advances(trips: int, slots: int) -> int:
    """The optimum by dynamic programming; the entry state takes one of the slots."""
    if trips <= 1:
        return 0
    if slots == 1:
        return trips * (trips - 1) // 2
    return min(
        first + fewest_advances(first, slots) + fewest_advances(trips - first, slots - 1) for first in range(1, trips)
    )


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8, 64])
def test_every_state_is_visited_once_in_descending_order(slots: int, online: bool) -> None:
    for trips in (1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65, 200):
        visited, most, _ = sweep(trips, slots, online)
        assert visited == list(range(trips - 1, -1, -1))
        assert most <= slots


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8])
def test_no_iteration_is_advanced_more_often_than_treeverse_allows(slots: int) -> None:
    for trips in range(1, 121):
        repeats = next(r for r in range(trips + 1) if comb(slots + r, slots) >= trips)
        assert max(sweep(trips, slots, online=False)[2]) <= repeats


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8])
def test_total_work_is_within_three_percent_of_the_optimum(slots: int) -> None:
    for trips in range(1, 121):
        assert sum(sweep(trips, slots, online=False)[2]) <= 1.03 * fewest_advances(trips, slots)


@pytest.mark.parametrize("slots", [2, 3, 8, 64])
def test_a_loop_that_fits_the_slots_advances_nothing(slots: int) -> None:
    assert sum(sweep(slots, slots, online=True)[2]) == 0


@pytest.mark.parametrize("slots", [2, 3, 5, 8])
def test_a_trip_count_not_known_beforehand_costs_little(slots: int) -> None:
    for trips in range(1, 201):
        assert sum(sweep(trips, slots, online=True)[2]) <= 2.5 * fewest_advances(trips, slots)


def test_recording_doubles_the_stride_when_the_slots_are_full() -> None:
    schedule = Checkpoints(4)
    for k in range(4):
        assert schedule.record(k) is not None
    assert [position for position, _ in schedule.held] == [0, 1, 2, 3]
    assert schedule.record(4) is not None
    assert [position for position, _ in schedule.held] == [0, 2, 4]
    for k in range(5, 9):
        schedule.record(k)
    assert [position for position, _ in schedule.held] == [0, 4, 8]


def test_no_slot_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one checkpoint slot, got 0"):
        Checkpoints(0)
