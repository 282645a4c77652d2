"""The recorded forms of copies and fills, and their adjoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warp._src.array.contents import Part, add_part, clear_part, copy_part, moved, taken
from warp._src.recording.recorder import DirectionOf, Recordable, caller_location, current_recorder

if TYPE_CHECKING:
    from warp._src.array.array import array


class CopyEvent(Recordable):
    """A copy: its adjoint moves the gradient of what was written to where it came from."""

    def __init__(self, target: Part, source: Part, detaches: bool) -> None:
        self.label = "copy"
        self.location = caller_location() if current_recorder() is not None else ""
        self.reads = (source.array,)
        self.writes = (target.array,)
        self.signature = ("copy", target.key(), source.key())
        self.detaches = detaches
        self._target = target
        self._source = source

    def own_elements(self) -> tuple[array, ...]:
        """Return both arrays if each element of one comes from the same place of the other."""
        is_whole = self._target.length is None and self._source.length is None
        source, target = self._source.array, self._target.array
        return (source, target) if is_whole and source.shape == target.shape else ()

    def run_adjoint(self) -> None:
        """Add the target's gradient to the source's and clear it."""
        gradient = self._target.array.grad
        if gradient is None:
            return
        target = self._target.of(gradient)
        moved = Part(taken(target))
        clear_part(target)
        source = self._source.array.grad
        if source is None:
            return
        if source.device is not gradient.device:
            near = source.new(moved.array.shape, source.element, source.device, False)
            copy_part(Part(near), moved)
            moved = Part(near)
        add_part(self._source.of(source), moved)

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Copy the tangents."""
        along = self._along(direction_of)
        copy_part(along._target, along._source)

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Move the gradients, and those of the directions in the same way."""
        self.run_adjoint()
        self._along(direction_of).run_adjoint()

    def _along(self, direction_of: DirectionOf) -> CopyEvent:
        target, source = (part._replace(array=direction_of(part.array)) for part in (self._target, self._source))
        return CopyEvent(target, source, self.detaches)


class GatherEvent(Recordable):
    """A copy of elements at positions: its adjoint adds the gradient of each to that of where it came from.

    `positions` are those of the source in row-major order; some may occur several times.
    """

    def __init__(self, target: array, source: array, positions: np.ndarray[Any, Any]) -> None:
        self.label = "gather"
        self.location = caller_location() if current_recorder() is not None else ""
        self.reads = (source,)
        self.writes = (target,)
        self.signature = ("gather", target.layout(), source.layout(), positions.tobytes())
        self._target = target
        self._source = source
        self._positions = positions

    def run_adjoint(self) -> None:
        """Add the target's gradient to the source's and clear it."""
        target, source = self._target, self._source
        if target.grad is None:
            return
        gathered = target.grad.numpy().copy()
        target.grad.contents.clear()
        if source.grad is None:
            return
        inner = source.element.shape
        order = np.argsort(self._positions, kind="stable")
        ordered = self._positions[order]
        repeats = np.arange(ordered.size) - np.searchsorted(ordered, ordered)
        for repeat in range(repeats.max(initial=-1) + 1):
            chosen = order[repeats == repeat]
            spread = np.zeros((source.size, *inner), gathered.dtype)
            spread[self._positions[chosen]] = gathered.reshape(-1, *inner)[chosen]
            source.grad.contents.add(moved(source, spread.reshape(source.shape + inner), source.element))

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Gather the tangents."""
        target, source = direction_of(self._target), direction_of(self._source)
        inner = source.element.shape
        target.contents.replace(source.numpy().reshape(-1, *inner)[self._positions].reshape(target.shape + inner))

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Spread the gradients, and those of the directions in the same way."""
        self.run_adjoint()
        GatherEvent(direction_of(self._target), direction_of(self._source), self._positions).run_adjoint()


class FillEvent(Recordable):
    """New contents from the host: the gradient of the old ones ends here."""

    def __init__(self, target: array, label: str) -> None:
        self.label = label
        self.location = caller_location() if current_recorder() is not None else ""
        self.reads = ()
        self.writes = (target,)
        self.signature = ("fill", target.layout())

    def run_adjoint(self) -> None:
        """Clear the gradient."""
        gradient = self.writes[0].grad
        if gradient is not None:
            gradient.contents.clear()

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Clear the tangents."""
        direction_of(self.writes[0]).contents.clear()

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Clear the gradient and that of the direction."""
        self.run_adjoint()
        direction_of(self.writes[0]).grad.contents.clear()
