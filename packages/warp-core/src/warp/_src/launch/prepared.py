"""A kernel at concrete types, compiled and ready to bind arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warp._src.array.array import array
from warp._src.launch.behind import arrays_behind
from warp._src.launch.bind import Binder
from warp._src.launch.memory import find_arrays, overlaps
from warp._src.launch.program import Entry, Program, RecordedEntry, Root, Variant, executor, variant_of
from warp._src.recording.recorder import about_to_write
from warp._src.recording.storage import is_watching
from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.record import LaunchRecord
from warp._src.types.arrays import ArrayType
from warp.errors import LaunchError


class Prepared:
    """A kernel at concrete types, ready to bind arguments."""

    __slots__ = (
        "_accessed",
        "_guarded",
        "_members",
        "_plain_reads",
        "_plain_writes",
        "_reaches_further",
        "binder",
        "entry",
        "program",
        "reads",
        "writes",
    )

    def __init__(self, program: Program) -> None:
        self.program = program
        self.entry = program.forward()
        self.reads = frozenset(root for root, _ in self.entry.summary.reads)
        self.writes = frozenset(root for root, _ in self.entry.summary.writes)
        # Most kernels use plain array parameters only: then no search is needed at each launch.
        self._plain_reads, self._plain_writes = _plain(self.reads), _plain(self.writes)
        self._reaches_further = None in self.reads or None in self.writes
        paths = () if program.checks_bounds else _access_paths(program, self.reads | self.writes)
        self._accessed = tuple(path[0] for path in paths if len(path) == 1)
        self._members = tuple(path for path in paths if len(path) > 1)
        self._guarded: Prepared | None = None
        if None in self.writes:
            written = frozenset(range(len(program.types)))
        else:
            written = frozenset(int(root[0]) for root in self.writes if root is not None and len(root) == 1)
        names = [name for name, _ in program.kernel.parameters]
        self.binder = Binder(program.kernel.key, list(zip(names, program.types, strict=True)), written)

    def run(
        self,
        dim: tuple[int, ...],
        args: list[Any],
        written: list[Any],
        packed: bytes,
        block_dim: int = 256,
        max_blocks: int = 0,
    ) -> None:
        """Run the forward kernel."""
        if self._lacks_array(args):
            self._with_checks().run(dim, args, written, packed, block_dim, max_blocks)
        else:
            self._run_entry(self.entry, dim, args, written, packed, None, block_dim, max_blocks)

    def variant(self, dim: tuple[int, ...], args: Sequence[Any], written: Sequence[Any]) -> Variant:
        """What the adjoint of a launch depends on besides the types."""
        return variant_of(dim, overlaps(args, written))

    def run_recorded(
        self,
        dim: tuple[int, ...],
        args: list[Any],
        written: list[Any],
        packed: bytes,
        variant: Variant,
        block_dim: int = 256,
        max_blocks: int = 0,
    ) -> Any:
        """Run the forward kernel for a tape; give what it kept, if its adjoint needs values that it overwrites."""
        if self._lacks_array(args):
            return self._with_checks().run_recorded(dim, args, written, packed, variant, block_dim, max_blocks)
        about_to_write(written)
        recorded = self.program.recorded(variant)
        if recorded is None:
            self._run_entry(self.entry, dim, args, written, packed, None, block_dim, max_blocks)
            return None
        return self.keep(recorded, dim, args, written, packed, block_dim, max_blocks)

    def keep(
        self,
        recorded: RecordedEntry,
        dim: tuple[int, ...],
        args: list[Any],
        written: list[Any],
        packed: bytes,
        block_dim: int,
        max_blocks: int,
    ) -> Any:
        """Run the forward kernel that keeps values for its adjoint; give what it kept."""
        record = recorded.make_record(math.prod(dim))
        self._run_entry(recorded.entry, dim, args, written, packed, record, block_dim, max_blocks)
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
        block_dim: int,
        max_blocks: int,
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

    def _lacks_array(self, args: list[Any]) -> bool:
        """Tell whether None stands for an array that the kernel accesses."""
        for number in self._accessed:
            if args[number] is None:
                return True
        return any(_member(args, path) is None for path in self._members) if self._members else False

    def _with_checks(self) -> Prepared:
        """The same kernel with checked indices: it may take None for an array behind a condition, and only there."""
        if self._guarded is None:
            self._guarded = self.__class__(self.program.with_checks(checks_bounds=True))
        return self._guarded

    def behind(self, args: Sequence[Any], is_recorded: bool) -> Sequence[Any]:
        """The arrays that the kernel may reach through arrays of structs, as these are now, if a tape asks for them."""
        return arrays_behind(args) if self._reaches_further and (is_recorded or is_watching()) else ()

    def read(self, args: Sequence[Any], behind: Sequence[Any] = ()) -> list[Any]:
        """The arrays that the kernel reads; `behind` are those that it may reach through arrays of structs."""
        found = _plain_arrays(self._plain_reads, args)
        return find_arrays(self.reads, args, behind=behind) if found is None else found

    def written(self, args: Sequence[Any], behind: Sequence[Any] = ()) -> list[Any]:
        """The arrays that the kernel writes; `behind` are those that it may reach through arrays of structs."""
        found = _plain_arrays(self._plain_writes, args)
        return find_arrays(self.writes, args, is_written=True, behind=behind) if found is None else found


def _plain(roots: frozenset[Root | None]) -> tuple[int, ...] | None:
    """The numbers of the parameters, if access roots are parameters and nothing inside them."""
    numbers = [int(root[0]) for root in roots if root is not None and len(root) == 1]
    return tuple(sorted(numbers)) if len(numbers) == len(roots) else None


def _plain_arrays(numbers: tuple[int, ...] | None, args: Sequence[Any]) -> list[Any] | None:
    if numbers is None:
        return None
    found = [args[number] for number in numbers]
    for value in found:
        if value.__class__ is not array:
            return None
    return found


def _access_paths(program: Program, roots: frozenset[Root | None]) -> tuple[Any, ...]:
    """The arrays, as a parameter's number and names of members, of which None must not stand for."""
    named = {root for root in roots if root is not None}
    if None in roots:
        named.update((number,) for number, type in enumerate(program.types) if isinstance(type, ArrayType))
    return tuple(sorted(named, key=str))


def _member(args: Sequence[Any], path: Sequence[Any]) -> Any:
    value = args[path[0]]
    for name in path[1:]:
        value = getattr(value, name)
    return value
