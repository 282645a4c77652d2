"""The recorded forms of copies and fills, and their adjoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warp._src.array.memory import Values
from warp._src.recording.accumulate import accumulate, clear
from warp._src.recording.recorder import DirectionOf, Recordable, caller_location, current_recorder

if TYPE_CHECKING:
    from warp._src.array.array import array


class Part(NamedTuple):
    """All elements of an array, or those at one index array per dimension, which start at `offset`."""

    array: array
    positions: tuple[Any, ...] | None = None
    offset: int = 0

    def read(self, values: Values) -> Values:
        """Return the part of the array's values or gradient."""
        return values if self.positions is None else values[self.positions]

    def write(self, values: Values, new: Values) -> None:
        """Replace the part of the array's values or gradient."""
        values[... if self.positions is None else self.positions] = new

    def key(self) -> tuple[Any, ...]:
        """Return what two equal parts have in common."""
        return (self.array.layout(), self.offset, None if self.positions is None else len(self.positions[0]))


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
        is_whole = self._target.positions is None and self._source.positions is None
        source, target = self._source.array, self._target.array
        return (source, target) if is_whole and source.shape == target.shape else ()

    def run_adjoint(self) -> None:
        """Add the target's gradient to the source's and clear it."""
        gradient = self._target.array.grad
        if gradient is None:
            return
        values = gradient._values
        moved = np.array(self._target.read(values))
        self._target.write(values, np.zeros((), values.dtype))
        source = self._source.array.grad
        if source is not None:
            current = self._source.read(source._values)
            accumulate(current, moved, self._source.array.dtype)
            if self._source.positions is not None:
                self._source.write(source._values, current)

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Copy the tangents."""
        along = self._along(direction_of)
        along._target.write(along._target.array._values, along._source.read(along._source.array._values))

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Move the gradients, and those of the directions in the same way."""
        self.run_adjoint()
        self._along(direction_of).run_adjoint()

    def _along(self, direction_of: DirectionOf) -> CopyEvent:
        target, source = (part._replace(array=direction_of(part.array)) for part in (self._target, self._source))
        return CopyEvent(target, source, self.detaches)


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
            clear(gradient.numpy())

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Clear the tangents."""
        clear(direction_of(self.writes[0]).numpy())

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Clear the gradient and that of the direction."""
        self.run_adjoint()
        clear(direction_of(self.writes[0]).grad.numpy())
