"""The native handler: compiled once, registered with JAX, and told the plans of calls."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jax

from warp.entries import compile_native, native_launcher
from warp.errors import WarpError
from warp_interop_jax.plan import Launch, Plan

TARGET: Final = "warp_kernel"
"""The name under which XLA knows the handler."""

_INT: Final = ctypes.c_int64
_POINTER: Final = ctypes.c_void_p
_FAULT_SIZE: Final = 80
_CAPSULE_NAME: Final = b"xla._CUSTOM_CALL_TARGET"


class _Operand(ctypes.Structure):
    _fields_ = (("rank", _INT), ("size", _INT))


class _Pair(ctypes.Structure):
    _fields_ = (("first", _INT), ("second", _INT))


class _Step(ctypes.Structure):
    _fields_ = (
        ("entry", _POINTER),
        ("launch", ctypes.c_char_p),
        ("arguments", ctypes.c_char_p),
        ("size", _INT),
        ("patches", ctypes.POINTER(_Pair)),
        ("patch_count", _INT),
        ("flags", _INT),
    )


class _Plan(ctypes.Structure):
    _fields_ = (
        ("key", _INT),
        ("next", _POINTER),
        ("input_count", _INT),
        ("result_count", _INT),
        ("operands", ctypes.POINTER(_Operand)),
        ("preparations", ctypes.POINTER(_Pair)),
        ("preparation_count", _INT),
        ("steps", ctypes.POINTER(_Step)),
        ("step_count", _INT),
        ("has_record", _INT),
        ("places", _INT),
        ("starts", _INT),
        ("describe", _POINTER),
    )


class _Tools(ctypes.Structure):
    _fields_ = (("launch", _POINTER), ("free", _POINTER))


_DESCRIBE: Final = ctypes.CFUNCTYPE(None, _POINTER, _INT, _POINTER, _POINTER, _INT)


class Handler:
    """The loaded handler and the plans that it knows, which live as long as the process."""

    def __init__(self) -> None:
        library = compile_native(files("warp_interop_jax").joinpath("handler.cpp").read_text(encoding="utf-8"))
        self._tools = _Tools(native_launcher(), ctypes.cast(ctypes.CDLL(None).free, _POINTER))
        ctypes.CFUNCTYPE(None, _POINTER)(library.address("wp_jax_bind"))(ctypes.addressof(self._tools))
        self._add = ctypes.CFUNCTYPE(None, _POINTER)(library.address("wp_jax_add"))
        self._describe = _DESCRIBE(self._write_message)
        self._lock = threading.Lock()
        self._plans: dict[int, tuple[Plan, _Plan]] = {}
        self._by_address: dict[int, Plan] = {}
        register_target(TARGET, library.address("wp_jax_call"), "cpu")

    def add(self, plan: Plan) -> int:
        """Make a plan known and return its key."""
        key = plan.key
        with self._lock:
            if key not in self._plans:
                made = self._native(plan)
                self._plans[key] = plan, made
                self._by_address[ctypes.addressof(made)] = plan
                self._add(ctypes.addressof(made))
        return key

    def _native(self, plan: Plan) -> _Plan:
        operands = [_Operand(len(layout.full), layout.size) for layout in plan.inputs + plan.results]
        places, starts = plan.record or (-1, -1)
        return _Plan(
            plan.key,
            None,
            len(plan.inputs),
            len(plan.results),
            (_Operand * len(operands))(*operands),
            _pairs(plan.preparations),
            len(plan.preparations),
            (_Step * len(plan.launches))(*map(_step, plan.launches)),
            len(plan.launches),
            plan.record is not None,
            places,
            starts,
            ctypes.cast(self._describe, _POINTER),
        )

    def _write_message(self, address: int, step: int, fault: int, message: int, capacity: int) -> None:
        plan = self._by_address[address]
        launch = plan.launches[step]
        text = launch.what + plan.entries.describe(ctypes.string_at(fault, _FAULT_SIZE), launch.block)
        data = text.encode()[: capacity - 1] + b"\0"
        ctypes.memmove(message, data, len(data))


def _pairs(pairs: tuple[tuple[int, int], ...]) -> Any:
    return (_Pair * len(pairs))(*(_Pair(*pair) for pair in pairs))


def _step(launch: Launch) -> _Step:
    return _Step(
        launch.entry.address,
        launch.block,
        launch.arguments,
        len(launch.arguments),
        _pairs(launch.patches),
        len(launch.patches),
        launch.entry.flags,
    )


@cache
def handler() -> Handler:
    """Return the handler of this process, compiled and registered at first use."""
    return Handler()


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
    make.argtypes = (_POINTER, ctypes.c_char_p, _POINTER)
    return make(address, _CAPSULE_NAME, None)
