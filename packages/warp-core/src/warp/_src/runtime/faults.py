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
    is_repeated: bool  # a graph runs it again and again


class FaultLog:
    """Places where launches on one device report faults; each launch has its own until it has run."""

    def __init__(self, driver: Driver) -> None:
        self._memory = driver.allocate_host(_SLOTS * FAULT_SIZE)
        ctypes.memset(self._memory, 0, _SLOTS * FAULT_SIZE)
        self._free = list(range(_SLOTS - 1, -1, -1))
        self._suspects: dict[int, Suspect] = {}
        self._lock = Lock()

    @property
    def is_full(self) -> bool:
        """Say whether no launch can be watched before others have run."""
        return not self._free

    def watch(self, suspect: Suspect) -> int:
        """Give a launch a place; returns its address. The log must not be full."""
        with self._lock:
            slot = self._free.pop()
            self._suspects[slot] = suspect
        return self._memory + slot * FAULT_SIZE

    def check(self, stream: int | None) -> None:
        """Raise LaunchError for the first launch that failed, after a wait for a stream, or for all with None."""
        first: LaunchError | None = None
        count = 0
        with self._lock:
            for slot, suspect in list(self._suspects.items()):
                fault = ctypes.string_at(self._memory + slot * FAULT_SIZE, FAULT_SIZE)
                kind = ctypes.c_int.from_buffer_copy(fault).value
                has_run = stream in (None, suspect.stream) or suspect.is_repeated
                if kind not in (0, _LOCKED) and has_run:
                    count += 1
                    first = first or _error(fault, suspect)
                    ctypes.memset(self._memory + slot * FAULT_SIZE, 0, FAULT_SIZE)
                if has_run and not suspect.is_repeated:
                    del self._suspects[slot]
                    self._free.append(slot)
        if first is not None:
            others = f"\n(and {count - 1} other launches failed)" if count > 1 else ""
            raise LaunchError(f"{first}{others}", first.line)

    def forget(self, address: int) -> None:
        """Give back the place of a launch that will not run again."""
        slot = (address - self._memory) // FAULT_SIZE
        with self._lock:
            if self._suspects.pop(slot, None) is not None:
                self._free.append(slot)


def _error(fault: bytes, suspect: Suspect) -> LaunchError:
    line = fault_line(fault)
    return LaunchError(describe_fault(fault, suspect.launch_block, suspect.label) + suspect.excerpt(line), line)
