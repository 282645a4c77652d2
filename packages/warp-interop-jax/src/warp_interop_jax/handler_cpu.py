"""The handler for the CPU: it launches on Warp's worker pool."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from warp.entries import EntryPoint, KernelEntries, RecordingEntry, native_launcher
from warp_interop_jax.handler import INT, POINTER, ZEROS_SIZE, Handler, NativePlan, Pair, pairs, register_target
from warp_interop_jax.plan import Launch, Plan, PlanBuilder, Record

TARGET: Final = "warp_kernel"
"""The name under which XLA knows the handler."""
_START_SIZE: Final = 8


class _Step(ctypes.Structure):
    _fields_ = (
        ("entry", POINTER),
        ("launch", ctypes.c_char_p),
        ("arguments", ctypes.c_char_p),
        ("size", INT),
        ("patches", ctypes.POINTER(Pair)),
        ("patch_count", INT),
        ("flags", INT),
    )


class _Record(ctypes.Structure):
    _fields_ = (("places", INT), ("starts", INT))


class _Tools(ctypes.Structure):
    _fields_ = (("launch", POINTER), ("free", POINTER), ("zeros", POINTER), ("describe", POINTER))


class CpuHandler(Handler):
    """The handler for the CPU."""

    def __init__(self) -> None:
        super().__init__("handler_cpu.cpp")
        self._zeros = ctypes.create_string_buffer(ZEROS_SIZE)
        free = ctypes.cast(ctypes.CDLL(None).free, POINTER)
        self._tools = _Tools(native_launcher(), free, ctypes.addressof(self._zeros), self.describe)
        self.bind(self._tools)
        register_target(TARGET, self.library.address("wp_jax_call"), "cpu")

    def compiled(self, entries: KernelEntries) -> KernelEntries:
        """Return the entry points of a kernel for the platform."""
        return entries

    def add_record(self, builder: PlanBuilder, recording: RecordingEntry, threads: int) -> None:
        """Add memory for what launches record; the stream is allocated while they run."""
        places = builder.add_scratch(threads * recording.bytes_per_thread)
        starts = builder.add_scratch(threads * _START_SIZE) if recording.has_stream else None
        builder.add_record(Record(places, starts))

    def target(self, plan: Plan) -> str:
        """Return the name under which XLA knows the handler of a plan."""
        return TARGET

    def _extend(self, plan: Plan, made: NativePlan) -> Any:
        steps = (_Step * len(plan.launches))(*map(_step, plan.launches))
        made.steps = ctypes.addressof(steps)
        if plan.record is None:
            return steps
        places, starts = plan.record.places, plan.record.starts
        record = _Record(-1 if places is None else places, -1 if starts is None else starts)
        made.record = ctypes.addressof(record)
        return steps, record


def _step(launch: Launch) -> _Step:
    assert isinstance(launch.entry, EntryPoint), "the plan is of entries for the CPU"
    return _Step(
        launch.entry.address,
        launch.block,
        launch.arguments,
        len(launch.arguments),
        pairs(launch.patches),
        len(launch.patches),
        launch.entry.flags,
    )
