"""The arrays among the arguments of kernels and functions, and copies of arguments to experiment on."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import warp as wp
from warp.codegen import StructInstance
from warp.recording import RecordedArray, recording
from warp_autograd.components import has_floats

_ALIGNMENT = 64


class ArgumentCopies:
    """Copies of arguments that share memory, and gradients, exactly where the arguments share memory.

    The arguments themselves are never written, so that tapes that hold them stay valid. Gradients are those of the
    originals' arrays, or, with `all_gradients`, of every floating-point array.
    """

    def __init__(self, arguments: Sequence[object], all_gradients: bool = False) -> None:
        arrays = {id(found): found for argument in arguments for found in arrays_in(argument)}
        made: dict[int, Any] = {}
        with recording(None):
            self._blocks = [_Block(members) for members in _overlapping(list(arrays.values()))]
            for block in self._blocks:
                for member in block.members:
                    copied = made[id(member)] = block.view_like(member)
                    if (all_gradients or member.requires_grad) and has_floats(member):
                        copied.grad = block.gradient_like(member)
        self.arguments = [_replaced(argument, made) for argument in arguments]

    def restore(self) -> None:
        """Put back the values that the arguments had when they were copied, and zero the gradients."""
        for block in self._blocks:
            block.restore()


class _Block:
    """Copies of the bytes that some overlapping arrays cover together, and as many for gradients."""

    def __init__(self, members: Sequence[Any]) -> None:
        self.members = members
        self._begin = min(member.bounds[0] for member in members)
        size = max(member.bounds[1] for member in members) - self._begin
        device = members[0].device
        # A copy is aligned as its original is.
        self._offset = self._begin % _ALIGNMENT
        self._bytes = wp.zeros(size + self._offset + _ALIGNMENT, dtype=wp.uint8, device=device)
        self._gradient_bytes = wp.zeros_like(self._bytes)
        if size:
            source = wp.array(ptr=self._begin, shape=(size,), dtype=wp.uint8, device=device)
            wp.copy(self._bytes, source, dest_offset=self._place_in(self._bytes), count=size)
        self._saved = self._bytes.contents.copy()

    def view_like(self, member: Any) -> Any:
        """Return the array in the copy that stands for one of the members."""
        return self._view(self._bytes, member)

    def gradient_like(self, member: Any) -> Any:
        """Return the gradient of the array that stands for one of the members."""
        return self._view(self._gradient_bytes, member)

    def restore(self) -> None:
        self._bytes.contents.replace(self._saved)
        self._gradient_bytes.contents.clear()

    def _view(self, holder: Any, member: Any) -> Any:
        return wp.array(
            ptr=holder.ptr + self._place_in(holder) + member.bounds[0] - self._begin,
            dtype=member.dtype,
            shape=member.shape,
            strides=member.strides,
            device=member.device,
            owner=holder,
        )

    def _place_in(self, holder: Any) -> int:
        place: int = self._offset + -holder.ptr % _ALIGNMENT
        return place


def arrays_in(value: object, name: str = "") -> list[Any]:
    """Return the arrays of an argument, members of structs included; of an indexed array, the one behind it."""
    return [array for _, array in named_arrays(value, name)]


def named_arrays(value: object, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of an argument with their names: `name`, or `name.field` for members of structs."""
    if isinstance(value, wp.indexedarray):
        yield name, value.data
    elif isinstance(value, RecordedArray):
        yield name, value
    elif isinstance(value, StructInstance):
        for field in dir(value):
            yield from named_arrays(getattr(value, field), f"{name}.{field}")


def _replaced(value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, wp.indexedarray):
        return wp.indexedarray(made[id(value.data)], value.indices)
    if isinstance(value, StructInstance):
        changed = copy.copy(value)
        for field in dir(value):
            if arrays_in(getattr(value, field)):
                setattr(changed, field, _replaced(getattr(value, field), made))
        return changed
    return made.get(id(value), value)


def _overlapping(arrays: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield groups of arrays whose ranges of bytes overlap."""
    group: list[Any] = []
    end = 0
    for array in sorted(arrays, key=lambda array: (array.device.alias, array.bounds)):
        if group and (array.bounds[0] >= end or array.device is not group[0].device):
            yield group
            group, end = [], 0
        group.append(array)
        end = max(end, array.bounds[1])
    if group:
        yield group
