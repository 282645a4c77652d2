"""Which loop states to keep while a reverse sweep goes back over a loop with a fixed number of slots.

While the loop runs, `record` keeps every d-th state and doubles d when the slots are full; on the way back
`next_advance` places new checkpoints by treeverse (A. Griewank, 1992, Achieving logarithmic growth of temporal
and spatial complexity in reverse automatic differentiation). A loop of n <= slots iterations keeps every state.
"""

from __future__ import annotations

from math import comb


class Checkpoints:
    """The schedule alone: positions and slot numbers, no states.

    `held` lists (iteration, slot) in ascending order; the state of an iteration is the one before it runs.
    """

    def __init__(self, slots: int) -> None:
        if slots < 1:
            raise ValueError(f"a loop needs at least one checkpoint slot, got {slots}")
        self.slots = slots
        self.stride = 1
        self.held: list[tuple[int, int]] = []
        self._released: list[int] = []
        self._used = 0

    @property
    def free(self) -> int:
        """Number of slots that hold nothing."""
        return self.slots - len(self.held)

    def record(self, k: int) -> int | None:
        """Give the slot that should keep the state before iteration k = 0, 1, ..., or None to keep nothing."""
        if k % self.stride:
            return None
        if not self.free:
            self.stride *= 2
            for position, slot in self.held:
                if position % self.stride:
                    self._released.append(slot)
            self.held = [(position, slot) for position, slot in self.held if position % self.stride == 0]
            if k % self.stride:
                return None
        return self._take(k)

    def restore(self, k: int) -> tuple[int, int]:
        """Drop the checkpoints beyond iteration k; give iteration and slot of the last one at or before it."""
        while self.held[-1][0] > k:
            self._released.append(self.held.pop()[1])
        return self.held[-1]

    def next_advance(self, position: int, k: int) -> tuple[int, int | None]:
        """Tell how far to advance from the checkpoint at `position` toward iteration k.

        Gives the iteration to stop at and the slot that keeps the state there; no slot means that the state
        goes on straight to k.
        """
        length = k - position + 1
        available = self.free + 1
        repeats = 0
        while comb(available + repeats, available) < length:
            repeats += 1
        target = position + max(1, length * repeats // (available + repeats))
        if target >= k or not self.free:
            return k, None
        return target, self._take(target)

    def _take(self, position: int) -> int:
        if self._released:
            slot = self._released.pop()
        else:
            slot, self._used = self._used, self._used + 1
        self.held.append((position, slot))
        return slot


__all__ = ["Checkpoints"]
