"""A kernel at concrete types on a CUDA device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from warp._src.array.contents import duplicate, replace, use_on
from warp._src.launch.memory import coincide, memory_of, overlaps
from warp._src.launch.prepared import Prepared
from warp._src.launch.program import Variant, variant_of
from warp._src.launch.program_cuda import CudaProgram
from warp._src.runtime.stream import get_stream
from warp.errors import AutogradError


class CudaPrepared(Prepared):
    """A kernel at concrete types, ready to bind arguments and to be queued on a device."""

    __slots__ = ()
    program: CudaProgram

    def variant(self, dim: tuple[int, ...], args: Sequence[Any], written: Sequence[Any]) -> Variant:
        """What the adjoint of a launch depends on besides the types."""
        may_alias = overlaps(args, written)
        return variant_of(dim, may_alias, may_alias and coincide(args))

    def behind(self, args: Sequence[Any], is_recorded: bool) -> Sequence[Any]:
        """The arrays behind arrays of structs; AutogradError where a tape asks for them while a graph is captured."""
        if not self._reaches_further or not get_stream(self.program.device).is_capturing:
            return super().behind(args, is_recorded)
        if is_recorded:
            raise AutogradError(
                f"kernel '{self.program.kernel.key}' reaches arrays through an array of structs, which a tape must "
                "look into; that cannot be done while a graph is captured"
            )
        return ()

    def _run_entry(
        self,
        entry: Any,
        dim: tuple[int, ...],
        args: list[Any],
        written: list[Any],
        packed: bytes,
        record: Any,
        block_dim: int,
        max_blocks: int,
    ) -> None:
        device = self.program.device
        if device.streams_made > 1 or device.captures:
            use_on(device, memory_of(args))
        entry.run(dim, packed, False, self.program.kernel.key, record, block_dim, max_blocks)

    def keep(
        self,
        recorded: Any,
        dim: tuple[int, ...],
        args: list[Any],
        written: list[Any],
        packed: bytes,
        block_dim: int,
        max_blocks: int,
    ) -> Any:
        def run() -> Any:
            record = recorded.make_record(math.prod(dim))
            self._run_entry(recorded.entry, dim, args, written, packed, record, block_dim, max_blocks)
            return record

        if recorded.share and math.prod(dim):
            return self._keep_stream(recorded, run, written)
        return run()

    def _keep_stream(self, recorded: Any, run: Callable[[], Any], written: list[Any]) -> Any:
        """Run the kernel, and once more if the values in its loops were more than there was room for."""
        if get_stream(self.program.device).is_capturing:
            return _CheckedLater(run(), self.program.kernel.key)
        before = [(array, duplicate(array)) for array in written]
        record = run()
        missing = record.missing()
        if missing:
            recorded.share += -(-missing // 8) * 8
            for array, values in before:
                replace(array, values)
            record = run()
        return record


class _CheckedLater:
    """The record of a launch in a graph, whose size was chosen by launches before; looked at when it is used."""

    def __init__(self, record: Any, label: str) -> None:
        self._record = record
        self._label = label
        self.nbytes = record.nbytes

    @property
    def address(self) -> int:
        """Return the address of the record. Raises AutogradError if it was too small."""
        if not get_stream(self._record.device).is_capturing and (missing := self._record.missing()):
            raise AutogradError(
                f"the launch of '{self._label}' in a graph kept too little for its adjoint: {missing} bytes more per "
                "work item were needed; launch it once on a tape before the capture, with as many iterations"
            )
        address: int = self._record.address
        return address
