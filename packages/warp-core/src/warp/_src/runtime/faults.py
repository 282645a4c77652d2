"""What checks in CUDA kernels report: kernels write to pinned memory, which is looked at when the host waits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from warp._src.runtime.cpu import FAULT_SIZE, describe_fault, fault_line
from warp._src.runtime.driver import Driver
from warp.errors import LaunchError

_SLOTS: Final = 512
_LOCKED: Final = -1


class Suspect(NamedTuple):
    """A launch that may report a fault."""

    stream: int
    label: str
    launch_block: bytes
    excerpt: Callable[[int], str]
    is_repeated: bool  # a graph or native code runs it again and again


class FaultLog:
    """Places where launches on one device report faults; each launch has its own until it has run."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._free: list[int] = []
        self._suspects: dict[int, Suspect] = {}
        self._lock = Lock()
        self._grow()

    def _grow(self) -> None:
        memory = self._driver.allocate_host(_SLOTS * FAULT_SIZE)
        ctypes.memset(memory, 0, _SLOTS * FAULT_SIZE)
        self._free += range(memory + (_SLOTS - 1) * FAULT_SIZE, memory - 1, -FAULT_SIZE)

    @property
    def is_full(self) -> bool:
        """Say whether no launch can be watched before others have run."""
        return not self._free

    def watch(self, suspect: Suspect) -> int:
        """Give a launch a place; returns its address. A log that is full grows, in the current context."""
        with self._lock:
            if not self._free:
                self._grow()
            address = self._free.pop()
            self._suspects[address] = suspect
        return address

    def check(self, stream: int | None) -> None:
        """Raise LaunchError for the first launch that failed, after a wait for a stream, or for all with None."""
        first: LaunchError | None = None
        count = 0
        with self._lock:
            for address, suspect in list(self._suspects.items()):
                fault = ctypes.string_at(address, FAULT_SIZE)
                kind = ctypes.c_int.from_buffer_copy(fault).value
                has_run = stream in (None, suspect.stream) or suspect.is_repeated
                if kind not in (0, _LOCKED) and has_run:
                    count += 1
                    first = first or _error(fault, suspect)
                    ctypes.memset(address, 0, FAULT_SIZE)
                if has_run and not suspect.is_repeated:
                    del self._suspects[address]
                    self._free.append(address)
        if first is not None:
            others = f"\n(and {count - 1} other launches failed)" if count > 1 else ""
            raise LaunchError(f"{first}{others}", first.line)

    def forget(self, address: int) -> None:
        """Give back the place of a launch that will not run again."""
        with self._lock:
            if self._suspects.pop(address, None) is not None:
                self._free.append(address)


def _error(fault: bytes, suspect: Suspect) -> LaunchError:
    line = fault_line(fault)
    return LaunchError(describe_fault(fault, suspect.launch_block, suspect.label) + suspect.excerpt(line), line)
