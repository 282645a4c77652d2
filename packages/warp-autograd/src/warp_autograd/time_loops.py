"""Time loops whose intermediate states are computed again in the backward pass instead of being kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb, isqrt
from typing import Any

import numpy as np

from warp.errors import ArgumentError, AutogradError
from warp.recording import (
    Recordable,
    RecordedArray,
    Recorder,
    about_to_write,
    caller_location,
    current_recorder,
    is_overlapping,
    mark_written,
    recording,
    replaying,
)
from warp_autograd.address_index import AddressIndex
from warp_autograd.entries import is_covered
from warp_autograd.tape import Tape

Step = Callable[[int], object]


def checkpointed_loop(step: Step, state: Sequence[RecordedArray], steps: int, slots: int | None = None) -> None:
    """Call `step(k)` for k = 0 .. steps - 1; on a tape, keep only `slots` copies of the state for the backward pass.

    `step` launches what advances the arrays in `state` by one step, in place. Whatever else it carries from one step
    to the next must be in `state` too, sums that it adds to included. It must do the same when it is called again with
    the same k and the same state. Arrays that it only writes, such as a row of a trajectory, or overwrites before it
    reads them need not be in `state`.

    Backward computes states between the copies again. Copies are placed by the binomial schedule (A. Griewank, 1992):
    with s slots, every state is computed at most r times more, where r is the least with C(s + r, s) >= steps. The
    default, the square root of `steps`, means at most three times up to a million steps. Each step is recorded on a
    tape of its own while its adjoint runs.

    Raises ArgumentError, and AutogradError if a step carries values in an array that is not in `state`.
    """
    _check_arguments(step, state, steps, slots)
    recorder = current_recorder()
    if recorder is None:
        for k in range(steps):
            step(k)
        return
    if not steps:
        return
    loop = _Loop(step, tuple(state), steps, slots or max(1, isqrt(steps)))
    about_to_write(loop.state)
    observer = _Observer(recorder, loop.state)
    with recording(observer):
        loop.run_forward(observer)
    event = LoopEvent(loop, observer)
    event.stamp = mark_written(event.writes)
    recorder.record(event)


def _check_arguments(step: object, state: object, steps: object, slots: object) -> None:
    if not callable(step):
        raise ArgumentError(f"step must be callable, got {type(step).__qualname__}")
    if not isinstance(state, (list, tuple)) or not all(isinstance(array, RecordedArray) for array in state):
        raise ArgumentError(f"state must be a list of warp.array objects, got {state!r}")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise ArgumentError(f"steps must be an integer that is not negative, got {steps!r}")
    if slots is not None and (isinstance(slots, bool) or not isinstance(slots, int) or slots < 1):
        raise ArgumentError(f"slots must be a positive integer, got {slots!r}")


class LoopEvent(Recordable):
    """A whole loop on a tape: its adjoint runs the steps again, the last one first."""

    runs_again = True

    def __init__(self, loop: _Loop, observer: _Observer) -> None:
        self.label = f"checkpointed_loop of {getattr(loop.step, '__name__', 'step')}"
        self.location = caller_location()
        self._loop = loop
        self._written = observer.written()
        self._needed = tuple(observer.constants(self._written))
        self.reads = (*loop.state, *self._needed)
        self.writes = (*loop.state, *self._written)

    def needed(self) -> Sequence[RecordedArray]:
        """Return what the steps read and do not change."""
        return self._needed

    def run_adjoint(self) -> None:
        """Run the adjoints of all steps on the gradients that the arrays have now."""
        arrays = (*self._loop.state, *self._written)
        contents = [array.contents.copy() for array in arrays]
        try:
            with replaying(arrays):
                self._loop.run_backward()
        finally:
            for array, values in zip(arrays, contents, strict=True):
                array.contents.replace(values)


class _Loop:
    """Runs steps and keeps copies of the state."""

    def __init__(self, step: Step, state: tuple[RecordedArray, ...], steps: int, slots: int) -> None:
        self.step = step
        self.state = state
        self.steps = steps
        self.slots = slots
        self._kept: list[tuple[int, list[np.ndarray[Any, Any]]]] = []

    def run_forward(self, observer: _Observer) -> None:
        """Run all steps, which the observer sees."""
        self._keep(0)
        self._advance(0, self.steps - 1, observer.begin_step)
        observer.begin_step()
        self.step(self.steps - 1)

    def run_backward(self) -> None:
        """Run the adjoints of all steps, each on a state that was kept or is computed again."""
        for k in range(self.steps - 1, -1, -1):
            while self._kept[-1][0] > k:
                self._kept.pop()
            position, values = self._kept[-1]
            for array, kept in zip(self.state, values, strict=True):
                array.contents.replace(kept)
            mark_written(self.state)
            self._advance(position, k)
            with Tape() as tape:
                self.step(k)
            tape.backward()

    def _advance(self, position: int, target: int, begin_step: Callable[[], object] = lambda: None) -> None:
        """Go on from a kept state to the one before step `target`, and keep states on the way."""
        while position < target:
            free = self.slots - len(self._kept)
            stop = position + next_distance(target + 1 - position, free)
            for k in range(position, stop):
                begin_step()
                self.step(k)
            position = stop
            if free:
                self._keep(position)

    def _keep(self, position: int) -> None:
        self._kept.append((position, [array.contents.copy() for array in self.state]))


def next_distance(length: int, free: int) -> int:
    """Return after how many of `length` steps to keep the next state, with `free` slots for this and later ones.

    >>> next_distance(10, 0), next_distance(10, 9), next_distance(10, 3)
    (9, 1, 3)
    """
    if free == 0:
        return length - 1
    slots = free + 1  # the state at the beginning is in one more
    rounds = 1
    while comb(slots + rounds, slots) < length:
        rounds += 1
    # Both parts must fit: the rest with a slot less, the beginning with a round less.
    least = max(1, length - comb(slots + rounds - 1, slots - 1))
    most = min(length - 1, comb(slots + rounds - 1, slots))
    return min(max(least, length * rounds // (slots + rounds)), most)


class _Observer:
    """Looks at what the steps read and write, and records nothing."""

    def __init__(self, outer: Recorder, state: Sequence[RecordedArray]) -> None:
        self._outer = outer
        self._state = state
        self._reads: dict[object, RecordedArray] = {}
        self._writes: dict[object, RecordedArray] = {}
        self._early: dict[object, tuple[RecordedArray, str]] = {}
        self._fresh: list[RecordedArray] = []

    def begin_step(self) -> None:
        """Forget what the step before has written."""
        self._fresh.clear()

    def about_to_write(self, arrays: Sequence[RecordedArray]) -> None:
        """Let the tape keep what it needs."""
        self._outer.about_to_write(arrays)

    def record(self, event: Recordable) -> None:
        """Note the arrays of an operation."""
        for array in event.reads:
            layout = array.layout()
            if layout not in self._early and not is_covered(array, (*self._state, *self._fresh)):
                text = f"the {event.describe(array)} of '{event.label}' ({event.location})"
                self._early[layout] = (array, text)
            self._reads[layout] = array
        for array in event.writes:
            self._writes[array.layout()] = array
            self._fresh.append(array)

    def note_foreign_write(self, arrays: Sequence[RecordedArray]) -> None:
        """Tell the tape."""
        self._outer.note_foreign_write(arrays)

    def begin_scope(self, name: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Ignore scopes inside the loop."""

    def end_scope(self) -> None:
        """Ignore scopes inside the loop."""

    def written(self) -> list[RecordedArray]:
        """Return the arrays outside the state that the steps write."""
        return [array for array in self._writes.values() if not is_covered(array, self._state)]

    def constants(self, written: Iterable[RecordedArray]) -> list[RecordedArray]:
        """Return the arrays that the steps read and never write; AutogradError if they read and change others."""
        index: AddressIndex[RecordedArray] = AddressIndex()
        for array in written:
            if array.bounds[0] < array.bounds[1]:
                index.add(*array.bounds, array)
        for array, text in self._early.values():
            if any(is_overlapping(other, array) for other in index.overlapping(*array.bounds)):
                raise AutogradError(
                    f"checkpointed_loop: {text} carries values from one step to the next; add it to state"
                )
        return [array for array, _ in self._early.values()]
