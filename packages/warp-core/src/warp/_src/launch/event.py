"""The record of a launch: what a tape keeps, and how its adjoint runs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from copy import copy as shallow_copy
from typing import Any

from warp._src.array.array import array
from warp._src.launch.bind import Binder, DirectionOf, captured, direction
from warp._src.launch.memory import any_overlap, arrays_in, find_arrays, gradients_disagree
from warp._src.launch.prepared import Prepared
from warp._src.launch.program import BackwardEntry, Entry, Kernel, Program, Variant, executor
from warp._src.recording.recorder import Recordable
from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.device import Device
from warp._src.runtime.record import LaunchRecord
from warp.errors import AutogradError


class LaunchEvent(Recordable):
    """One launch of a kernel with its arguments as they were; structs and tensors are copied.

    Tapes hold one per launch, so what can be derived is not stored.
    """

    tangent_runs_again = True
    __slots__ = (
        "_input_count",
        "_record",
        "_variant",
        "args",
        "block_dim",
        "device",
        "dim",
        "location",
        "max_blocks",
        "metadata",
        "prepared",
        "stamp",
    )

    def __init__(
        self,
        prepared: Prepared,
        dim: tuple[int, ...],
        args: Sequence[Any],
        input_count: int,
        device: Device,
        location: str,
        variant: Variant,
        record: LaunchRecord | None,
        max_blocks: int = 0,
        block_dim: int = 256,
        metadata: Any = None,
    ) -> None:
        self.prepared = prepared
        self.dim = dim
        self.args = tuple([arg if arg.__class__ is array else captured(arg) for arg in args])
        self.device = device
        self.max_blocks = max_blocks
        self.block_dim = block_dim
        self.metadata = metadata
        self.location = location
        self.stamp = 0
        self._input_count = input_count
        self._variant = variant
        self._record = record

    @property
    def kernel(self) -> Kernel:
        return self.prepared.program.kernel

    @property
    def label(self) -> str:  # type: ignore[override]  # derived, not stored
        return self.kernel.key

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.args[: self._input_count]

    @property
    def outputs(self) -> tuple[Any, ...]:
        return self.args[self._input_count :]

    @property
    def reads(self) -> list[Any]:  # type: ignore[override]  # derived, not stored
        return self.prepared.read(self.args)

    @property
    def writes(self) -> list[Any]:  # type: ignore[override]  # derived, not stored
        return self.prepared.written(self.args)

    @property
    def keeps_record(self) -> bool:  # type: ignore[override]  # derived, not stored
        return self._record is not None

    @property
    def signature(self) -> Hashable:  # type: ignore[override]  # derived, not stored
        return signature_of(self.prepared.program, self.dim, self.args)

    def arrays(self) -> list[Any]:
        plain = [arg for arg in self.args if arg.__class__ is array]
        return plain if len(plain) == len(self.args) else [found for arg in self.args for found in arrays_in(arg)]

    def describe(self, array: Any) -> str:
        """Name the parameter that an array was given to."""
        for (name, _), arg in zip(self.prepared.binder.parameters, self.args, strict=True):
            if any(found is array for found in arrays_in(arg)):
                return f"parameter '{name}', an {super().describe(array)}"
        return super().describe(array)

    def needed(self) -> list[Any]:
        """The arrays whose values the adjoint reads. Raises AutogradError if there is no correct adjoint."""
        return find_arrays(self.prepared.program.needed(self._variant), self.args)

    def own_elements(self) -> list[Any]:
        """The arrays of which every thread uses the element at its own index alone."""
        if self._variant.may_alias:
            return []
        rank_of_launch = 1 + max(self._variant.dimensions, default=-1)
        own = self.prepared.entry.summary.own
        return find_arrays([root for root, rank in own if rank >= rank_of_launch], self.args)

    def run_adjoint(self) -> None:
        """Run the kernel's adjoint on the gradients of its arrays."""
        backward = self._backward()
        if self._variant.may_alias:
            require_shared_gradients(self.args, self.writes, self.label)
        run_backward(backward, self.prepared.binder, self.dim, self.args, self.device, self.label, self._record)

    def checked(self) -> LaunchEvent:
        """The same launch, compiled so that a number that is not finite raises LaunchError with its line and thread."""
        program = self.prepared.program
        copy = shallow_copy(self)
        copy.prepared = Prepared(Program(program.kernel, program.types, verify_fp=True))
        return copy

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Run the kernel again together with its derivative along a direction.

        `direction_of` gives for an array the one that holds its tangents.
        """
        self._run_along(self.prepared.program.tangent(), direction_of, "tangent")

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Run the adjoint together with its derivative; gradients of the directions hold those of the gradients."""
        if self._record is not None:
            raise AutogradError(f"'{self.label}' ({self.location}) overwrites what it reads: no second derivative")
        self._run_along(self.prepared.program.adjoint_tangent(self._variant), direction_of, "adjoint's tangent")

    def _run_along(self, entry: Entry, direction_of: DirectionOf, what: str) -> None:
        size = math.prod(self.dim)
        if size == 0:
            return
        parameters = self.prepared.binder.parameters
        types = self.prepared.program.types
        args = [*self.args, *(direction(a, t, direction_of) for a, t in zip(self.args, types, strict=True))]
        doubled = Binder(self.label, [*parameters, *((f"{name}_dot", type) for name, type in parameters)], frozenset())
        packed = doubled.pack(args, self.device)
        flags = entry.flags(self.dim, size, self._variant.may_alias)
        executor().run(entry.address, pack_launch(self.dim), packed, flags, f"{what} of {self.label}")

    def _backward(self) -> BackwardEntry:
        backward = self.prepared.program.backward(self._variant)
        if self._record is None and self.prepared.program.recorded(self._variant) is not None:
            raise AutogradError(
                f"the adjoint of '{self.label}' ({self.location}) needs values that the kernel overwrites; it was "
                "recorded with record_launch(), which cannot keep them: launch it inside the tape"
            )
        return backward


def signature_of(program: Program, dim: tuple[int, ...], args: Sequence[Any]) -> Hashable:
    """Equal for two launches of one kernel with the same values on the same memory."""
    parts = [
        arg.layout() if isinstance(arg, array) else _value_part(type, arg)
        for arg, type in zip(args, program.types, strict=True)
    ]
    return (id(program), dim, *parts)


def _value_part(type: Any, value: Any) -> Hashable:
    if value is None:
        return None
    inside = arrays_in(value)
    if inside:
        return tuple(found.layout() for found in inside)
    packed: bytes = type.pack(value)
    return packed


def require_shared_gradients(args: Sequence[Any], written: Sequence[Any], label: str) -> None:
    """Raise AutogradError if arguments share memory but not their gradients."""
    if gradients_disagree(args, written):
        raise AutogradError(
            f"two arguments of '{label}' share memory, and one of them is written, but they do not share their "
            "gradients; pass one array twice, or views of one array"
        )


def run_backward(
    backward: BackwardEntry,
    binder: Binder,
    dim: tuple[int, ...],
    args: Sequence[Any],
    device: Device,
    label: str,
    record: LaunchRecord | None = None,
) -> None:
    """Run a compiled adjoint over the gradients that the array arguments have now."""
    size = math.prod(dim)
    if size == 0:
        return
    block = pack_launch(dim) if record is None else pack_launch.__wrapped__(dim, record=record.address)
    if backward.entry.is_small(size):
        flags = backward.entry.ordered_flags(size)
    else:
        gradients = [a.grad for arg in args for a in arrays_in(arg) if a.requires_grad]
        flags = backward.entry.flags(dim, size, any_overlap(gradients, gradients))
    executor().run(backward.entry.address, block, binder.pack(list(args), device), flags, f"adjoint of {label}")
