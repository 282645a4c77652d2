"""Devices: which exist, which one is current, and how they are named."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Final, TypeAlias

from warp._src import plugin_host
from warp.errors import DeviceError


class UnknownDeviceError(DeviceError, ValueError):
    """A name stands for no device; the message lists those that exist."""


class Device:
    """A place where arrays live and kernels run. There is one object per device; compare it with names freely."""

    def __init__(self, alias: str, name: str) -> None:
        self.alias = alias
        """Name to give to `wp.get_device`."""
        self.name = name
        """What the manufacturer calls it."""
        self.ordinal = -1
        """Index among the CUDA devices; -1 for the CPU."""
        self.is_cpu = alias == "cpu"
        self.is_cuda = alias.startswith("cuda")
        self.is_primary = True
        self.is_uva = False
        self.is_mempool_supported = False
        self.is_mempool_enabled = False
        self.arch = 0
        """Compute capability of a CUDA device, 90 for 9.0; 0 on the CPU."""
        self.sm_count = 0
        """Number of multiprocessors of a CUDA device; 0 on the CPU."""
        self.default_stream: Any = None
        """The stream that is current unless another is chosen; made when it is first asked for."""

    @property
    def context(self) -> int | None:
        """Return the handle of the CUDA context; None on the CPU."""
        return None

    @property
    def is_capturing(self) -> bool:
        """Say whether a graph is being captured from the device's current stream."""
        return False

    @property
    def total_memory(self) -> int:
        """Return the size of the device's memory in bytes."""
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    @property
    def free_memory(self) -> int:
        """Return the bytes of memory that are free now; 0 where the system does not tell."""
        if _MEMORY_INFO.exists():
            for line in _MEMORY_INFO.read_text(encoding="ascii").splitlines():
                name, _, amount = line.partition(":")
                if name == "MemAvailable":  # with what the system would give back from its caches
                    return int(amount.split()[0]) * 1024
        if "SC_AVPHYS_PAGES" not in os.sysconf_names:
            return 0
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def __str__(self) -> str:
        return self.alias

    def __repr__(self) -> str:
        return f'Device("{self.alias}")'

    def __hash__(self) -> int:
        return hash(self.alias)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Device):
            return self.alias == other.alias
        if isinstance(other, str):
            return self.alias == _normalise(other)
        return NotImplemented


DeviceLike: TypeAlias = Device | str | None
"""What a `device` argument accepts, besides objects that a plugin knows."""

_MEMORY_INFO: Final = Path("/proc/meminfo")
_DEVICES: Final = {"cpu": Device("cpu", f"{platform.machine()} CPU")}
_current: Final[ContextVar[Device]] = ContextVar("warp_device", default=_DEVICES["cpu"])
_lock: Final = RLock()


class _Discovery:
    """How CUDA devices are found, which happens when one is first asked for."""

    find: Callable[[], Sequence[Device]] | None = None
    is_done = False
    reason = ""


def set_discovery(find: Callable[[], Sequence[Device]]) -> None:
    """Look for CUDA devices with a function, when they are next asked for; those found before are forgotten."""
    with _lock:
        for alias in [alias for alias, device in _DEVICES.items() if device.is_cuda]:
            del _DEVICES[alias]
        _Discovery.find, _Discovery.is_done, _Discovery.reason = find, False, ""


def _discover() -> None:
    """Find the CUDA devices. Without a driver there are none; why is part of later messages."""
    with _lock:
        if _Discovery.is_done or _Discovery.find is None:
            return
        _Discovery.is_done = True
        try:
            _DEVICES.update((device.alias, device) for device in _Discovery.find())
        except DeviceError as error:
            _Discovery.reason = f"; {error}"


class ScopedDevice:
    """Make a device current inside a `with` block, for this thread and asynchronous task only."""

    def __init__(self, device: DeviceLike) -> None:
        self.device = get_device(device)
        self._tokens: list[Token[Device]] = []

    def __enter__(self) -> Device:
        self._tokens.append(_current.set(self.device))
        return self.device

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())


def get_device(ident: object = None) -> Device:
    """Return the device that `ident` stands for.

    `ident` is a Device, a name ("cpu", "cuda:1"; "cuda" is the current CUDA device, else the first one), None for the
    current device, or a device object of a framework whose bridge is installed. Raises UnknownDeviceError (a
    DeviceError and ValueError) if there is none.
    """
    if ident is None:
        return _current.get()
    if isinstance(ident, Device):
        return ident
    alias = ident if isinstance(ident, str) else plugin_host.device_alias(ident)
    if alias is None:
        raise UnknownDeviceError(f"no device for {ident!r}, of type {type(ident).__qualname__}; {_listing()}")
    return _DEVICES.get(alias) or _find(alias)


def _find(alias: str) -> Device:
    name = alias.strip().lower()
    is_cuda = name.startswith("cuda")
    if is_cuda:
        _discover()
        if name == "cuda" and _current.get().is_cuda:
            return _current.get()
    found = _DEVICES.get(_normalise(name))
    if found is None:
        is_missing = is_cuda and not any(device.is_cuda for device in _DEVICES.values())
        what, why = ("CUDA is not available", _Discovery.reason) if is_missing else ("no such device", "")
        raise UnknownDeviceError(f"{what}: {alias!r}; {_listing()}{why}")
    return found


def set_device(ident: DeviceLike) -> None:
    """Make a device current for this thread and asynchronous task."""
    _current.set(get_device(ident))


def get_devices() -> list[Device]:
    """Return all devices, the CPU first."""
    _discover()
    return known_devices()


def known_devices() -> list[Device]:
    """Return the devices that somebody has asked for, the CPU first; no driver is looked for."""
    return list(_DEVICES.values())


def get_preferred_device() -> Device:
    """Return the first CUDA device, or the CPU if there is none."""
    return next((device for device in get_devices() if device.is_cuda), _DEVICES["cpu"])


def is_device_available(device: DeviceLike) -> bool:
    """Say whether `device` exists in this process."""
    try:
        get_device(device)
    except UnknownDeviceError:
        return False
    return True


def is_cpu_available() -> bool:
    """Say whether kernels can run on the CPU."""
    return True


def is_cuda_available() -> bool:
    """Say whether there is at least one CUDA device."""
    return get_cuda_device_count() > 0


def get_cuda_device_count() -> int:
    """Return the number of CUDA devices."""
    return len(get_cuda_devices())


def get_cuda_devices() -> list[Device]:
    """Return the CUDA devices."""
    return [device for device in get_devices() if device.is_cuda]


def _normalise(alias: str) -> str:
    name = alias.strip().lower()
    return {"cpu:0": "cpu", "cuda": "cuda:0"}.get(name, name)


def _listing() -> str:
    names = ", ".join(f'"{alias}"' for alias in _DEVICES)
    return f"available: {names}"
