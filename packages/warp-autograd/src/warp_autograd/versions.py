"""Whether the values that adjoints need are still those of the forward pass.

Every write has a stamp. An operation's own stamp is that of its last run, also when the same operation was run again
off the tape, so that a tape recorded once serves many backward passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warp.errors import AutogradError
from warp.recording import RecordedArray, is_foreign, stamps_of
from warp_autograd.entries import Entry, WriteHistory
from warp_autograd.snapshots import Snapshots

Report = Callable[[str, RecordedArray], None]


class AccessCheck:
    """Compares the present contents of arrays with what the recorded operations read and wrote."""

    def __init__(
        self, entries: Sequence[Entry], history: WriteHistory, snapshots: Snapshots, allow_overwrite: bool
    ) -> None:
        self._entries = entries
        self._history = history
        self._snapshots = snapshots
        self._allow_overwrite = allow_overwrite
        self._writer_of_stamp = {entry.last_run: index for index, entry in enumerate(entries)}
        self._needed: dict[int, tuple[Entry, RecordedArray]] = {}
        self._stale: list[str | None] = []
        for index in range(len(entries)):
            self._stale.append(self._find_staleness(index))

    def check(self, index: int, report_changed_leaf: Report) -> None:
        """Raise AutogradError if a value that the adjoint of an operation needs is gone or out of date.

        An array that no operation of the tape writes is read at its current value: `report_changed_leaf` is told if
        Warp changed it since. That its framework changes it is what an optimiser does.
        """
        entry = self._entries[index]
        if entry.event.keeps_record and entry.last_run != entry.recorded:
            raise AutogradError(
                f"the adjoint of {entry.text} needs values that the operation overwrote when it was recorded, but it "
                "was run again off the tape since. Record a new tape."
            )
        for array in entry.event.needed():
            self._needed.setdefault(array.root().ptr, (entry, array))
            self._check_contents(entry, index, array, report_changed_leaf)
            writer = self._history.last_writer(array, index + 1)
            reason = None if writer is None else self._stale[writer]
            if writer is not None and reason is not None:
                raise AutogradError(
                    f"{self._what(entry, array)}, but it is stale: it was computed by {self._entries[writer].text} "
                    f"before {reason}. Run the forward pass again, or record a new tape."
                )

    def check_gradients(self, reached: Sequence[bool]) -> None:
        """Raise AutogradError if an adjoint that was checked needs values of a gradient that this pass changes."""
        for entry, is_reached in zip(self._entries, reached, strict=True) if self._needed else ():
            for array in (*entry.reads, *entry.writes) if is_reached else ():
                gradient = array.grad
                if gradient is not None and gradient.root().ptr in self._needed:
                    reader, needed = self._needed[gradient.root().ptr]
                    raise AutogradError(
                        f"{self._what(reader, needed)}, which is the gradient of the {entry.event.describe(array)} of "
                        f"{entry.text}, and this backward pass changes it. Give the operation a copy: "
                        "wp.clone(x.grad)."
                    )

    def _check_contents(self, entry: Entry, index: int, array: RecordedArray, report_changed_leaf: Report) -> None:
        reason = self._snapshots.why_lost(index, array)
        if reason is not None:
            raise AutogradError(
                f"{self._what(entry, array)}, but it {reason}. Write to another array there, or copy this one before."
            )
        if self._snapshots.is_saved(index) and entry.last_run != entry.recorded:
            raise AutogradError(
                f"{self._what(entry, array)}, which a later operation of the tape overwrites, and it was run again off "
                "the tape, where nothing is kept. Record a new tape, or write to another array."
            )
        is_followed = self._snapshots.is_followed(index)
        for stamp in self._snapshots.stamps(index, array):
            writer = self._writer_of_stamp.get(stamp)
            if writer is not None:
                if writer > index and not self._allow_overwrite and not is_followed:
                    raise AutogradError(
                        f"{self._what(entry, array)}, but it was overwritten later on the tape by "
                        f"{self._entries[writer].text}. Write to another array there, or copy this one before."
                    )
            elif stamp > entry.recorded:
                if not entry.event.runs_again and self._history.last_writer(array, index + 1) is None:
                    if stamp > entry.last_run and not is_foreign(stamp):
                        report_changed_leaf(self._what(entry, array), array)
                else:
                    raise AutogradError(
                        f"{self._what(entry, array)}, but it was overwritten off the tape. "
                        "Run the forward pass again, or record a new tape."
                    )

    def _find_staleness(self, index: int) -> str | None:
        entry = self._entries[index]
        for array in entry.reads:
            for stamp in stamps_of(array):
                reason = self._staleness_of(index, entry, array, stamp)
                if reason is not None:
                    return reason
        return None

    def _staleness_of(self, index: int, entry: Entry, array: RecordedArray, stamp: int) -> str | None:
        writer = self._writer_of_stamp.get(stamp)
        if writer is None:
            changed = stamp > entry.last_run and not self._history.is_replaced(array, index)
            return (
                f"the {entry.event.describe(array)} that it depends on was modified off the tape" if changed else None
            )
        if writer >= index:
            writer = self._history.last_writer(array, index)
        if writer is None:
            return None
        if self._entries[writer].last_run > entry.last_run:
            return f"{self._entries[writer].text}, which it depends on, was run again"
        return self._stale[writer]

    @staticmethod
    def _what(entry: Entry, array: RecordedArray) -> str:
        return f"the adjoint of {entry.text} needs the values of the {entry.event.describe(array)}"
