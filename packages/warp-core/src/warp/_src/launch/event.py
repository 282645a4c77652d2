"""The record of a launch: what a tape keeps, and how its adjoint runs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

from warp._src.array.array import array
from warp._src.array.indexed import indexedarray
from warp._src.launch.bind import Binder, DirectionOf, arrays_in, captured, direction
from warp._src.launch.program import BackwardEntry, Entry, Program, Variant, executor
from warp._src.recording.recorder import Recordable
from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.device import Device
from warp._src.runtime.record import LaunchRecord
from warp.errors import ArgumentError, AutogradError


class LaunchEvent(Recordable):
    """One launch of a kernel with its arguments as they were; structs and tensors are copied."""

    def __init__(
        self,
        program: Program,
        binder: Binder,
        dim: tuple[int, ...],
        args: Sequence[Any],
        input_count: int,
        device: Device,
        location: str,
        max_blocks: int = 0,
        block_dim: int = 256,
        metadata: Any = None,
    ) -> None:
        self.kernel = program.kernel
        self.program = program
        self.dim = dim
        self.args = [captured(arg) for arg in args]
        self.inputs = self.args[:input_count]
        self.outputs = self.args[input_count:]
        self.device = device
        self.max_blocks = max_blocks
        self.block_dim = block_dim
        self.metadata = metadata
        self.label = program.kernel.key
        self.location = location
        self._binder = binder
        summary = program.forward().summary
        self.reads = roots_to_arrays({root for root, _ in summary.reads}, self.args)
        self.writes = roots_to_arrays({root for root, _ in summary.writes}, self.args)
        self.signature = signature_of(program, dim, self.args)
        self._variant = Variant.of(dim, overlaps(self.args, self.writes))
        self._record: LaunchRecord | None = None

    def keep(self, record: LaunchRecord | None) -> None:
        """Take what the launch kept for its adjoint."""
        self._record = record
        self.keeps_record = record is not None

    def arrays(self) -> list[Any]:
        return [found for arg in self.args for found in arrays_in(arg)]

    def describe(self, array: Any) -> str:
        """Name the parameter that an array was given to."""
        for (name, _), arg in zip(self._binder.parameters, self.args, strict=True):
            if any(found is array for found in arrays_in(arg)):
                return f"parameter '{name}', an {super().describe(array)}"
        return super().describe(array)

    def needed(self) -> list[Any]:
        return roots_to_arrays(self._backward().needed, self.args)

    def run_adjoint(self) -> None:
        """Run the kernel's adjoint on the gradients of its arrays."""
        run_backward(self._backward(), self._binder, self.dim, self.args, self.device, self.label, self._record)

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Run the kernel again together with its derivative along a direction.

        `direction_of` gives for an array the one that holds its tangents.
        """
        self._run_along(self.program.tangent(), direction_of, "tangent")

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Run the adjoint together with its derivative; gradients of the directions hold those of the gradients."""
        if self._record is not None:
            raise AutogradError(f"'{self.label}' ({self.location}) overwrites what it reads: no second derivative")
        self._run_along(self.program.adjoint_tangent(self._variant), direction_of, "adjoint's tangent")

    def _run_along(self, entry: Entry, direction_of: DirectionOf, what: str) -> None:
        size = math.prod(self.dim)
        if size == 0:
            return
        parameters = self._binder.parameters
        types = self.program.types
        args = [*self.args, *(direction(a, t, direction_of) for a, t in zip(self.args, types, strict=True))]
        doubled = Binder(self.label, [*parameters, *((f"{name}_dot", type) for name, type in parameters)], frozenset())
        packed = doubled.pack(args, self.device)
        flags = entry.flags(self.dim, size, self._variant.may_alias)
        executor().run(entry.address, pack_launch(self.dim), packed, flags, f"{what} of {self.label}")

    def _backward(self) -> BackwardEntry:
        backward = self.program.backward(self._variant)
        if self._record is None and self.program.recorded(self._variant) is not None:
            raise AutogradError(
                f"the adjoint of '{self.label}' ({self.location}) needs values that the kernel overwrites; it was "
                "recorded with record_launch(), which cannot keep them: launch it inside the tape"
            )
        return backward


def signature_of(program: Program, dim: tuple[int, ...], args: Sequence[Any]) -> Hashable:
    """Equal for two launches of one kernel with the same values on the same memory."""
    parts = [
        arg.layout() if isinstance(arg, array) else None if arg is None else _pack(type, arg)
        for arg, type in zip(args, program.types, strict=True)
        if not isinstance(arg, indexedarray)
    ]
    return (id(program), dim, *parts)


def _pack(type: Any, value: Any) -> bytes:
    packed: bytes = type.pack(value)
    return packed


def run_backward(
    backward: BackwardEntry,
    binder: Binder,
    dim: tuple[int, ...],
    args: list[Any],
    device: Device,
    label: str,
    record: LaunchRecord | None = None,
) -> None:
    """Run a compiled adjoint over the gradients that the array arguments have now."""
    size = math.prod(dim)
    if size == 0:
        return
    block = pack_launch(dim) if record is None else pack_launch.__wrapped__(dim, record=record.address)
    gradients = [a.grad for arg in args for a in arrays_in(arg) if a.requires_grad]
    flags = backward.entry.flags(dim, size, _any_overlap(gradients, gradients))
    executor().run(backward.entry.address, block, binder.pack(args, device), flags, f"adjoint of {label}")


def roots_to_arrays(roots: Any, args: Sequence[Any]) -> list[Any]:
    """Find the arrays that access roots name; the unknown root stands for every array."""
    found: dict[int, Any] = {}
    for root in roots:
        if root is None:
            found.update((id(a), a) for arg in args for a in arrays_in(arg))
            continue
        value = args[root[0]]
        for name in root[1:]:
            value = getattr(value, str(name), None)
        found.update((id(a), a) for a in arrays_in(value))
    return list(found.values())


def overlaps(args: Sequence[Any], writes: Sequence[Any]) -> bool:
    """Tell whether an array that is written shares memory with another argument."""
    everything = [a for arg in args for a in arrays_in(arg)]
    return _any_overlap(writes, everything)


def _any_overlap(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Tell whether one of `some`, which are among `others`, overlaps another; the same object twice does."""
    wanted = {id(a) for a in some}
    reached = reached_by_wanted = 0
    for low, high, identity in sorted((*bounds(a), id(a)) for a in others):
        if low >= high:
            continue
        is_wanted = identity in wanted
        if low < reached_by_wanted or (is_wanted and low < reached):
            return True
        reached = max(reached, high)
        if is_wanted:
            reached_by_wanted = max(reached_by_wanted, high)
    return False


def bounds(value: Any) -> tuple[int, int]:
    """Addresses of the first byte and past the last one of an array."""
    low, high = value.bounds
    return int(low), int(high)


def require_sequence(value: Any, name: str) -> list[Any]:
    """The arguments of a launch as a list. Raises ArgumentError for a single array, a common slip."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if value is None:
        return []
    raise ArgumentError(f"launch: {name} must be a list or tuple, got {value.__class__.__qualname__}")
