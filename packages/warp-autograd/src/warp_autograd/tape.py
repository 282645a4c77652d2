"""The tape: records operations on arrays and carries gradients back through them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock, get_ident
from types import TracebackType
from typing import Any, TypeVar

import warp
from warp.errors import ArgumentError, AutogradError, WarpWarning
from warp.recording import (
    Recordable,
    RecordedArray,
    current_recorder,
    make_launch_event,
    next_stamp,
    note_writes,
    recording,
    stamps_of,
)
from warp_autograd.entries import CustomEvent, Entry, Operations, WriteHistory
from warp_autograd.paths import check_shared_gradients, find_links, find_reached
from warp_autograd.scopes import Scope, ScopeList
from warp_autograd.seeds import RetainedGradients, Stash, borrowed_gradients, collect_seeds, plant, temporary_gradients
from warp_autograd.snapshots import Copy, Overwrite, Snapshots
from warp_autograd.versions import AccessCheck
from warp_autograd.visualize import visualize

_Tape = TypeVar("_Tape", bound="Tape")
Kept = tuple[Sequence[Overwrite], Sequence[Copy]]
_OUTCOMES = {
    "snapshot": "the tape keeps a copy",
    "error": "backward() will be refused",
    "ignore": "the gradient may be wrong",
}


class Tape:
    """Records the launches, copies and fills inside its `with` block, for this thread and task.

    `overwrite` says what happens where an operation overwrites values that the adjoint of an earlier one needs:
    "snapshot" copies them before, "error" refuses the backward pass, "ignore" lets it use what is there then. Copies
    may take `snapshot_limit` bytes, by default half of what is free at the first one; beyond that the operation is
    refused with an AutogradError. `strict` turns the tape's warnings into errors.
    """

    def __init__(self, overwrite: str = "snapshot", strict: bool = False, snapshot_limit: int | None = None) -> None:
        if overwrite not in ("snapshot", "error", "ignore"):
            raise ArgumentError(f'overwrite must be "snapshot", "error" or "ignore", got {overwrite!r}')
        if snapshot_limit is not None and snapshot_limit < 0:
            raise ArgumentError(f"snapshot_limit must not be negative, got {snapshot_limit}")
        self.overwrite = overwrite
        self.strict = strict
        self.loss: RecordedArray | None = None
        """The loss of the last backward pass."""
        self._operations = Operations(self)
        self._snapshots = Snapshots(self._operations, overwrite == "snapshot", snapshot_limit)
        self._announced: dict[int, tuple[Sequence[RecordedArray], Kept]] = {}
        self._scopes = ScopeList()
        self._seeded: list[RecordedArray] = []
        self._warned: set[Hashable] = set()
        self._lock = Lock()
        self._entered: AbstractContextManager[None] | None = None

    # ------------------------------------------------------------------ recording

    def __enter__(self: _Tape) -> _Tape:
        _refuse_nesting()
        if self._entered is not None:
            raise AutogradError("the tape is already recording in another thread or task; use attach() there")
        self._entered = recording(self)
        self._entered.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            entered.__exit__(kind, error, traceback)

    @contextmanager
    def attach(self: _Tape) -> Iterator[_Tape]:
        """Record on this tape in another thread or task, inside a `with` block there."""
        _refuse_nesting()
        with recording(self):
            yield self

    def record(self, event: Recordable) -> None:
        """Append an operation that has just run."""
        writes = event.writes
        stamp = event.stamp or _stamp_of(writes)
        overwritten = self._snapshots.followed(writes)
        self._snapshots.watch(event.arrays())
        kept: Sequence[Overwrite] = ()
        lost: Sequence[Overwrite] = ()
        is_verifying = warp.config.verify_autograd_array_access
        with self._lock:
            if overwritten:
                announced, (kept, copies) = self._announced.pop(get_ident(), ((), ((), ())))
                known = [id(array) for array in announced]
                surprises = [array for array in overwritten if id(array) not in known]
                lost = self._snapshots.after_write(surprises) if is_verifying else ()
                self._operations.append(event, stamp)
                if surprises or copies:
                    self._snapshots.note(surprises, copies)
            else:
                self._operations.append(event, stamp)
        if is_verifying:
            self._report_overwrites(event, kept, _OUTCOMES[self.overwrite])
            self._report_overwrites(event, lost, _OUTCOMES["error"])

    def about_to_write(self, arrays: Sequence[RecordedArray]) -> None:
        """Copy what earlier operations need of arrays that are about to be overwritten."""
        if not self._snapshots.followed(arrays):
            if self._announced:  # by an operation that failed
                self._announced.pop(get_ident(), None)
        elif self.overwrite == "snapshot" or warp.config.verify_autograd_array_access:
            with self._lock:
                self._announced[get_ident()] = arrays, self._snapshots.before_write(arrays)

    def note_foreign_write(self, arrays: Sequence[RecordedArray]) -> None:
        """Warn that a thread without this tape wrote an array that an operation on the tape used."""
        with self._lock:
            is_known = any(self._snapshots.knows(array) for array in arrays)
        if is_known:
            self._report(
                "another thread wrote to an array that this tape has recorded; operations of other threads are not "
                "recorded: run them inside `with tape.attach():` there",
                "thread",
            )

    def _report_overwrites(self, event: Recordable, overwrites: Iterable[Overwrite], outcome: str) -> None:
        place = f"'{event.label}' ({event.location})"
        if event.keeps_record:
            self._report(
                f"{place} overwrites values that it has read and that its adjoint needs; the launch keeps them",
                ("own overwrite", place),
            )
        for overwrite in overwrites:
            what = self._snapshots.describe(overwrite)
            self._report(f"{what}, is overwritten by {place}; {outcome}", ("overwrite", place, what))

    @property
    def snapshot_bytes(self) -> int:
        """Return the bytes of values that are kept because they were overwritten."""
        return self._snapshots.undo.nbytes

    def record_launch(
        self,
        kernel: Any,
        dim: Any,
        max_blocks: int,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        device: Any,
        block_dim: int = 0,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Append a launch that has already run, given by its arguments, which must not have been written since."""
        self.record(make_launch_event(kernel, dim, max_blocks, inputs, outputs, device, block_dim, metadata))

    def record_func(self, backward: Callable[[], object], arrays: Sequence[RecordedArray]) -> None:
        """Append a function that is called in the backward pass.

        `arrays` are those whose gradients it reads or adds to; `zero()` clears them. Call `mark_write()` before on
        those that the matching forward computation has written, so that a second backward pass is exact, and
        `mark_read()` on those whose values the function needs, so that they are kept if they are overwritten later.
        """
        if not callable(backward):
            raise ArgumentError(f"backward must be callable, got {type(backward).__qualname__}")
        for array in arrays:
            if not isinstance(array, RecordedArray):
                raise ArgumentError(f"arrays must hold warp.array objects, got {type(array).__qualname__}")
        self.record(CustomEvent(backward, arrays))
        for array in arrays:
            array.is_read = array.is_written = False

    def record_scope_begin(self, scope_name: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Open a group of operations, which graphs show under this name."""
        self._scopes.begin(scope_name, len(self._operations), metadata)

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """Close the group opened last. AutogradError if none is open."""
        self._scopes.end(len(self._operations), remove_scope_if_empty)

    def begin_scope(self, name: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Open a group, as a `Recorder` does."""
        self.record_scope_begin(name, metadata)

    def end_scope(self) -> None:
        """Close a group, as a `Recorder` does."""
        self.record_scope_end()

    @property
    def events(self) -> tuple[Recordable, ...]:
        """Return the recorded operations in order."""
        return tuple(self._operations.events)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return the groups of operations in the order in which they were opened."""
        return tuple(self._scopes.scopes)

    def visualize(
        self,
        filename: str | Path | None = None,
        simplify_graph: bool = True,
        hide_readonly_arrays: bool = False,
        array_labels: Mapping[Any, str] | None = None,
        choose_longest_node_name: bool = True,
        ignore_graph_scopes: bool = False,
        track_inputs: Sequence[Any] | None = None,
        track_outputs: Sequence[Any] | None = None,
        track_input_names: Sequence[str] | None = None,
        track_output_names: Sequence[str] | None = None,
        graph_direction: str = "LR",
    ) -> str:
        """Return the recorded operations as a GraphViz graph; see `warp_autograd.visualize`."""
        return visualize(
            self,
            filename,
            simplify_graph,
            hide_readonly_arrays,
            array_labels,
            choose_longest_node_name,
            ignore_graph_scopes,
            track_inputs,
            track_outputs,
            track_input_names,
            track_output_names,
            graph_direction,
        )

    # ------------------------------------------------------------------ gradients

    def backward(
        self,
        loss: RecordedArray | None = None,
        grads: Mapping[Any, Any] | None = None,
    ) -> None:
        """Carry gradients from the seeds back to everything they were computed from.

        `loss` is an array of one element, whose gradient is 1; `grads` maps arrays to the gradients to start from,
        which are not changed; its keys need no `requires_grad`. Without either, the gradients that the arrays have now
        are the seeds and are consumed; one that was assigned to a result, `a.grad = g`, is only read. Gradients of
        leaves add up over several calls. Those of intermediate results are passed on, so they read 0 afterwards unless
        the array's `retain_grad` is set. Gradients pass through intermediate arrays without `requires_grad` too; to
        stop them, use `wp.clone(a, requires_grad=False)`.

        Raises AutogradError if a value that an adjoint needs was overwritten or is stale; nothing has changed then. If
        an adjoint fails on the way, leaves keep what has arrived there, and all other gradients are as before.
        """
        seeds = collect_seeds(loss, grads)
        if current_recorder() not in (None, self):
            self._report(
                "backward() runs while another tape records, which does not take part in it: gradients are constants "
                "there; use wp.autograd.hvp for second derivatives",
                "recording",
                depth=3,
            )
        if loss is not None:
            self.loss = loss
        self._remember(array for array, _ in seeds)
        seeded = [array for array, _ in seeds]
        entries = self._operations.entries()
        for entry in entries:
            for array in entry.arrays:
                array.note_foreign_writes()
        history = WriteHistory(entries)
        links = list(find_links(entries, history, seeded))
        lent = borrowed_gradients(() if seeds else entries)
        with recording(None), lent, temporary_gradients([*seeded, *links], entries):
            check_shared_gradients(entries)
            reached = self._check(entries, seeded, history)
            stash = Stash(entries if seeds else ())
            try:
                plant(seeds)
                self._run_adjoints(entries, reached)
            except BaseException:
                stash.drop_travelling()
                raise
            finally:
                stash.give_back()

    def _check(self, entries: Sequence[Entry], seeds: Sequence[RecordedArray], history: WriteHistory) -> list[bool]:
        reached = find_reached(entries, seeds)
        check = AccessCheck(entries, history, self._snapshots, self.overwrite == "ignore")
        for index in range(len(entries) - 1, -1, -1):
            if reached[index]:
                check.check(index, self._report_changed_leaf)
        check.check_gradients(reached)
        if seeds and not any(reached):
            self._report("no operation on this tape writes to the loss or the arrays in grads", "unreached")
        return reached

    def _report_changed_leaf(self, what: str, array: RecordedArray) -> None:
        self._report(
            f"{what}, which was modified off the tape after it was recorded; its current value is used",
            ("leaf", array.layout()),
        )

    def _report(self, message: str, key: Hashable, depth: int = 5) -> None:
        if self.strict:
            raise AutogradError(message)
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(message, WarpWarning, stacklevel=depth)

    def _run_adjoints(self, entries: Sequence[Entry], reached: Sequence[bool]) -> None:
        retained = RetainedGradients(entries)
        is_substituting = type(self).get_adjoint is not Tape.get_adjoint
        with self._snapshots.undo.rewinding() as rewind:
            for index in range(len(entries) - 1, -1, -1):
                retained.keep(index)
                if not reached[index]:
                    continue
                rewind.before(index + 1)
                event = entries[index].event
                if not is_substituting:
                    self.run_adjoint_of(event)
                    continue
                with _substitute_gradients(event.arrays(), self.get_adjoint):
                    self.run_adjoint_of(event)
        retained.give_back()

    def run_adjoint_of(self, event: Recordable) -> None:
        """Run the adjoint of one operation during a backward pass; subclasses may do more."""
        event.run_adjoint()

    def get_adjoint(self, a: Any) -> Any:
        """Return the gradient of an array, None if it has none; a subclass may choose another array."""
        return a.grad if isinstance(a, RecordedArray) else None

    @property
    def gradients(self) -> dict[Any, Any]:
        """Return the gradients of the arrays on the tape, and of the arrays that they are views of."""
        known: dict[RecordedArray, Any] = {}
        for array in self._arrays():
            for found in (array, array.root()):
                if found not in known and found.requires_grad:
                    known[found] = self.get_adjoint(found)
        return known

    def zero(self) -> None:
        """Set the gradients of all arrays on the tape to zero, members of structs and keys of `grads` included."""
        for array in self._arrays():
            gradient = self.get_adjoint(array)
            if gradient is not None:
                gradient.contents.clear()

    def reset(self) -> None:
        """Zero the gradients, then forget all operations and scopes and release the arrays."""
        self.zero()
        self._operations.clear()
        self._snapshots.clear()
        self._scopes.clear()
        self._seeded.clear()
        self._warned.clear()
        self.loss = None

    def _arrays(self) -> Iterator[RecordedArray]:
        for event in self._operations.events:
            yield from event.arrays()
        yield from self._seeded

    def _remember(self, arrays: Iterable[RecordedArray]) -> None:
        known = {id(array) for array in self._seeded}
        self._seeded.extend(array for array in arrays if id(array) not in known)


def _stamp_of(writes: Sequence[RecordedArray]) -> int:
    """Return the stamp of the last write to arrays; what was written while nobody knew of the memory gets one now."""
    stamps = [max(stamps_of(array), default=0) for array in writes]
    stamp = max(stamps, default=0) or next_stamp()
    note_writes([array for array, known in zip(writes, stamps, strict=True) if not known], stamp)
    return stamp


def _refuse_nesting() -> None:
    if current_recorder() is not None:
        raise AutogradError("a tape is already recording here; tapes cannot be nested")


@contextmanager
def _substitute_gradients(arrays: Iterable[Any], choose: Callable[[Any], Any]) -> Iterator[None]:
    """Put the gradients that an overriding `get_adjoint` chooses in place of the arrays' own."""
    replaced: list[tuple[Any, Any]] = []
    try:
        for array in arrays:
            own, chosen = array.grad, choose(array)
            if chosen is not None and chosen is not own:
                replaced.append((array, own))
                array.grad = chosen
        yield
    finally:
        for array, own in reversed(replaced):
            array.grad = own
