"""What a taped launch on a CUDA device keeps for its adjoint, in the device's memory."""

from __future__ import annotations

import ctypes
import struct
from typing import Final, NamedTuple

from warp._src.runtime import transfers
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.stream import get_stream

_RECORD: Final = struct.Struct("=QQQqqqii")  # wp_record of native/abi.h
_POINTER_OFFSETS: Final = (0, 8, 16)
_CAPACITY_OFFSET: Final = struct.calcsize("=QQQq")
_MISSING_OFFSET: Final = struct.calcsize("=QQQqq")
_ALIGNMENT: Final = 256


class EmptyRecord(NamedTuple):
    """A `wp_record` without memory, and where in it what belongs."""

    header: bytes
    size: int
    pointers: tuple[int, int, int]
    """Offsets of `places`, `starts` and `stream`."""
    capacity: int
    missing: int


def empty_record() -> EmptyRecord:
    """Return a record for native code to fill in."""
    header = _RECORD.pack(0, 0, 0, 0, 0, 0, 1, 0)
    return EmptyRecord(header, _RECORD.size, _POINTER_OFFSETS, _CAPACITY_OFFSET, _MISSING_OFFSET)


class CudaRecord:
    """The record of one launch of `size` work items: fixed places, and a stream in which each item owns `share` bytes.

    `address` goes into the launch block; the memory lives as long as this object.
    """

    def __init__(self, device: CudaDevice, size: int, bytes_per_thread: int, share: int) -> None:
        self.device = device
        places = _padded(_RECORD.size)
        starts = places + _padded(size * bytes_per_thread)
        stream = starts + (_padded(8 * size) if share else 0)
        self.nbytes = stream + size * share
        self.memory = device.allocate(self.nbytes, get_stream(device))
        self.address = base = self.memory.address
        self._header = _RECORD.pack(base + places, base + starts, base + stream, 0, size * share, 0, 1, 0)
        self.reset()

    def reset(self) -> None:
        """Make the record empty."""
        header = transfers.Elements(self.address, (1,), (_RECORD.size,), _RECORD.size, 0, 1, True)
        transfers.fill(self.device, header, self._header)

    def missing(self) -> int:
        """Wait for the launch and return by how many bytes the share of a work item was too small."""
        found = ctypes.c_int64()
        stream = get_stream(self.device)
        with self.device.active():
            self.device.driver.copy(
                ctypes.addressof(found), self.address + _MISSING_OFFSET, ctypes.sizeof(found), stream.handle
            )
        stream.synchronize()
        return found.value


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
