"""The tape: records operations on arrays and carries gradients back through them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from types import TracebackType
from typing import Any, TypeVar

from warp.errors import ArgumentError, AutogradError, WarpWarning
from warp.recording import (
    OperationRuns,
    Recordable,
    RecordedArray,
    clear,
    current_recorder,
    make_launch_event,
    next_stamp,
    recording,
    stamps_of,
    storage_of,
    watch,
)
from warp_autograd.entries import CustomEvent, Entry, WriteHistory
from warp_autograd.paths import find_links, find_reached
from warp_autograd.scopes import Scope, ScopeList
from warp_autograd.seeds import RetainedGradients, Stash, collect_seeds, plant, temporary_gradients
from warp_autograd.versions import AccessCheck

_Tape = TypeVar("_Tape", bound="Tape")


class Tape:
    """Records the launches, copies and fills inside its `with` block, for this thread and task.

    `overwrite` says what backward does where a later operation of the tape has overwritten values that an adjoint
    needs: "error", or "ignore" to use what is there now. `strict` turns the tape's warnings into errors.
    """

    def __init__(self, overwrite: str = "error", strict: bool = False) -> None:
        if overwrite not in ("error", "ignore"):
            raise ArgumentError(f'overwrite must be "error" or "ignore", got {overwrite!r}')
        self.overwrite = overwrite
        self.strict = strict
        self.loss: RecordedArray | None = None
        """The loss of the last backward pass."""
        self._entries: list[Entry] = []
        self._runs: dict[Hashable, OperationRuns] = {}
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
        for array in event.arrays():
            storage_of(array)  # from now on its writes are remembered
        stamp = event.stamp or max((stamp for array in event.writes for stamp in stamps_of(array)), default=0)
        with self._lock:
            signature = event.signature
            stamp = stamp or next_stamp()
            if signature is None:
                self._entries.append(Entry(event, stamp, None, 0))
                return
            runs = self._runs.get(signature)
            if runs is None:
                runs = self._runs[signature] = watch(signature, self)
            self._entries.append(Entry(event, stamp, runs, runs.append(stamp)))

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
        """Append a launch that has already run, given by its arguments."""
        self.record(make_launch_event(kernel, dim, max_blocks, inputs, outputs, device, block_dim, metadata))

    def record_func(self, backward: Callable[[], object], arrays: Sequence[RecordedArray]) -> None:
        """Append a function that is called in the backward pass.

        `arrays` are those whose gradients it reads or adds to; `zero()` clears them. Call `mark_write()` before on
        those that the matching forward computation has written, so that a second backward pass is exact.
        """
        if not callable(backward):
            raise ArgumentError(f"backward must be callable, got {type(backward).__qualname__}")
        for array in arrays:
            if not isinstance(array, RecordedArray):
                raise ArgumentError(f"arrays must hold warp.array objects, got {type(array).__qualname__}")
        self.record(CustomEvent(backward, arrays))
        for array in arrays:
            array.is_written = False

    def record_scope_begin(self, scope_name: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Open a group of operations, which graphs show under this name."""
        self._scopes.begin(scope_name, len(self._entries), metadata)

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """Close the group opened last. AutogradError if none is open."""
        self._scopes.end(len(self._entries), remove_scope_if_empty)

    def begin_scope(self, name: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Open a group, as a `Recorder` does."""
        self.record_scope_begin(name, metadata)

    def end_scope(self) -> None:
        """Close a group, as a `Recorder` does."""
        self.record_scope_end()

    @property
    def events(self) -> tuple[Recordable, ...]:
        """Return the recorded operations in order."""
        return tuple(entry.event for entry in self._entries)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return the groups of operations in the order in which they were opened."""
        return tuple(self._scopes.scopes)

    # ------------------------------------------------------------------ gradients

    def backward(
        self,
        loss: RecordedArray | None = None,
        grads: Mapping[Any, Any] | None = None,
    ) -> None:
        """Carry gradients from the seeds back to everything they were computed from.

        `loss` is an array of one element, whose gradient is 1; `grads` maps arrays to the gradients to start from,
        which are not changed; its keys need no `requires_grad`. Without either, the gradients that the arrays have now
        are the seeds and are consumed. Gradients of leaves add up over several calls. Those of intermediate results
        are passed on, so they read 0 afterwards unless the array's `retain_grad` is set. Gradients pass through
        intermediate arrays without `requires_grad` too; to stop them, use `wp.clone(a, requires_grad=False)`.

        Raises AutogradError if a value that an adjoint needs was overwritten or is stale.
        """
        seeds = collect_seeds(loss, grads)
        if loss is not None:
            self.loss = loss
        self._remember(array for array, _ in seeds)
        seeded = [array for array, _ in seeds]
        history = WriteHistory(self._entries)
        links = list(find_links(self._entries, history, seeded))
        with recording(None), temporary_gradients([*seeded, *links], self._entries):
            reached = self._check(seeded, history)
            stash = Stash(self._entries if seeds else ())
            plant(seeds)
            self._run_adjoints(reached)
            stash.give_back()

    def _check(self, seeds: Sequence[RecordedArray], history: WriteHistory) -> list[bool]:
        entries = self._entries
        reached = find_reached(entries, seeds)
        check = AccessCheck(entries, history, self.overwrite == "ignore")
        for index in range(len(entries) - 1, -1, -1):
            if reached[index]:
                check.check(index, self._report_changed_leaf)
        if seeds and not any(reached):
            self._report("no operation on this tape writes to the loss or the arrays in grads", "unreached")
        return reached

    def _report_changed_leaf(self, what: str, array: RecordedArray) -> None:
        self._report(
            f"{what}, which was modified off the tape after it was recorded; its current value is used",
            ("leaf", array.layout()),
        )

    def _report(self, message: str, key: Hashable) -> None:
        if self.strict:
            raise AutogradError(message)
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(message, WarpWarning, stacklevel=5)

    def _run_adjoints(self, reached: Sequence[bool]) -> None:
        entries = self._entries
        retained = RetainedGradients(entries)
        for index in range(len(entries) - 1, -1, -1):
            retained.keep(index)
            if reached[index]:
                with self._substituted(entries[index].event):
                    entries[index].event.run_adjoint()
        retained.give_back()

    def _substituted(self, event: Recordable) -> AbstractContextManager[None]:
        """Put the gradients that an overriding `get_adjoint` chooses in place of the arrays' own."""
        if type(self).get_adjoint is Tape.get_adjoint:
            return nullcontext()
        return _substitute_gradients(event.arrays(), self.get_adjoint)

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
                clear(gradient.numpy())

    def reset(self) -> None:
        """Zero the gradients, then forget all operations and scopes and release the arrays."""
        self.zero()
        self._entries.clear()
        self._runs.clear()
        self._scopes.clear()
        self._seeded.clear()
        self._warned.clear()
        self.loss = None

    def _arrays(self) -> Iterator[RecordedArray]:
        for entry in self._entries:
            yield from entry.event.arrays()
        yield from self._seeded

    def _remember(self, arrays: Iterable[RecordedArray]) -> None:
        known = {id(array) for array in self._seeded}
        self._seeded.extend(array for array in arrays if id(array) not in known)


def _refuse_nesting() -> None:
    if current_recorder() is not None:
        raise AutogradError("a tape is already recording here; tapes cannot be nested")


@contextmanager
def _substitute_gradients(arrays: Iterable[Any], choose: Callable[[Any], Any]) -> Iterator[None]:
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
