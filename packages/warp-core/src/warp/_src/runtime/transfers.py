"""Copying, filling and adding on a CUDA device, between arrays of any layout; see native/transfers.cu."""

from __future__ import annotations

import math
import struct
from typing import Final, NamedTuple

from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.own_kernels import load_kernels
from warp._src.runtime.stream import Stream, get_stream

BLOCK: Final = 256
LARGEST_GRID: Final = 2**31 - 1
LARGEST_PATTERN: Final = 1024
PATTERN_OFFSET: Final = 96
"""Where the pattern is in the arguments of the filler; the address of the target comes first."""
KINDS: Final = ("float16", "bfloat16", "float32", "float64")

_LAYOUT: Final = "q4q4q"
_COPY: Final = struct.Struct(f"=QQ{_LAYOUT}{_LAYOUT}qq")
_FILL: Final = struct.Struct(f"=Q{_LAYOUT}qq{LARGEST_PATTERN}s")
_ADD: Final = struct.Struct(f"=QQ{_LAYOUT}{_LAYOUT}qq")


class Elements(NamedTuple):
    """Some elements of an array on a device: `length` of them in row-major order, from number `first` on."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    """Bytes of one element."""
    first: int
    length: int
    is_contiguous: bool

    @property
    def start(self) -> int:
        """Return the address of the first of them, where the array has no gaps."""
        return self.address + self.first * self.size

    @property
    def nbytes(self) -> int:
        """Return the bytes that they take."""
        return self.length * self.size


class Transfers:
    """The kernels of native/transfers.cu on one device."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._copy, self.filler, self._add = load_kernels(device, "transfers.cu", "wp_copy", "wp_fill", "wp_add")

    def copy(self, target: Elements, source: Elements, stream: Stream) -> None:
        """Copy elements of one size; all on this device, or where it may reach."""
        word = _word(target, source)
        layouts = (*_layout(target), *_layout(source))
        packed = _COPY.pack(target.address, source.address, *layouts, target.size // word, word)
        self._launch(self._copy, target.nbytes // word, packed, stream)

    def fill(self, target: Elements, pattern: bytes, stream: Stream) -> None:
        """Set every element to the bytes of a pattern of at most LARGEST_PATTERN bytes."""
        items, packed = pack_fill(target, pattern)
        self._launch(self.filler, items, packed, stream)

    def add(self, target: Elements, source: Elements, kind: str, offset: int, width: int, stream: Stream) -> None:
        """Add `width` numbers of a kind, which lie `offset` bytes into each element."""
        layouts = (*_layout(target), *_layout(source))
        addresses = target.address + offset, source.address + offset
        packed = _ADD.pack(*addresses, *layouts, width, KINDS.index(kind))
        self._launch(self._add, target.length * width, packed, stream)

    def _launch(self, kernel: int, items: int, packed: bytes, stream: Stream) -> None:
        if not items:
            return
        block = pack_launch((items,))
        self._device.driver.launch(kernel, grid_for(items), BLOCK, stream.handle, (block, packed))


def pack_fill(target: Elements, pattern: bytes) -> tuple[int, bytes]:
    """Return the work items and the arguments with which the filler sets elements to a pattern."""
    word = _word(target, target)
    packed = _FILL.pack(target.address, *_layout(target), target.size // word, word, pattern)
    return target.nbytes // word, packed


def filler(device: CudaDevice) -> int:
    """Return the kernel that takes what `pack_fill` gives."""
    with device.active():
        return _transfers(device).filler


def _transfers(device: CudaDevice) -> Transfers:
    if device.transfers is None:
        device.transfers = Transfers(device)
    found: Transfers = device.transfers
    return found


def copy(device: CudaDevice, target: Elements, source: Elements) -> None:
    """Copy elements between arrays on a device, in the order of its current stream."""
    stream = get_stream(device)
    with device.active():
        if target.is_contiguous and source.is_contiguous:
            device.driver.copy(target.start, source.start, target.nbytes, stream.handle)
        else:
            _transfers(device).copy(target, source, stream)


def fill(device: CudaDevice, target: Elements, pattern: bytes) -> None:
    """Set elements of an array on a device to a pattern, in the order of its current stream."""
    stream = get_stream(device)
    with device.active():
        if target.is_contiguous and len(set(pattern)) == 1:
            device.driver.fill_bytes(target.start, pattern[0], target.nbytes, stream.handle)
        else:
            _transfers(device).fill(target, pattern, stream)


def add(device: CudaDevice, target: Elements, source: Elements, kind: str, offset: int, width: int) -> None:
    """Add numbers of arrays on a device, in the order of its current stream."""
    with device.active():
        _transfers(device).add(target, source, kind, offset, width, get_stream(device))


def grid_for(items: int, block: int = BLOCK, limit: int = 0) -> int:
    """Return the number of blocks for a launch; threads of a smaller grid take several items."""
    return max(1, min(-(-items // block), limit if limit > 0 else LARGEST_GRID))


def _layout(elements: Elements) -> tuple[int, ...]:
    padding = 4 - len(elements.shape)
    shape = (*elements.shape, *(1,) * padding)
    return (elements.first, *shape, *elements.strides, *(0,) * padding)


def _word(target: Elements, source: Elements) -> int:
    together = math.gcd(target.size, target.address, source.address, *target.strides, *source.strides, 8)
    return together if together else 1
