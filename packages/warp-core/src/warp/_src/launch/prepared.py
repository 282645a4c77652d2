"""A kernel at concrete types, compiled and ready to bind arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warp._src.array.array import array
from warp._src.launch.bind import Binder
from warp._src.launch.memory import find_arrays, overlaps
from warp._src.launch.program import Entry, Program, Variant, executor, variant_of
from warp._src.recording.recorder import about_to_write
from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.record import LaunchRecord
from warp.errors import LaunchError


class Prepared:
    """A kernel at concrete types, ready to bind arguments."""

    __slots__ = ("_plain_writes", "binder", "entry", "program", "reads", "writes")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.entry = program.forward()
        self.reads = frozenset(root for root, _ in self.entry.summary.reads)
        self.writes = frozenset(root for root, _ in self.entry.summary.writes)
        written = frozenset(int(root[0]) for root in self.writes if root is not None and len(root) == 1)
        # Most kernels write plain array parameters only: then no search is needed at each launch.
        self._plain_writes = tuple(sorted(written)) if len(written) == len(self.writes) else None
        if None in self.writes:
            written = frozenset(range(len(program.types)))
        names = [name for name, _ in program.kernel.parameters]
        self.binder = Binder(program.kernel.key, list(zip(names, program.types, strict=True)), written)

    def run(self, dim: tuple[int, ...], args: list[Any], packed: bytes) -> list[Any]:
        """Run the forward kernel; give the arrays it wrote."""
        written = self.written(args)
        self._run_entry(self.entry, dim, args, written, packed, None)
        return written

    def variant(self, dim: tuple[int, ...], args: Sequence[Any]) -> Variant:
        """What the adjoint of a launch depends on besides the types."""
        return variant_of(dim, overlaps(args, self.written(args)))

    def run_recorded(
        self, dim: tuple[int, ...], args: list[Any], packed: bytes, variant: Variant
    ) -> LaunchRecord | None:
        """Run the forward kernel for a tape; give what it kept, if its adjoint needs values that it overwrites."""
        written = self.written(args)
        about_to_write(written)
        recorded = self.program.recorded(variant)
        if recorded is None:
            self._run_entry(self.entry, dim, args, written, packed, None)
            return None
        record = recorded.make_record(math.prod(dim))
        self._run_entry(recorded.entry, dim, args, written, packed, record)
        record.check(self.program.kernel.key)
        return record

    def _run_entry(
        self,
        entry: Entry,
        dim: tuple[int, ...],
        args: list[Any],
        written: list[Any],
        packed: bytes,
        record: LaunchRecord | None,
    ) -> None:
        size = dim[0] if len(dim) == 1 else math.prod(dim)
        if not size:
            return
        if entry.is_small(size):
            flags = entry.ordered_flags(size)
        else:
            flags = entry.flags(dim, size, overlaps(args, written))
        block = pack_launch(dim) if record is None else pack_launch.__wrapped__(dim, record=record.address)
        try:
            executor().run(entry.address, block, packed, flags, self.program.kernel.key)
        except LaunchError as error:
            raise LaunchError(f"{error}{self.program.excerpt(error.line)}", error.line) from None

    def read(self, args: Sequence[Any]) -> list[Any]:
        """The arrays that the kernel reads."""
        return find_arrays(self.reads, args)

    def written(self, args: Sequence[Any]) -> list[Any]:
        """The arrays that the kernel writes."""
        if self._plain_writes is not None:
            found = [args[number] for number in self._plain_writes]
            for value in found:
                if value.__class__ is not array:
                    break
            else:
                return found
        return find_arrays(self.writes, args, is_written=True)
