"""Compiled kernels by address, for frameworks that call native code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warp._src.launch.bind import Binder
from warp._src.launch.launch import launch_shape, program_of
from warp._src.launch.program import Entry, Kernel, Literal, RecordedEntry, Root, executor, load_native, variant_of
from warp._src.runtime.cpu import describe_fault, pack_launch
from warp._src.runtime.device import get_device
from warp._src.types.signature import is_tensor
from warp.errors import ArgumentError

Dims = tuple[int, ...]


@dataclass(frozen=True)
class EntryPoint:
    """A compiled function of the type `wp_entry` of native/abi.h."""

    address: int
    flags: int
    """How `native_launcher()` is to run it over the dimensions it was asked for."""
    identity: str
    """A digest of the code, the same in every process."""


@dataclass(frozen=True)
class RecordingEntry:
    """A forward entry point that keeps what its adjoint needs in a `wp_record`."""

    entry: EntryPoint
    bytes_per_thread: int
    """What `wp_record.places` must hold for each thread."""
    has_stream: bool
    """Whether `wp_record.starts` must hold 8 bytes for each thread; `stream` is allocated by malloc and to be freed."""


@dataclass(frozen=True)
class ArgumentBlock:
    """The struct of arguments that entry points take, with everything but the descriptors of arrays filled in."""

    template: bytes
    offsets: tuple[int, ...]
    """Where each parameter is, in bytes; arrays are a `wp_array` of native/abi.h. Directions follow the parameters."""


class KernelEntries:
    """The entry points of a kernel at concrete types, compiled when first asked for.

    `types` holds what the kernel takes in the order of its parameters: array types (`warp.array(dtype=float)`), types
    of values, or for a generic kernel Python numbers that stand for themselves. Arrays of one launch must not overlap
    where one of them is written.

    Raises ArgumentError for types that the kernel does not take, and CompileError.
    """

    def __init__(self, kernel: Any, types: Sequence[Any]) -> None:
        if not isinstance(kernel, Kernel):
            raise ArgumentError(f"expected a kernel, got {type(kernel).__qualname__}")
        self.kernel = kernel
        operands = [Literal(type) if type.__class__ in (int, float) else type for type in types]
        self._program = program_of(kernel, operands)
        self.types: tuple[Any, ...] = self._program.types
        """The concrete types of the parameters."""
        self.reads = self._numbers(frozenset(root for root, _ in self._program.accesses.reads))
        """Numbers of the parameters whose arrays the kernel reads."""
        self.writes = self._numbers(frozenset(root for root, _ in self._program.accesses.writes))
        """Numbers of the parameters whose arrays the kernel writes."""

    def arguments(self, values: Sequence[Any], with_directions: bool = False) -> ArgumentBlock:
        """Return the struct of arguments for values by parameter, None for arrays.

        `with_directions` is for forward mode, which takes a second argument for every parameter: the direction of a
        value is zero, that of an array is an array. Raises ArgumentError that names the parameter.
        """
        names = [name for name, _ in self.kernel.parameters]
        named = list(zip(names, self.types, strict=True))
        binder = Binder(self.kernel.key, named, frozenset())
        arguments = list(values)
        if with_directions:
            binder.pack(list(values), get_device("cpu"))
            named += [(f"{name}_dot", type) for name, type in named]
            binder = Binder(self.kernel.key, named, frozenset())
            arguments += [_zero(type, value) for type, value in zip(self.types, values, strict=True)]
        return ArgumentBlock(binder.pack(arguments, get_device("cpu")), tuple(binder.offsets))

    def forward(self, dim: Any) -> EntryPoint:
        """Return the kernel itself."""
        return _point(self._program.forward(), launch_shape(dim))

    def recording(self, dim: Any) -> RecordingEntry | None:
        """Return the kernel as it must run before its adjoint, where that needs values that the kernel overwrites."""
        found: RecordedEntry | None = self._program.recorded(variant_of(launch_shape(dim), False))
        if found is None:
            return None
        return RecordingEntry(_point(found.entry, launch_shape(dim)), found.bytes_per_thread, found.has_stream)

    def is_recorded(self, dim: Any) -> bool:
        """Tell whether `recording` gives an entry; nothing is compiled for it."""
        return self._program.needs_record(variant_of(launch_shape(dim), False))

    def needed(self, dim: Any) -> frozenset[int]:
        """Return the numbers of the parameters whose arrays the adjoint reads, as they are after the launch.

        Raises AutogradError, which names the lines, where there is no correct adjoint.
        """
        return self._numbers(self._program.needed(variant_of(launch_shape(dim), False)))

    def backward(self, dim: Any) -> EntryPoint:
        """Return the adjoint, which adds to the gradients of inputs and clears those of what the kernel overwrites.

        Raises AutogradError as `needed` does.
        """
        shape = launch_shape(dim)
        return _point(self._program.backward(variant_of(shape, False)).entry, shape)

    def tangent(self, dim: Any) -> EntryPoint:
        """Return forward mode: the kernel, which also writes the directions of its outputs. Raises AutogradError."""
        return _point(self._program.tangent(), launch_shape(dim))

    def adjoint_tangent(self, dim: Any) -> EntryPoint:
        """Return forward mode of the adjoint; gradients of directions hold those of gradients. Raises AutogradError."""
        shape = launch_shape(dim)
        return _point(self._program.adjoint_tangent(variant_of(shape, False)), shape)

    def describe(self, fault: bytes, block: bytes) -> str:
        """Say what a `wp_fault` means that a launch with this `wp_launch` left behind, and show the line."""
        line = int.from_bytes(fault[4:8], "little", signed=True)
        return f"{describe_fault(fault, block, self.kernel.key)}{self._program.excerpt(line)}"

    def _numbers(self, roots: frozenset[Root | None]) -> frozenset[int]:
        if None in roots:
            return frozenset(range(len(self.types)))
        return frozenset(int(root[0]) for root in roots if root is not None)


def _point(entry: Entry, shape: Dims) -> EntryPoint:
    size = 1
    for extent in shape:
        size *= extent
    flags = entry.ordered_flags(size) if entry.is_small(size) else entry.flags(shape, size, False)
    return EntryPoint(entry.address, flags, entry.identity)


def _zero(type: Any, value: Any) -> Any:
    return None if value is None else type() if is_tensor(type) else 0


def launch_block(dim: Any) -> bytes:
    """Return the `wp_launch` of native/abi.h for a launch; the launcher fills in `fault`."""
    block: bytes = pack_launch(launch_shape(dim))
    return block


def native_launcher() -> int:
    """Return the address of a function that runs entry points on the worker pool. It needs no interpreter lock.

    Its type is `int (wp_entry, const wp_launch*, const void* arguments, long flags, wp_fault*)`; it returns 0, or 1 for
    want of memory. The fault must be zero before, and its kind is not zero afterwards if a check in the kernel failed.
    """
    return executor().native_launch


def compile_native(source: str) -> Any:
    """Compile and load C++ text that uses native/abi.h and refers to no library; `address(name)` gives its functions.

    Functions are exported with `WP_EXPORT`. The object stays loaded for the life of the process. Raises ToolchainError.
    """
    return load_native(source)
