"""The native handlers, one for a platform: compiled once, registered with JAX, and told the plans of calls."""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

import jax

from warp.entries import DeviceEntries, KernelEntries, compile_native
from warp.errors import WarpError
from warp_interop_jax.plan import Plan, PlanBuilder

INT: Final = ctypes.c_int64
POINTER: Final = ctypes.c_void_p
ZEROS_SIZE: Final = 1 << 16
"""Bytes of the memory of zeros: no element is larger."""
_FAULT_SIZE: Final = 80
_CAPSULE_NAME: Final = b"xla._CUSTOM_CALL_TARGET"


class _Operand(ctypes.Structure):
    _fields_ = (("rank", INT), ("size", INT))


class Pair(ctypes.Structure):
    """A `Preparation` or a `Patch` of native/plans.h."""

    _fields_ = (("first", INT), ("second", INT))


class NativePlan(ctypes.Structure):
    """The `Plan` of native/plans.h; what platforms add to it is for them to say."""

    _fields_ = (
        ("key", INT),
        ("next", POINTER),
        ("input_count", INT),
        ("result_count", INT),
        ("operands", ctypes.POINTER(_Operand)),
        ("preparations", ctypes.POINTER(Pair)),
        ("preparation_count", INT),
        ("steps", POINTER),
        ("step_count", INT),
        ("record", POINTER),
        ("devices", POINTER),
        ("device_count", INT),
    )


_DESCRIBE: Final = ctypes.CFUNCTYPE(None, POINTER, INT, POINTER, POINTER, INT)


class Handler(ABC):
    """A loaded handler and the plans that it knows, which live as long as the process."""

    def __init__(self, source: str) -> None:
        texts = [files("warp_interop_jax") / "native" / name for name in ("ffi.h", "plans.h", source)]
        self.library = compile_native("\n".join(text.read_text(encoding="utf-8") for text in texts))
        self._add = ctypes.CFUNCTYPE(None, POINTER)(self.library.address("wp_jax_add"))
        self._lock = threading.Lock()
        self._plans: dict[int, tuple[Plan, NativePlan, Any]] = {}
        self._by_address: dict[int, Plan] = {}
        self._describe = _DESCRIBE(self._write_fault)
        self.describe = ctypes.cast(self._describe, POINTER)
        """The address of a function that writes a message about a fault."""

    @abstractmethod
    def compiled(self, entries: KernelEntries) -> KernelEntries | DeviceEntries:
        """Return the entry points of a kernel for the platform."""

    @abstractmethod
    def add_record(self, builder: PlanBuilder, recording: Any, threads: int) -> None:
        """Add memory for what launches record, of `RecordingEntry` or `DeviceRecording`, and what makes it empty."""

    @abstractmethod
    def target(self, plan: Plan) -> str:
        """Return the name under which XLA knows the handler of a plan."""

    @abstractmethod
    def _extend(self, plan: Plan, made: NativePlan) -> Any:
        """Fill in steps and whatever else the platform adds; return what must live as long as the plan."""

    def add(self, plan: Plan) -> int:
        """Make a plan known and return its key."""
        key = plan.key
        with self._lock:
            if key not in self._plans:
                made = _native(plan)
                self._plans[key] = plan, made, self._extend(plan, made)
                self._by_address[ctypes.addressof(made)] = plan
                self._add(ctypes.addressof(made))
        return key

    def bind(self, tools: ctypes.Structure) -> None:
        """Tell the native code what it may call."""
        ctypes.CFUNCTYPE(None, POINTER)(self.library.address("wp_jax_bind"))(ctypes.addressof(tools))

    def _write_fault(self, address: int, step: int, fault: int, message: int, capacity: int) -> None:
        plan = self._by_address[address]
        launch = plan.launches[step]
        text = launch.what + plan.entries.describe(ctypes.string_at(fault, _FAULT_SIZE), launch.block)
        write_text(text, message, capacity)


def _native(plan: Plan) -> NativePlan:
    operands = [_Operand(len(layout.full), layout.size) for layout in plan.inputs + plan.results]
    return NativePlan(
        key=plan.key,
        input_count=len(plan.inputs),
        result_count=len(plan.results),
        operands=(_Operand * len(operands))(*operands),
        preparations=pairs(plan.preparations),
        preparation_count=len(plan.preparations),
        step_count=len(plan.launches),
    )


def pairs(given: Sequence[tuple[int, int]]) -> Any:
    """Return pairs of numbers as an array."""
    return (Pair * len(given))(*(Pair(*pair) for pair in given))


def write_text(text: str, target: int, capacity: int) -> None:
    """Write text, cut to fit and ended by a zero, to memory of a number of bytes."""
    data = text.encode()[: capacity - 1] + b"\0"
    ctypes.memmove(target, data, len(data))


def register_target(name: str, address: int, platform: str) -> None:
    """Register a function with XLA under a name. Raises WarpError if XLA refuses it.

    The backend is started before: what it finds registered when it starts, and refuses, would stop it.
    """
    jax.local_devices(backend="cpu" if platform == "cpu" else "cuda")
    try:
        jax.ffi.register_ffi_target(name, _capsule(address), platform=platform)
    except Exception as error:
        raise WarpError(f"XLA refuses the handler {name!r} on platform {platform!r}: {error}") from error


def _capsule(address: int) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (POINTER, ctypes.c_char_p, POINTER)
    return make(address, _CAPSULE_NAME, None)
