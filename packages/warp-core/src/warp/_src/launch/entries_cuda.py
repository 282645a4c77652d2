"""Kernels compiled for CUDA devices, for frameworks whose native code queues them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warp import config
from warp._src.launch.entries import Dims, KernelEntries
from warp._src.launch.launch import launch_shape, prepare_on
from warp._src.launch.program import variant_of
from warp._src.launch.program_cuda import CudaEntry, CudaProgram, CudaRecordedEntry
from warp._src.runtime import transfers
from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.cuda_record import empty_record
from warp._src.runtime.device import DeviceLike, get_device
from warp._src.runtime.faults import Suspect
from warp.errors import DeviceError


@dataclass(frozen=True)
class DeviceEntryPoint:
    """A compiled kernel of two parameters by value: a `wp_launch` of native/abi.h and the struct of arguments."""

    kernels: tuple[int, ...]
    """What `cuLaunchKernel` takes, by device."""
    grid: int
    """Blocks; 0 where there is nothing to do."""
    block: int
    """Threads of a block."""
    has_checks: bool
    """Whether it reports to `wp_launch.fault`, if that is not null; see `DeviceEntries.watch`."""
    waits: bool
    """Whether the host is to wait for it and look at the fault: in debug mode, or with `config.verify_cuda`."""
    identity: str
    """A digest of the code, the same in every process and on every device."""


@dataclass(frozen=True)
class RecordHeader:
    """A launch that makes a `wp_record` empty, which kernels find at `wp_launch.record`, in the memory of a device."""

    entry: DeviceEntryPoint
    block: bytes
    """Its `wp_launch`."""
    arguments: bytes
    """Its arguments, all but addresses and the capacity of the stream."""
    size: int
    """Bytes of the record; it is to be aligned to 8."""
    target: int
    """Where in the arguments the address of the record goes, and those of `places`, `starts` and `stream`."""
    places: int
    starts: int
    stream: int
    capacity: int
    """Where the bytes of the stream go."""
    missing: int
    """Where in the record the bytes are that were wanting for the neediest work item, after the launch."""


@dataclass(frozen=True)
class DeviceRecording:
    """A forward kernel that keeps what its adjoint needs in a `wp_record`."""

    entry: DeviceEntryPoint
    bytes_per_thread: int
    """What `wp_record.places` must hold for each thread."""
    has_stream: bool
    """Whether there must be 8 bytes in `starts` for each thread, and a stream, of which each thread has a part."""
    share: int
    """How many bytes each thread had better have there; only the launch shows how many it needs."""
    header: RecordHeader


class DeviceEntries:
    """The entry points of a kernel at concrete types on CUDA devices, compiled and loaded when first asked for.

    Handles are by device, in the order of `devices`. They are for the primary contexts, which must be current when
    they are launched. The struct of arguments is that of the kernel's `KernelEntries`.

    Raises DeviceError for a device that is not one of CUDA, CompileError and, as `KernelEntries` does, AutogradError,
    also for gradients that would depend on the order of the threads.
    """

    def __init__(self, entries: KernelEntries, devices: Sequence[DeviceLike]) -> None:
        self._kernel = entries.kernel
        self.devices = tuple(map(_cuda_device, devices))
        if not self.devices:
            raise DeviceError(f"kernel '{self._kernel.key}': there is no CUDA device to compile it for")
        prepared = [prepare_on(entries.kernel, entries.types, device) for device in self.devices]
        self._programs: list[CudaProgram] = [found.program for found in prepared]

    def forward(self, dim: Any) -> DeviceEntryPoint:
        """Return the kernel itself."""
        return self._point([program.forward() for program in self._programs], launch_shape(dim))

    def recording(self, dim: Any) -> DeviceRecording | None:
        """Return the kernel as it must run before its adjoint, where that needs values that the kernel overwrites."""
        shape = launch_shape(dim)
        variant = variant_of(shape, False)
        found: list[Any] = [program.recorded(variant) for program in self._programs]
        known: list[CudaRecordedEntry] = [recorded for recorded in found if recorded is not None]
        if not known:
            return None
        entry = self._point([recorded.entry for recorded in known], shape)
        share = max(recorded.share for recorded in known)
        return DeviceRecording(entry, known[0].bytes_per_thread, known[0].has_stream, share, self._header())

    def backward(self, dim: Any) -> DeviceEntryPoint:
        """Return the adjoint, which adds to the gradients of inputs and clears those of what the kernel overwrites."""
        shape = launch_shape(dim)
        return self._point([program.backward(variant_of(shape, False)).entry for program in self._programs], shape)

    def tangent(self, dim: Any) -> DeviceEntryPoint:
        """Return forward mode: the kernel, which also writes the directions of its outputs."""
        return self._point([program.tangent() for program in self._programs], launch_shape(dim))

    def adjoint_tangent(self, dim: Any) -> DeviceEntryPoint:
        """Return forward mode of the adjoint; gradients of directions hold those of gradients."""
        shape = launch_shape(dim)
        return self._point([program.adjoint_tangent(variant_of(shape, False)) for program in self._programs], shape)

    def watch(self, what: str, block: bytes) -> tuple[int, ...]:
        """Return by device where launches with a `wp_launch` are to report what a check finds.

        Waits of Warp (`warp.synchronize`) raise what they find there as a LaunchError and clear it. Native code may do
        so sooner: `KernelEntries.describe` says what it means. `what` is the launch of the kernel: "adjoint of ".
        """
        label = f"{what}{self._kernel.key}"
        found = []
        for program in self._programs:
            with program.device.active(), program.device.relaxed():
                found.append(program.device.faults.watch(Suspect(0, label, block, program.excerpt, is_repeated=True)))
        return tuple(found)

    def _point(self, entries: Sequence[Any], shape: Dims) -> DeviceEntryPoint:
        first: CudaEntry = entries[0]
        size, block = math.prod(shape), min(transfers.BLOCK, first.largest_block)
        return DeviceEntryPoint(
            tuple(entry.kernel for entry in entries),
            transfers.grid_for(size, block) if size else 0,
            block,
            first.may_fault,
            first.waits or bool(config.verify_cuda),
            first.identity,
        )

    def _header(self) -> RecordHeader:
        record = empty_record()
        target = transfers.Elements(0, (1,), (record.size,), record.size, 0, 1, True)
        items, arguments = transfers.pack_fill(target, record.header)
        kernels = tuple(transfers.filler(device) for device in self.devices)
        entry = DeviceEntryPoint(kernels, transfers.grid_for(items), transfers.BLOCK, False, False, "filler")
        first = transfers.PATTERN_OFFSET
        places, starts, stream = (first + offset for offset in record.pointers)
        block = pack_launch((items,))
        capacity = first + record.capacity
        return RecordHeader(entry, block, arguments, record.size, 0, places, starts, stream, capacity, record.missing)


def _cuda_device(device: DeviceLike) -> CudaDevice:
    found = get_device(device)
    if not isinstance(found, CudaDevice):
        raise DeviceError(f"device '{found}' is not a CUDA device")
    return found


def driver_function(device: DeviceLike, name: str) -> int:
    """Return the address of a function of the CUDA driver, such as "cuLaunchKernel", in its version of CUDA 12.0."""
    return _cuda_device(device).driver.function(name)


def driver_message(device: DeviceLike, name: str, code: int) -> str:
    """Say what it means that a function of the CUDA driver has returned a code other than 0, and what to do."""
    return _cuda_device(device).driver.explain(name, code)


def primary_context(device: DeviceLike) -> int:
    """Return the handle of the context in which a CUDA device is used, by Warp as by frameworks."""
    return _cuda_device(device).context
