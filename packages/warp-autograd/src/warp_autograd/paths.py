"""Which operations gradients reach from the seeds, and through which arrays they must pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warp.errors import AutogradError
from warp.recording import RecordedArray, is_overlapping, storage_of
from warp_autograd.entries import Entry, WriteHistory


def find_reached(entries: Sequence[Entry], seeds: Sequence[RecordedArray]) -> list[bool]:
    """Say for every operation whether a gradient can arrive at its adjoint; without seeds, from any array."""
    reached = [False] * len(entries)
    storages = {id(storage_of(array)) for array in seeds}
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        reached[index] = entry.event.is_opaque
        for array in entry.writes:
            if array.requires_grad and (not seeds or id(storage_of(array)) in storages):
                reached[index] = True
        for array in entry.reads if reached[index] else ():
            if array.requires_grad:
                storages.add(id(storage_of(array)))
    return reached


def find_links(
    entries: Sequence[Entry], history: WriteHistory, seeds: Sequence[RecordedArray]
) -> Iterator[RecordedArray]:
    """Yield the arrays without gradient that gradients must pass through: written and read on their way."""
    carries = _find_carriers(entries, history)
    storages = {id(storage_of(array)) for array in seeds}
    if not seeds:
        storages.update(id(storage_of(a)) for entry in entries for a in entry.writes if a.requires_grad)
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if entry.event.is_opaque:
            storages.update(id(storage_of(array)) for array in entry.reads)
            continue
        touched = [array for array in entry.writes if id(storage_of(array)) in storages]
        if not carries[index] or not touched:
            continue
        # What is read may be another wrapper of memory that an earlier operation writes.
        for array in touched:
            if not array.requires_grad and array.is_differentiable:
                yield array
        for array in entry.reads:
            if array.is_differentiable:
                storages.add(id(storage_of(array)))
                if not array.requires_grad and _is_carried(array, index, history, carries):
                    yield array


def check_shared_gradients(entries: Sequence[Entry]) -> None:
    """Raise AutogradError if arrays of the tape share memory that it writes, but not the gradient of that memory.

    Gradients would end in one of them and never reach what the other was computed from.
    """
    seen: dict[int, dict[int, RecordedArray]] = {}
    compared: set[int] = set()
    written = {id(storage_of(array)) for entry in entries for array in entry.writes}
    for entry in entries:
        for array in entry.arrays:
            storage = id(storage_of(array))
            if id(array) in compared or storage not in written:
                continue
            compared.add(id(array))
            if not array.requires_grad or not array.is_differentiable:
                continue
            shift = array.grad.bounds[0] - array.bounds[0]
            known = seen.get(storage)
            if known is None:
                seen[storage] = {shift: array}
                continue
            known.setdefault(shift, array)
            for other_shift, other in known.items():
                if other_shift != shift and is_overlapping(other, array) and not _are_views_of_one(other, array):
                    raise AutogradError(
                        f"{entry.text} uses the {entry.event.describe(array)}, whose memory is also that of another "
                        f"array of shape {other.shape} on the tape, but the two have gradients of their own; use one "
                        "array, or views of it, or let them share a gradient: b.grad = a.grad"
                    )


def _are_views_of_one(first: RecordedArray, second: RecordedArray) -> bool:
    """Say whether arrays are views of one array whose gradient has other strides, so that addresses say nothing."""
    is_plain = first.grad.strides == first.strides and second.grad.strides == second.strides
    return not is_plain and first.root() is second.root() and first.grad.root() is second.grad.root()


def _find_carriers(entries: Sequence[Entry], history: WriteHistory) -> list[bool]:
    carries: list[bool] = []
    for index, entry in enumerate(entries):
        carries.append(False)
        for array in () if entry.event.detaches else entry.reads:
            if _is_carried(array, index, history, carries):
                carries[index] = True
                break
    return carries


def _is_carried(array: RecordedArray, index: int, history: WriteHistory, carries: Sequence[bool]) -> bool:
    if array.requires_grad:
        return True
    if not array.is_differentiable:
        return False
    writer = history.last_writer(array, index)
    return writer is not None and carries[writer]
