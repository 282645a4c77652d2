"""Which elements of a result can depend on which elements of an input, as far as the analysis of kernels tells."""

from __future__ import annotations

from collections.abc import Sequence

from warp.recording import Recordable, RecordedArray, is_overlapping, storage_of
from warp_autograd.entries import CustomEvent

Elements = tuple[int, tuple[int, ...], tuple[int, ...]]


def is_elementwise(events: Sequence[Recordable], given: RecordedArray, result: RecordedArray) -> bool:
    """Say whether no element of `result` depends on an element of `given` at another index."""
    if given.shape != result.shape:
        return False
    followed = _Followed(given)
    for event in events:
        if not followed.pass_through(event):
            return False
    return followed.is_aligned(result)


class _Followed:
    """The arrays whose elements depend on the elements of one input at the same index, and on no other."""

    def __init__(self, given: RecordedArray) -> None:
        self._aligned: dict[Elements, RecordedArray] = {_elements(given): given}
        self._storages = {id(storage_of(given))}

    def is_aligned(self, array: RecordedArray) -> bool:
        return _elements(array) in self._aligned

    def pass_through(self, event: Recordable) -> bool:
        """Follow an operation; say whether elements at different indices are still apart."""
        reached = [array for array in event.reads if id(storage_of(array)) in self._storages]
        if isinstance(event, CustomEvent) or event.runs_again:
            return not any(id(storage_of(array)) in self._storages for array in event.arrays())
        if not reached:
            return True
        own = {id(array) for array in event.own_elements()}
        if not all(id(array) in own and self.is_aligned(array) for array in reached):
            return False
        for array in event.writes:
            if id(array) not in own or any(
                is_overlapping(other, array) and key != _elements(array) for key, other in self._aligned.items()
            ):
                return False
            self._aligned[_elements(array)] = array
            self._storages.add(id(storage_of(array)))
        return True


def _elements(array: RecordedArray) -> Elements:
    """Equal for arrays that have the same elements at the same indices."""
    return array.ptr, array.shape, array.strides
