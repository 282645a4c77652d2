"""Which operations gradients reach from the seeds, and through which arrays they must pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warp.recording import RecordedArray, storage_of
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
    for entry, is_carrier in zip(reversed(entries), reversed(carries), strict=True):
        event = entry.event
        if isinstance(event, CustomEvent):
            storages.update(id(storage_of(array)) for array in event.reads)
            continue
        touched = [array for array in event.writes if id(storage_of(array)) in storages]
        if not is_carrier or not touched:
            continue
        yield from (array for array in touched if not array.requires_grad and is_differentiable(array))
        storages.update(id(storage_of(array)) for array in event.reads if is_differentiable(array))


def is_differentiable(array: RecordedArray) -> bool:
    """Say whether an array holds floating-point numbers."""
    dtype = array.numpy().dtype
    return dtype.kind == "f" or dtype.names is not None


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
