"""CUDA devices: their context, memory and pools. Which there are is found out when one is first asked for."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Protocol

from warp._src.runtime.device import Device, get_device, get_devices, known_devices, set_discovery
from warp._src.runtime.driver import CAPTURE_RELAXED, CudaDriver, Driver
from warp._src.runtime.faults import FaultLog
from warp.errors import DeviceError


class StreamLike(Protocol):
    """The part of a stream that memory needs."""

    handle: int


class CaptureLike(Protocol):
    """The part of a graph in the making that memory needs."""

    def keep(self, kept: object) -> None: ...


class CudaDevice(Device):
    """A CUDA device, used through its primary context, which frameworks in the same process share."""

    def __init__(self, driver: Driver, ordinal: int, compiler: Callable[[str], bytes] | None = None) -> None:
        super().__init__(f"cuda:{ordinal}", driver.device_name(ordinal))
        self.driver = driver
        self.compiler = compiler
        """What makes code of CUDA C++ for the driver; None for NVRTC."""
        self.ordinal = ordinal
        major = driver.device_attribute(ordinal, "COMPUTE_CAPABILITY_MAJOR")
        self.arch = 10 * major + driver.device_attribute(ordinal, "COMPUTE_CAPABILITY_MINOR")
        self.sm_count = driver.device_attribute(ordinal, "MULTIPROCESSOR_COUNT")
        self.is_uva = bool(driver.device_attribute(ordinal, "UNIFIED_ADDRESSING"))
        self.is_mempool_supported = bool(driver.device_attribute(ordinal, "MEMORY_POOLS_SUPPORTED"))
        self.is_mempool_enabled = self.is_mempool_supported
        self.uuid = f"GPU-{driver.device_uuid(ordinal).hex()}"
        self.captures: list[Any] = []
        """Graphs that are being captured from streams of the device."""
        self.streams_made = 0
        """How many streams besides the default one were made or wrapped; with none, memory needs no bookkeeping."""
        self.transfers: Any = None
        """The compiled copies and fills for arrays with gaps; see transfers.py."""
        self.condition_kernel: int | None = None
        """The kernel that sets what conditional nodes of graphs look at; see conditionals.py."""
        self.peers: set[int] = set()
        """Ordinals of the devices whose memory kernels here may access, that of pools apart."""
        self.pool_peers: set[int] = set()
        """Ordinals of the devices whose memory pool kernels here may access."""
        self._context: int | None = None
        self._faults: FaultLog | None = None
        self._side_stream = 0
        self._lock = threading.Lock()

    @property
    def context(self) -> int:
        """Return the handle of the primary context."""
        if self._context is None:
            with self._lock:
                if self._context is None:
                    self._context = self.driver.retain_context(self.ordinal)
        return self._context

    @property
    def pool(self) -> int:
        """Return the handle of the device's default memory pool."""
        return self.driver.memory_pool(self.ordinal)

    @property
    def faults(self) -> FaultLog:
        """Return where kernels report what went wrong."""
        if self._faults is None:
            with self.active():
                self._faults = FaultLog(self.driver)
        return self._faults

    @property
    def is_capturing(self) -> bool:
        """Say whether a graph is being captured from the device's current stream."""
        return bool(self.captures) and _current_stream_of(self).is_capturing

    @property
    def total_memory(self) -> int:
        """Return the size of the device's memory in bytes."""
        return self.driver.total_memory(self.ordinal)

    @property
    def free_memory(self) -> int:
        """Return the bytes of memory that are free now, those held by the pool and not in use included."""
        with self.active():
            free = self.driver.free_memory()
        if self.is_mempool_enabled:
            reserved, used = (self.driver.pool_attribute(self.pool, f"{kind}_MEM_CURRENT") for kind in _POOL_USE)
            free += reserved - used
        return free

    def active(self) -> _Active:
        """Make the device's context current in this thread inside a `with` block."""
        return _Active(self)

    def can_access(self, owner: CudaDevice) -> bool:
        """Say whether kernels here may use the memory of another device: see pools.py."""
        return owner.ordinal in (self.pool_peers if owner.is_mempool_enabled else self.peers)

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Let this thread do inside a `with` block, beside a capture, what is no part of the graph."""
        if not self.captures:
            yield
            return
        previous = self.driver.exchange_capture_mode(CAPTURE_RELAXED)
        try:
            yield
        finally:
            self.driver.exchange_capture_mode(previous)

    def capture_of(self, stream: int) -> CaptureLike | None:
        """Return the graph that is being captured from a stream, or None."""
        if not self.captures or not self.driver.is_capturing(stream):
            return None
        found: CaptureLike = next((c for c in self.captures if c.stream.handle == stream), self.captures[-1])
        return found

    def synchronize(self) -> None:
        """Wait for everything on the device. Raises LaunchError if a kernel failed a check."""
        if self._context is None:
            return
        if self.captures:
            raise DeviceError(f"device '{self.alias}' cannot be waited for while a graph is captured on it")
        with self.active():
            self.driver.synchronize_context()
        self.check_faults(None)

    def check_faults(self, stream: int | None) -> None:
        """Raise LaunchError if a kernel that has run, on a stream or on any, failed a check."""
        if self._faults is not None:
            self._faults.check(stream)

    # ------------------------------------------------------------------ memory

    def allocate(self, size: int, stream: StreamLike) -> DeviceMemory:
        """Return memory that is there for whatever comes next on a stream. DeviceError if there is not enough."""
        with self.active():
            capture = self.capture_of(stream.handle)
            try:
                address = self._allocate(size, stream.handle, capture)
            except DeviceError as error:
                raise DeviceError(f"{size} bytes cannot be allocated on device '{self.alias}': {error}") from error
        memory = DeviceMemory(Block(self, address, size, stream, self.is_mempool_enabled))
        if capture is not None:
            capture.keep(memory)
        return memory

    def _allocate(self, size: int, stream: int, capture: CaptureLike | None) -> int:
        if capture is None:
            return self.driver.allocate_async(size, stream) if self.is_mempool_enabled else self.driver.allocate(size)
        # The graph keeps the memory, so that it is the same in every run; the allocation is no part of the graph.
        with self.relaxed():
            if not self.is_mempool_enabled:
                return self.driver.allocate(size)
            if not self._side_stream:
                self._side_stream = self.driver.create_stream(0)
            address = self.driver.allocate_async(size, self._side_stream)
            self.driver.synchronize_stream(self._side_stream)
            return address

    def release(self, block: Block) -> None:
        """Free memory once the streams that use it are done with it."""
        if self.captures:
            self.captures[-1].keep_block(block)
            return
        with self.active():
            if not block.is_pooled:
                self.driver.free(block.address)
                return
            for stream in block.users.values():
                event = self.driver.create_event(has_timing=False, is_shared=False)
                self.driver.record_event(event, stream.handle)
                self.driver.wait_event(block.stream.handle, event)
                self.driver.destroy_event(event)
            self.driver.free_async(block.address, block.stream.handle)


_POOL_USE: Final = ("RESERVED", "USED")


class _Active:
    """Makes a device's context current; others that have theirs current get it back."""

    __slots__ = ("_device", "_previous")

    def __init__(self, device: CudaDevice) -> None:
        self._device = device

    def __enter__(self) -> None:
        driver, context = self._device.driver, self._device.context
        self._previous = driver.current_context()
        if self._previous != context:
            driver.set_context(context)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._previous not in (0, self._device.context):
            self._device.driver.set_context(self._previous)


class Block:
    """What is known of memory until it is freed."""

    __slots__ = ("address", "device", "is_pooled", "size", "stream", "users")

    def __init__(self, device: CudaDevice, address: int, size: int, stream: StreamLike, is_pooled: bool) -> None:
        self.device = device
        self.address = address
        self.size = size
        self.stream = stream
        self.is_pooled = is_pooled
        self.users: dict[int, StreamLike] = {}


class DeviceMemory:
    """Memory on a CUDA device; it is freed when nothing refers to it and the streams that use it have got so far."""

    __slots__ = ("__weakref__", "_block")

    def __init__(self, block: Block) -> None:
        self._block = block
        weakref.finalize(self, block.device.release, block).atexit = False

    @property
    def address(self) -> int:
        """Return the address of the first byte."""
        return self._block.address

    def note_use(self, stream: StreamLike) -> None:
        """Let the memory be freed no sooner than what is on a stream now has run."""
        if stream.handle != self._block.stream.handle:
            self._block.users[stream.handle] = stream


class PinnedMemory:
    """Host memory at a fixed place, which devices copy from and to without waiting."""

    __slots__ = ("__weakref__", "address", "size")

    def __init__(self, device: CudaDevice, size: int) -> None:
        with device.active():
            self.address = device.driver.allocate_host(size)
        self.size = size
        weakref.finalize(self, _free_pinned, device, self.address).atexit = False

    def clear(self) -> None:
        """Set every byte to zero."""
        ctypes.memset(self.address, 0, self.size)


def _free_pinned(device: CudaDevice, address: int) -> None:
    with device.active():
        if not device.captures:
            device.driver.synchronize_context()  # a copy may be on its way
        device.driver.free_host(address)


# ---------------------------------------------------------------------- discovery


class _Streams:
    """How the current stream of a device is found; `stream.py` says so."""

    current: Callable[[Device], Any]


def set_current_stream(current: Callable[[Device], Any]) -> None:
    """Register the function that gives the current stream of a device."""
    _Streams.current = staticmethod(current)


def _current_stream_of(device: Device) -> Any:
    return _Streams.current(device)


def first_cuda_device() -> CudaDevice | None:
    """Return a CUDA device if somebody has asked for one."""
    return next((found for found in known_devices() if isinstance(found, CudaDevice)), None)


def find_owner(address: int) -> CudaDevice:
    """Return the device that memory at an address belongs to. DeviceError if CUDA does not know the address."""
    devices = [found for found in get_devices() if isinstance(found, CudaDevice)]
    if not devices:
        get_device("cuda")  # says why there is none
    if not address:
        return devices[0]
    with devices[0].active():
        ordinal = devices[0].driver.ordinal_of(address)
    return next(found for found in devices if found.ordinal == ordinal)


def use_driver(make: Callable[[], Driver], compiler: Callable[[str], bytes] | None = None) -> None:
    """Look for devices with another driver from now on, which `make` gives, or says in a DeviceError why there is none.

    `compiler` makes the code that the driver loads of CUDA C++; None for NVRTC.
    """

    def find() -> Sequence[Device]:
        driver = make()
        return [CudaDevice(driver, ordinal, compiler) for ordinal in range(driver.device_count())]

    set_discovery(find)


use_driver(CudaDriver)
