"""What the native handler does at one call of a kernel, as data: buffers, preparations and launches."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from warp.entries import ArgumentBlock, DeviceEntries, DeviceEntryPoint, EntryPoint, KernelEntries, launch_block

_DESCRIPTOR: Final = struct.Struct("=QQ4q4q4qii")  # wp_array of warp/native/abi.h
_BYTES: Final = np.dtype(np.uint8)  # JAX makes no 64-bit integers by default
_GRADIENT: Final = 8  # where in it the address of the gradient is
ZEROS: Final = 1 << 32
"""The number of an operand that handlers add: memory of zeros, for arrays without memory of their own."""
STREAM: Final = ZEROS + 1
CAPACITY: Final = ZEROS + 2
"""On CUDA devices, the memory of the stream of a record, and its size."""


@dataclass(frozen=True)
class Layout:
    """An array that a kernel gets: its shape as the kernel sees it, and what JAX's array of it is."""

    shape: tuple[int, ...]
    inner: tuple[int, ...]
    """The dimensions of one element, which JAX has last."""
    dtype: Any
    """NumPy's dtype of the scalars."""

    @property
    def full(self) -> tuple[int, ...]:
        """Return the shape in JAX."""
        return self.shape + self.inner

    @property
    def element_size(self) -> int:
        """Return the bytes of one element."""
        size: int = self.dtype.itemsize
        for extent in self.inner:
            size *= extent
        return size

    @property
    def size(self) -> int:
        """Return the bytes of the array."""
        size = self.element_size
        for extent in self.shape:
            size *= extent
        return size

    @property
    def strides(self) -> tuple[int, ...]:
        """Return bytes from one element to the next, by dimension."""
        found = []
        step = self.element_size
        for extent in reversed(self.shape):
            found.append(step)
            step *= extent
        return tuple(reversed(found))

    def descriptor(self, is_zeros: bool = False) -> bytes:
        """Return the `wp_array`, without addresses, or of zeros that all share one element."""
        ndim = len(self.shape)
        pad = (0,) * (4 - ndim)
        strides = ((0,) * ndim if is_zeros else self.strides) + pad
        return _DESCRIPTOR.pack(0, 0, *self.shape, *pad, *strides, *self.strides, *pad, ndim, 0)


@dataclass(frozen=True)
class Launch:
    """One launch: an entry point, and where in its arguments the addresses of which buffers go."""

    entry: EntryPoint | DeviceEntryPoint
    block: bytes
    arguments: bytes
    patches: tuple[tuple[int, int], ...]
    what: str
    """What the launch is of the kernel, for messages: "" or "adjoint of "."""


@dataclass(frozen=True)
class Record:
    """What launches keep for the next: numbers of the results that hold its parts, None for what is not needed."""

    places: int | None
    starts: int | None
    header: int | None = None
    """The record itself, on CUDA devices."""
    missing: int = 0
    """Where in it the bytes are that were wanting."""
    threads: int = 0
    share: int = 0
    """Bytes of the stream that each thread gets at first; 0 without a stream."""


@dataclass(frozen=True)
class Plan:
    """Everything the handler must know of a call; operands are the buffers of inputs, then of results."""

    entries: KernelEntries
    compiled: KernelEntries | DeviceEntries
    """What the launches are of."""
    inputs: tuple[Layout, ...]
    results: tuple[Layout, ...]
    preparations: tuple[tuple[int, int], ...]
    launches: tuple[Launch, ...]
    record: Record | None

    @cached_property
    def key(self) -> int:
        """Return a number that names the plan, the same in every process."""
        record = self.record
        parts = (
            self.entries.kernel.key,
            [(layout.shape, layout.inner, layout.dtype.str) for layout in self.inputs + self.results],
            self.preparations,
            [(_code_of(step.entry), step.block, step.arguments, step.patches, step.what) for step in self.launches],
            record if record is None else replace(record, share=min(record.share, 1)),  # it depends on what has run
        )
        return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little", signed=True)


def _code_of(entry: EntryPoint | DeviceEntryPoint) -> tuple[Any, ...]:
    if isinstance(entry, EntryPoint):
        return entry.identity, entry.flags
    return entry.identity, entry.grid, entry.block, entry.waits


@dataclass
class PlanBuilder:
    """Collects the buffers of a call, and what is done with them."""

    entries: KernelEntries
    compiled: KernelEntries | DeviceEntries
    inputs: list[Layout] = field(default_factory=list)
    results: list[Layout] = field(default_factory=list)
    _sources: list[tuple[int, int]] = field(default_factory=list)
    _launches: list[tuple[Launch, list[tuple[int, int]]]] = field(default_factory=list)
    _record: Record | None = None

    def add_input(self, layout: Layout) -> int:
        """Add an input and return its number."""
        self.inputs.append(layout)
        return len(self.inputs) - 1

    def add_result(self, layout: Layout, source: int | None = -1) -> int:
        """Add a result and return its number, which is negative: it counts down from -1.

        Before the launches it is a copy of the input `source`, or zeros where that is -1; None leaves it as it is.
        """
        self.results.append(layout)
        number = -len(self.results)
        if source is not None:
            self._sources.append((number, source))
        return number

    def add_scratch(self, size: int) -> int | None:
        """Add a result of `size` bytes that nobody sees and return its number; None if there are to be none."""
        return self.add_result(Layout((size,), (), _BYTES), None) if size else None

    def add_record(self, record: Record) -> None:
        """Let the launches share a record, in the memory of results."""
        self._record = record

    def launch_raw(
        self, entry: EntryPoint | DeviceEntryPoint, block: bytes, arguments: bytes, patches: Sequence[tuple[int, int]]
    ) -> None:
        """Add a launch of what is no kernel of the user; patches name operands by their number."""
        self._launches.append((Launch(entry, block, arguments, (), ""), list(patches)))

    def launch(
        self,
        entry: EntryPoint | DeviceEntryPoint,
        dim: tuple[int, ...],
        block: ArgumentBlock,
        arrays: Sequence[tuple[int, Layout, int | None, int | None]],
        what: str = "",
    ) -> None:
        """Add a launch.

        `arrays` gives for a parameter its number, its layout, and the numbers of the buffers with its values and its
        gradient. Without values it reads as zeros.
        """
        arguments = bytearray(block.template)
        patches: list[tuple[int, int]] = []
        for number, layout, values, gradient in arrays:
            offset = block.offsets[number]
            arguments[offset : offset + _DESCRIPTOR.size] = layout.descriptor(is_zeros=values is None)
            patches.append((offset, ZEROS if values is None else values))
            if gradient is not None:
                patches.append((offset + _GRADIENT, gradient))
        self._launches.append((Launch(entry, launch_block(dim), bytes(arguments), (), what), patches))

    def build(self) -> Plan:
        """Return the plan."""
        launches = tuple(
            Launch(
                launch.entry,
                launch.block,
                launch.arguments,
                tuple((offset, self._operand(number)) for offset, number in patches),
                launch.what,
            )
            for launch, patches in self._launches
        )
        record = self._record
        return Plan(
            self.entries,
            self.compiled,
            tuple(self.inputs),
            tuple(self.results),
            tuple((self._operand(number), source) for number, source in self._sources),
            launches,
            None
            if record is None
            else replace(
                record,
                places=self._place(record.places),
                starts=self._place(record.starts),
                header=self._place(record.header),
            ),
        )

    def _operand(self, number: int) -> int:
        if number >= ZEROS:
            return len(self.inputs) + len(self.results) + number - ZEROS
        return number if number >= 0 else len(self.inputs) - 1 - number

    def _place(self, number: int | None) -> int | None:
        return None if number is None else self._operand(number)
