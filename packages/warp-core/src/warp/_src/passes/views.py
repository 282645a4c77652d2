"""Where the elements of a view lie in the array that it is a part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warp._src.ir.core import Type
from warp._src.ir.ops import View
from warp._src.passes.affine import Affine
from warp._src.types.signature import is_array


@dataclass(frozen=True)
class Axis:
    """One axis of the root: at a fixed index, or where an axis of the view starts and how far it steps."""

    start: Affine
    step: int = 0  # 0: fixed


Axes = tuple[Axis, ...]


def whole_axes(type: Type) -> Axes:
    """Give the axes of an array that is its own root."""
    array: Any = type
    return (Axis(Affine(), 1),) * array.ndim if is_array(type) else ()


def viewed_axes(op: View, axes: Axes | None, operands: Sequence[Affine]) -> Axes | None:
    """Give the axes of a view from those of what it is a view of, and the forms of its index operands."""
    if axes is None:
        return None
    found = list(axes)
    free = [number for number, axis in enumerate(axes) if axis.step]
    if op.axis is None:
        for number, index in zip(free, operands):  # noqa: B905 - leading axes only
            found[number] = _at(axes[number], index)
        return tuple(found)
    number = free[op.axis]
    start = _at(axes[number], operands[0])
    found[number] = start if len(operands) == 1 else Axis(start.start, axes[number].step * op.step)
    return tuple(found)


def root_indices(axes: Axes, indices: Sequence[Affine]) -> tuple[Affine, ...]:
    """Give the indices into the root for indices into a view."""
    rest = iter(indices)
    return tuple(axis.start if not axis.step else axis.start + next(rest) * axis.step for axis in axes)


def _at(axis: Axis, index: Affine) -> Axis:
    return Axis(axis.start + index * axis.step)


__all__ = ["Axes", "Axis", "root_indices", "viewed_axes", "whole_axes"]
