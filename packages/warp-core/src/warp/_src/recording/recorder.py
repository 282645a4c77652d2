"""Recorders and what they record; the current recorder of this thread and asynchronous task."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import Any, Final, Protocol

from warp._src.recording.storage import RecordedArray, next_stamp, note_run, note_writes
from warp.errors import AutogradError, WarpError

DirectionOf = Callable[[Any], Any]


class Recordable(ABC):
    """An operation on arrays that has run, and knows how to run its adjoint."""

    label: str
    """Name for messages and graphs: the kernel's key, `copy`, `fill_`."""
    location: str
    """`file:line` of the call."""
    reads: Sequence[RecordedArray]
    writes: Sequence[RecordedArray]
    signature: Hashable = None
    """Equal for two runs of the same operation on the same memory; None if that cannot be told."""
    stamp: int = 0
    """What `mark_written` returned for the operation."""
    tangent_runs_again: bool = False
    """Whether `run_tangent` runs the operation itself again, so that what it writes must be as it was before."""
    keeps_record: bool = False
    """Whether the event keeps values of this very run for its adjoint, which another run does not renew."""
    detaches: bool = False
    """Whether the operation cuts the path of gradients on purpose."""
    is_opaque: bool = False
    """Whether its adjoint may use the gradients of all its arrays, in ways that only itself knows."""
    runs_again: bool = False
    """Whether the adjoint runs the operation again, so that everything it needs must be as it was then."""

    def arrays(self) -> Iterable[RecordedArray]:
        """Return every array involved, members of structs included."""
        return (*self.reads, *self.writes)

    def needed(self) -> Sequence[RecordedArray]:
        """Return the arrays whose values, as they were right after the operation, the adjoint needs."""
        return ()

    def own_elements(self) -> Sequence[RecordedArray]:
        """Return the arrays of which nothing but the elements at one index are used together, whatever the index."""
        return ()

    def describe(self, array: RecordedArray) -> str:
        """Return what messages call one of the arrays."""
        return f"array of shape {array.shape}, dtype {getattr(array.dtype, 'name', array.dtype)}"

    @abstractmethod
    def run_adjoint(self) -> None:
        """Carry the gradients of what was written over to what was read."""

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Carry the tangents of what was read over to what was written.

        `direction_of` gives for an array the one that holds its tangents. Raises AutogradError if there is no
        forward mode.
        """
        raise AutogradError(f"'{self.label}' ({self.location}) has no forward mode")

    def run_recorded_tangent(self, direction_of: DirectionOf) -> None:
        """Do as `run_tangent`, and keep what `run_adjoint_tangent` will need and memory will not have any more."""
        self.run_tangent(direction_of)

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Run the adjoint, and carry the tangents of the gradients, which are the gradients of the directions."""
        raise AutogradError(f"'{self.label}' ({self.location}) has no second derivative")


class Recorder(Protocol):
    """Receives the operations that run while it is current."""

    def about_to_write(self, arrays: Sequence[RecordedArray]) -> None:
        """Keep what is needed of the arrays' values before an operation overwrites them; may refuse it by raising."""

    def record(self, event: Recordable) -> None:
        """Take note of an operation that has just run."""

    def note_foreign_write(self, arrays: Sequence[RecordedArray]) -> None:
        """Learn that another thread, in which this recorder is not current, wrote arrays."""

    def begin_scope(self, name: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Open a group of operations."""

    def end_scope(self) -> None:
        """Close the group opened last; an empty one may be forgotten."""


_current: Final[ContextVar[Recorder | None]] = ContextVar("warp_recorder", default=None)

current_recorder: Final = _current.get
"""Return the recorder of this thread and asynchronous task, or None."""


WriteListener = Callable[[Sequence[RecordedArray]], object]
_listeners: Final[list[WriteListener]] = []

_active: Final[list[tuple[int, Recorder]]] = []
"""The recorders that are current anywhere, with the thread."""


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[None]:
    """Make a recorder current inside a `with` block; None suspends recording."""
    token = _current.set(recorder)
    mark = None if recorder is None else (get_ident(), recorder)
    if mark is not None:
        _active.append(mark)
    try:
        yield
    finally:
        if mark is not None:
            _active.remove(mark)
        _current.reset(token)


def about_to_write(arrays: Sequence[RecordedArray]) -> None:
    """Tell the current recorder that an operation is going to write arrays.

    Every operation that is recorded calls this before it runs. Raises what the recorder raises to refuse it.
    """
    recorder = _current.get()
    if recorder is not None:
        recorder.about_to_write(arrays)


def mark_written(arrays: Sequence[RecordedArray], signature: Hashable = None) -> int:
    """Note that one operation wrote `arrays` and return its stamp.

    Every operation that writes calls this after it ran and before it is recorded, on a tape or off it. `signature` is
    the one of `Recordable`; it is only looked at while `is_watching()`.
    """
    stamp = next_stamp()
    note_writes(arrays, stamp, is_recorded=bool(_active))
    for array in arrays:
        array.note_write()
    if signature is not None:
        note_run(signature, stamp, _current.get())
    if _active:
        _tell_other_threads(arrays)
    if _listeners:
        for listener in tuple(_listeners):
            listener(arrays)
    return stamp


def listen_to_writes(listener: WriteListener) -> None:
    """Call a function after every write, in any thread, with the arrays written."""
    _listeners.append(listener)


def stop_listening(listener: WriteListener) -> None:
    """Call a function no longer that was given to `listen_to_writes`."""
    _listeners.remove(listener)


def _tell_other_threads(arrays: Sequence[RecordedArray]) -> None:
    here, current = get_ident(), _current.get()
    for thread, recorder in tuple(_active):
        if thread != here and recorder is not current:
            recorder.note_foreign_write(arrays)


def caller_location() -> str:
    """Return `file:line` of the innermost frame outside Warp."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _OWN_PACKAGES:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


_OWN_PACKAGES: Final = frozenset({"warp", "warp_autograd", "contextlib"})

LaunchEventFactory = Callable[..., Recordable]


class _LaunchEvents:
    """Where the launch machinery registers how an event is made from a kernel and its arguments."""

    factory: LaunchEventFactory | None = None


_launch_events: Final = _LaunchEvents()


def set_launch_event_factory(factory: LaunchEventFactory) -> None:
    """Register the function behind `make_launch_event`."""
    _launch_events.factory = factory


def make_launch_event(
    kernel: Any,
    dim: Any,
    max_blocks: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    device: Any,
    block_dim: int = 0,
    metadata: Mapping[str, Any] | None = None,
) -> Recordable:
    """Make the event of a launch that has already run, from the arguments of `Tape.record_launch`."""
    if _launch_events.factory is None:
        raise WarpError("launches cannot be recorded: the launch machinery is not loaded")
    return _launch_events.factory(
        kernel=kernel,
        dim=dim,
        max_blocks=max_blocks,
        inputs=inputs,
        outputs=outputs,
        device=device,
        block_dim=block_dim,
        metadata=metadata,
    )
