"""The record of a launch: what a tape keeps, and how its adjoint runs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from copy import copy as shallow_copy
from typing import Any

from warp._src.array.array import array
from warp._src.array.contents import use_on
from warp._src.launch.bind import Binder, DirectionOf, captured, direction
from warp._src.launch.memory import any_overlap, arrays_in, find_arrays, gradients_disagree, indices_in, memory_of
from warp._src.launch.prepared import Prepared
from warp._src.launch.program import BackwardEntry, Entry, Kernel, Program, Variant
from warp._src.recording.recorder import Recordable
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.device import Device
from warp._src.runtime.record import LaunchRecord
from warp.errors import AutogradError


class LaunchEvent(Recordable):
    """One launch of a kernel with its arguments as they were; structs and tensors are copied.

    Tapes hold one per launch, so what can be derived is not stored.
    """

    tangent_runs_again = True
    __slots__ = (
        "_behind",
        "_cut",
        "_input_count",
        "_record",
        "_tangent_record",
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
        behind: Sequence[Any] = (),
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
        self._behind = behind
        self._cut = tuple([found for found in behind if not found.requires_grad])
        self._tangent_record: LaunchRecord | None = None

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
        return self.prepared.read(self.args, self._behind)

    @property
    def writes(self) -> list[Any]:  # type: ignore[override]  # derived, not stored
        return self.prepared.written(self.args, self._behind)

    @property
    def keeps_record(self) -> bool:  # type: ignore[override]  # derived, not stored
        return self._record is not None

    @property
    def signature(self) -> Hashable:  # type: ignore[override]  # derived, not stored
        return signature_of(self.prepared.program, self.dim, self.args)

    def arrays(self) -> list[Any]:
        plain = [arg for arg in self.args if arg.__class__ is array]
        if len(plain) == len(self.args) and not self._behind:
            return plain
        return [*(found for arg in self.args for found in arrays_in(arg)), *self._behind]

    def describe(self, array: Any) -> str:
        """Name the parameter that an array was given to."""
        for (name, _), arg in zip(self.prepared.binder.parameters, self.args, strict=True):
            if any(found is array for found in arrays_in(arg)):
                return f"parameter '{name}', an {super().describe(array)}"
        return super().describe(array)

    def needed(self) -> list[Any]:
        """The arrays whose values the adjoint reads. Raises AutogradError if there is no correct adjoint."""
        needed = find_arrays(self.prepared.program.needed(self._variant), self.args, behind=self._behind)
        # Where an indexed array has its elements is needed even if their values are not.
        known = {id(found) for found in needed}
        return [*needed, *(i for arg in self.args for i in indices_in(arg) if id(i) not in known)]

    def own_elements(self) -> list[Any]:
        """The arrays of which every thread uses the element at its own index alone."""
        if self._variant.may_alias:
            return []
        rank_of_launch = 1 + max(self._variant.dimensions, default=-1)
        own = self.prepared.entry.summary.own
        return find_arrays([root for root, rank in own if rank >= rank_of_launch], self.args)

    def run_adjoint(self) -> None:
        """Run the kernel's adjoint on the gradients of its arrays."""
        for found in self._cut:
            if found.requires_grad:
                raise AutogradError(
                    f"'{self.label}' ({self.location}) reaches an {super().describe(found)} through an array of "
                    "structs, and a gradient must pass through it; it had none when it was put into the struct: give "
                    "it requires_grad=True before"
                )
        backward = self._backward()
        if self._variant.may_alias:
            require_shared_gradients(self.args, self.writes, self.label)
        run_backward(
            backward,
            self.prepared.binder,
            self.dim,
            self.args,
            self.device,
            self.label,
            self._record,
            self.block_dim,
            self.max_blocks,
        )

    def checked(self) -> LaunchEvent:
        """The same launch, compiled so that a number that is not finite raises LaunchError with its line and thread."""
        program = self.prepared.program
        copy = shallow_copy(self)
        copy.prepared = self.prepared.__class__(program.with_checks(verify_fp=True))
        return copy

    def run_tangent(self, direction_of: DirectionOf) -> None:
        """Run the kernel again together with its derivative along a direction.

        `direction_of` gives for an array the one that holds its tangents.
        """
        self._run_along(self.prepared.program.tangent(), direction_of, "tangent")

    def run_recorded_tangent(self, direction_of: DirectionOf) -> None:
        """Do as `run_tangent`, and keep values that the kernel overwrites, and their tangents, for its adjoint."""
        recorded = self.prepared.program.recorded_tangent(self._variant)
        if recorded is None or math.prod(self.dim) == 0:
            self.run_tangent(direction_of)
            return
        args, packed = self._packed_along(direction_of)
        directions = [direction_of(written) for written in self.writes]
        self._tangent_record = self.prepared.keep(
            recorded, self.dim, args, [*self.writes, *directions], packed, self.block_dim, self.max_blocks
        )

    def run_adjoint_tangent(self, direction_of: DirectionOf) -> None:
        """Run the adjoint together with its derivative; gradients of the directions hold those of the gradients."""
        entry = self.prepared.program.adjoint_tangent(self._variant)
        self._run_along(entry, direction_of, "adjoint's tangent", self._tangent_record)

    def _run_along(
        self, entry: Entry, direction_of: DirectionOf, what: str, record: LaunchRecord | None = None
    ) -> None:
        if math.prod(self.dim) == 0:
            return
        _, packed = self._packed_along(direction_of)
        label = f"{what} of {self.label}"
        entry.run(self.dim, packed, self._variant.may_alias, label, record, self.block_dim, self.max_blocks)

    def _packed_along(self, direction_of: DirectionOf) -> tuple[list[Any], bytes]:
        """Give the arguments of the launch followed by their directions, and both packed."""
        parameters = self.prepared.binder.parameters
        types = self.prepared.program.types
        args = [*self.args, *(direction(a, t, direction_of) for a, t in zip(self.args, types, strict=True))]
        doubled = Binder(self.label, [*parameters, *((f"{name}_dot", type) for name, type in parameters)], frozenset())
        packed = doubled.pack(args, self.device)
        return args, packed

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
    record: Any = None,
    block_dim: int = 256,
    max_blocks: int = 0,
) -> None:
    """Run a compiled adjoint over the gradients that the array arguments have now."""
    size = math.prod(dim)
    if size == 0:
        return
    bound = list(args)
    packed = binder.pack(bound, device)
    is_shared = False
    if isinstance(device, CudaDevice):
        use_on(device, memory_of(bound))
    elif not backward.entry.is_small(size):
        gradients = [a.grad for arg in args for a in arrays_in(arg) if a.requires_grad]
        is_shared = any_overlap(gradients, gradients)
    backward.entry.run(dim, packed, is_shared, f"adjoint of {label}", record, block_dim, max_blocks)
