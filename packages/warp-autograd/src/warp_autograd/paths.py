"""Which operations gradients reach from the seeds, and through which arrays they must pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warp import recording
from warp.errors import AutogradError
from warp.recording import RecordedArray, is_overlapping, storage_of
from warp_autograd.entries import CustomEvent, Entry, WriteHistory


def find_reached(entries: Sequence[Entry], seeds: Sequence[RecordedArray]) -> list[bool]:
    """Say for every operation whether a gradient can arrive at its adjoint; without seeds, from any array."""
    reached = [False] * len(entries)
    storages = {id(storage_of(array)) for array in seeds}
    for index in range(len(entries) - 1, -1, -1):
        event = entries[index].event
        if isinstance(event, CustomEvent):
            reached[index] = True
        else:
            reached[index] = any(
                array.requires_grad and (not seeds or id(storage_of(array)) in storages) for array in event.writes
            )
        if reached[index]:
            storages.update(id(storage_of(array)) for array in event.reads if array.requires_grad)
    return reached


def find_links(
    entries: Sequence[Entry], history: WriteHistory, seeds: Sequence[RecordedArray]
) -> Iterator[RecordedArray]:
    """Yield the arrays without gradient that gradients must pass through: written and read on their way."""
    carries = _find_carriers(entries, history)
    storages = {id(storage_of(array)) for array in seeds}
    if not seeds:
        storages.update(id(storage_of(a)) for entry in entries for a in entry.event.writes if a.requires_grad)
    for index in range(len(entries) - 1, -1, -1):
        event = entries[index].event
        if isinstance(event, CustomEvent):
            storages.update(id(storage_of(array)) for array in event.reads)
            continue
        touched = [array for array in event.writes if id(storage_of(array)) in storages]
        if not carries[index] or not touched:
            continue
        # What is read may be another wrapper of memory that an earlier operation writes.
        carried = [array for array in event.reads if _is_carried(array, index, history, carries)]
        yield from (a for a in (*touched, *carried) if not a.requires_grad and is_differentiable(a))
        storages.update(id(storage_of(array)) for array in event.reads if is_differentiable(array))


def check_shared_gradients(entries: Sequence[Entry]) -> None:
    """Raise AutogradError if arrays of the tape share memory that it writes, but not the gradient of that memory.

    Gradients would end in one of them and never reach what the other was computed from.
    """
    seen: dict[int, dict[int, RecordedArray]] = {}
    written = {id(storage_of(array)) for entry in entries for array in entry.event.writes}
    for entry in entries:
        for array in entry.event.arrays():
            storage = id(storage_of(array))
            if storage not in written or not array.requires_grad or not is_differentiable(array):
                continue
            shift = array.grad.bounds[0] - array.bounds[0]
            seen.setdefault(storage, {}).setdefault(shift, array)
            for other_shift, other in seen[storage].items():
                if other_shift != shift and is_overlapping(other, array):
                    raise AutogradError(
                        f"{entry.text} uses the {entry.event.describe(array)}, whose memory is also that of another "
                        f"array of shape {other.shape} on the tape, but the two have gradients of their own; use one "
                        "array, or views of it, or let them share a gradient: b.grad = a.grad"
                    )


def is_differentiable(array: RecordedArray) -> bool:
    """Say whether an array holds floating-point numbers."""
    return recording.is_differentiable(array.dtype) or array.numpy().dtype.names is not None


def _find_carriers(entries: Sequence[Entry], history: WriteHistory) -> list[bool]:
    carries: list[bool] = []
    for index, entry in enumerate(entries):
        if entry.event.detaches:
            carries.append(False)
            continue
        carries.append(any(_is_carried(array, index, history, carries) for array in entry.event.reads))
    return carries


def _is_carried(array: RecordedArray, index: int, history: WriteHistory, carries: Sequence[bool]) -> bool:
    if array.requires_grad:
        return True
    if not is_differentiable(array):
        return False
    writer = history.last_writer(array, index)
    return writer is not None and carries[writer]
