"""Memory of a stand-in device, which the host cannot touch while it is locked."""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_SIZE = 1 << 40
_ALIGNMENT = 512
_GUARD = 512
_POISON = 0xCD
_NO_RESERVE = 0x4000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


@dataclass(eq=False)
class Allocation:
    """A block of memory: its address is known at once, it is open once the allocation has run."""

    ordinal: int
    address: int
    size: int
    is_pooled: bool
    is_open: bool = False
    is_freed: bool = False

    @property
    def end(self) -> int:
        return self.address + self.size


class Arena:
    """All the memory of one device. No address is given out twice, so that what comes too late is seen."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        base = _libc.mmap(None, _SIZE, 0, flags, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"mmap of {_SIZE} bytes: error {ctypes.get_errno()}")
        self._base: int = base
        self._next: int = base
        self._depth = 0
        self._addresses: list[int] = []
        self._allocations: list[Allocation] = []
        self.reserved = 0
        self.highest = 0

    def __del__(self) -> None:
        _libc.munmap(self._base, _SIZE)

    def contains(self, address: int) -> bool:
        return self._base <= address < self._next + _GUARD

    def at(self, address: int) -> Allocation | None:
        """Return the allocation that an address, or the one past the end of an allocation, belongs to."""
        index = bisect_right(self._addresses, address) - 1
        found = self._allocations[index] if index >= 0 else None
        return found if found is not None and address <= found.end else None

    def live(self) -> Iterator[Allocation]:
        return (allocation for allocation in self._allocations if allocation.is_open)

    def allocate(self, size: int, is_pooled: bool) -> Allocation:
        made = Allocation(self.ordinal, self._next, size, is_pooled)
        self._next += -(-(size + _GUARD) // _ALIGNMENT) * _ALIGNMENT
        self._addresses.append(made.address)
        self._allocations.append(made)
        self.reserved += size
        self.highest = max(self.highest, self.reserved)
        return made

    def open(self, allocation: Allocation) -> None:
        """Run an allocation; the contents are arbitrary."""
        allocation.is_open = True
        self.unlock()
        ctypes.memset(allocation.address, _POISON, allocation.size)
        self.lock()

    def close(self, allocation: Allocation) -> None:
        """Run the end of an allocation."""
        allocation.is_open = False
        self.reserved -= allocation.size
        first, last = -(-allocation.address // mmap.PAGESIZE), allocation.end // mmap.PAGESIZE
        if first < last:
            _libc.madvise(first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE, mmap.MADV_DONTNEED)

    def unlock(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._protect(mmap.PROT_READ | mmap.PROT_WRITE)

    def lock(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._protect(0)

    def _protect(self, protection: int) -> None:
        size = -(-(self._next - self._base + _GUARD) // mmap.PAGESIZE) * mmap.PAGESIZE
        if _libc.mprotect(self._base, size, protection):
            raise MemoryError(f"mprotect: error {ctypes.get_errno()}")


class Pools:
    """The default pools of devices: one arena each."""

    def __init__(self, arenas: list[Arena]) -> None:
        self._arenas = arenas
        self._pool_access: set[tuple[int, int]] = set()
        self._pool_values: dict[tuple[int, str], int] = {}

    def memory_pool(self, ordinal: int) -> int:
        return ordinal + 1

    def pool_attribute(self, pool: int, name: str) -> int:
        arena = self._arenas[pool - 1]
        if name.endswith("_CURRENT"):
            return arena.reserved
        if name.endswith("_HIGH"):
            return arena.highest
        return self._pool_values.get((pool, name), 0)

    def set_pool_attribute(self, pool: int, name: str, value: int) -> None:
        if name.endswith("_HIGH"):
            self._arenas[pool - 1].highest = self._arenas[pool - 1].reserved
        self._pool_values[pool, name] = value

    def trim_pool(self, pool: int, kept: int) -> None:
        self._pool_values[pool, "TRIMMED"] = kept

    def is_pool_accessible(self, pool: int, peer: int) -> bool:
        return pool - 1 == peer or (pool - 1, peer) in self._pool_access

    def set_pool_access(self, pool: int, peer: int, is_enabled: bool) -> None:
        (self._pool_access.add if is_enabled else self._pool_access.discard)((pool - 1, peer))
