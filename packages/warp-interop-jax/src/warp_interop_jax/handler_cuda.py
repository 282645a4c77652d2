"""The handler for CUDA devices: it queues on XLA's stream, through functions of the driver."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import warp as wp
from warp.entries import (
    DeviceEntries,
    DeviceEntryPoint,
    DeviceRecording,
    KernelEntries,
    driver_function,
    driver_message,
    primary_context,
)
from warp.errors import DeviceError
from warp_interop_jax.bridge import cuda_devices, device_from
from warp_interop_jax.handler import (
    INT,
    POINTER,
    ZEROS_SIZE,
    Handler,
    NativePlan,
    Pair,
    pairs,
    register_target,
    write_text,
)
from warp_interop_jax.plan import CAPACITY, STREAM, Launch, Plan, PlanBuilder, Record

TARGETS: Final = {True: "warp_kernel", False: "warp_kernel_without_graph"}
"""Names by whether a graph may capture the call."""
_FUNCTIONS: Final = (
    "cuLaunchKernel",
    "cuMemsetD8Async",
    "cuMemcpyAsync",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuStreamSynchronize",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
)
_RECORD_OFFSET: Final = 56  # of wp_launch.record in native/abi.h
_START_SIZE: Final = 8


class _Step(ctypes.Structure):
    _fields_ = (
        ("kernels", ctypes.POINTER(POINTER)),
        ("faults", ctypes.POINTER(POINTER)),
        ("parameters", ctypes.c_char_p),
        ("size", INT),
        ("patches", ctypes.POINTER(Pair)),
        ("patch_count", INT),
        ("grid", INT),
        ("block", INT),
        ("waits", INT),
    )


class _Record(ctypes.Structure):
    _fields_ = (("header", INT), ("missing", INT), ("threads", INT), ("share", INT))


class _Device(ctypes.Structure):
    _fields_ = (("context", POINTER), ("zeros", POINTER))


class _Tools(ctypes.Structure):
    _fields_ = (*((name, POINTER) for name in _FUNCTIONS), ("describe", POINTER), ("explain", POINTER))


_EXPLAIN: Final = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, POINTER, INT)


class CudaHandler(Handler):
    """The handler for CUDA devices. Kernels are compiled and loaded for each that JAX has in this process."""

    def __init__(self) -> None:
        super().__init__("handler_cuda.cpp")
        names = [device_from(device) for device in cuda_devices()]
        self._names = [name for name in names if name is not None]
        if not self._names:
            raise DeviceError("JAX has no CUDA device in this process, so no kernel can be prepared for one")
        self._ordinals = [int(name.partition(":")[2]) for name in self._names]
        self._zeros = [wp.zeros(ZEROS_SIZE, dtype=wp.uint8, device=name) for name in self._names]
        for name in self._names:
            wp.synchronize_stream(name)  # calls are on other streams
        self._devices = (_Device * (max(self._ordinals, default=-1) + 1))()
        for name, ordinal, zeros in zip(self._names, self._ordinals, self._zeros, strict=True):
            self._devices[ordinal] = _Device(primary_context(name), zeros.ptr)
        self._explain = _EXPLAIN(self._write_explanation)
        functions = [driver_function(self._names[0], name) for name in _FUNCTIONS]
        self._tools = _Tools(*functions, self.describe, ctypes.cast(self._explain, POINTER))
        self.bind(self._tools)
        for is_captured, symbol in ((True, "wp_jax_call"), (False, "wp_jax_call_without_graph")):
            register_target(TARGETS[is_captured], self.library.address(symbol), "CUDA")

    def compiled(self, entries: KernelEntries) -> DeviceEntries:
        """Return the entry points of a kernel for the platform."""
        return DeviceEntries(entries, self._names)

    def add_record(self, builder: PlanBuilder, recording: DeviceRecording, threads: int) -> None:
        """Add memory for what launches record, and a launch that makes it empty."""
        if not threads:
            return
        header = recording.header
        record = builder.add_scratch(header.size)
        assert record is not None, "a header has a size"
        places = builder.add_scratch(threads * recording.bytes_per_thread)
        starts = builder.add_scratch(threads * _START_SIZE) if recording.has_stream else None
        pointers = [(header.target, record), (header.places, places), (header.starts, starts)]
        patches = [(offset, number) for offset, number in pointers if number is not None]
        if recording.has_stream:
            patches += [(header.stream, STREAM), (header.capacity, CAPACITY)]
        builder.launch_raw(header.entry, header.block, header.arguments, patches)
        share = recording.share if recording.has_stream else 0
        builder.add_record(Record(places, starts, record, header.missing, threads, share))

    def target(self, plan: Plan) -> str:
        """Return the name under which XLA knows the handler of a plan."""
        waits = any(_entry(launch).waits for launch in plan.launches)
        return TARGETS[not waits and (plan.record is None or not plan.record.share)]

    def _extend(self, plan: Plan, made: NativePlan) -> Any:
        steps = (_Step * len(plan.launches))(*(self._step(plan, launch) for launch in plan.launches))
        made.steps = ctypes.addressof(steps)
        made.devices = ctypes.addressof(self._devices)
        made.device_count = len(self._devices)
        if plan.record is None or not plan.record.share:
            return steps
        record = _Record(plan.record.header, plan.record.missing, plan.record.threads, plan.record.share)
        made.record = ctypes.addressof(record)
        return steps, record

    def _step(self, plan: Plan, launch: Launch) -> _Step:
        assert isinstance(plan.compiled, DeviceEntries), "the plan is of entries for devices"
        entry = _entry(launch)
        first = len(launch.block)
        patches = [(first + offset, operand) for offset, operand in launch.patches]
        if plan.record is not None and plan.record.header is not None:
            patches.append((_RECORD_OFFSET, plan.record.header))
        faults = self._by_ordinal(plan.compiled.watch(launch.what, launch.block)) if entry.has_checks else None
        parameters = launch.block + launch.arguments
        return _Step(
            self._by_ordinal(entry.kernels),
            faults,
            parameters,
            len(parameters),
            pairs(patches),
            len(patches),
            entry.grid,
            entry.block,
            entry.waits,
        )

    def _by_ordinal(self, values: tuple[int, ...]) -> Any:
        found = (POINTER * len(self._devices))()
        for ordinal, value in zip(self._ordinals, values, strict=True):
            found[ordinal] = value
        return found

    def _write_explanation(self, function: bytes, code: int, message: int, capacity: int) -> None:
        write_text(f"warp: {driver_message(self._names[0], function.decode(), code)}", message, capacity)


def _entry(launch: Launch) -> DeviceEntryPoint:
    assert isinstance(launch.entry, DeviceEntryPoint), "the plan is of entries for devices"
    return launch.entry
