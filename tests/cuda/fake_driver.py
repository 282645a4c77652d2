"""A CUDA driver over host memory, as strict and as late as a real one may be.

Nothing that is queued runs before somebody waits for it, so that a missing synchronisation is seen. The memory of a
device cannot be touched but while something runs on it. Kernels are CUDA text, compiled for the host.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.cuda import fake_errors as errors
from tests.cuda.fake_functions import Functions, WithFunctions
from tests.cuda.fake_graphs import Graphs
from tests.cuda.fake_memory import Arena, Pools
from tests.cuda.fake_streams import Event, Operation, Stream
from tests.cuda.hosted import compile_hosted, load_hosted, parameter_size

from warp._src.runtime import cuda
from warp._src.runtime.driver import driver_error

_FIRST_CONTEXT = 0x1000
_PAGE_LOCKED = 64


class FakeDriver(Graphs, Pools, WithFunctions):
    """Implements `warp._src.runtime.driver.Driver`. `violations` lists what a real device might have forgiven."""

    def __init__(self, devices: int = 2, memory: int = 1 << 34, has_pools: bool = True) -> None:
        self.violations: list[str] = []
        self.calls: list[str] = []
        self.limit = memory
        self._has_pools = has_pools
        self.version = 12090
        Pools.__init__(self, [Arena(ordinal) for ordinal in range(devices)])
        Graphs.__init__(self, itertools.count(0x10000, 16))
        self._streams: dict[int, Stream] = {}
        self._events: dict[int, Event] = {}
        self._kernels: dict[int, Any] = {}
        self.functions = Functions(self)
        self._libraries: dict[int, ctypes.CDLL] = {}
        self._host_memory: dict[int, Any] = {}
        self._legacy = [Stream(0, ordinal, is_blocking=True) for ordinal in range(devices)]
        self._peers: set[tuple[int, int]] = set()
        self._lock = threading.RLock()

    # ------------------------------------------------------------------ what tests ask

    def live_bytes(self, ordinal: int = 0) -> int:
        """Run everything and return the bytes that are still allocated."""
        self.run_all()
        return sum(allocation.size for allocation in self._arenas[ordinal].live())

    def run_all(self) -> None:
        """Run whatever is queued."""
        with self._lock:
            for stream in (*self._legacy, *list(self._streams.values())):
                stream.run()

    def make_foreign_stream(self, ordinal: int = 0, is_blocking: bool = False) -> int:
        """Make a stream as another framework would."""
        stream = Stream(next(self._handles), ordinal, is_blocking)
        self._streams[stream.handle] = stream
        return stream.handle

    # ------------------------------------------------------------------ devices

    def device_count(self) -> int:
        return len(self._arenas)

    def driver_version(self) -> int:
        return self.version

    def device_name(self, ordinal: int) -> str:
        return f"stand-in {ordinal}"

    def device_uuid(self, ordinal: int) -> bytes:
        return bytes([ordinal] * 16)

    def device_attribute(self, ordinal: int, name: str) -> int:
        return {
            "COMPUTE_CAPABILITY_MAJOR": 9,
            "COMPUTE_CAPABILITY_MINOR": 0,
            "MULTIPROCESSOR_COUNT": 4,
            "UNIFIED_ADDRESSING": 1,
            "MEMORY_POOLS_SUPPORTED": int(self._has_pools),
        }[name]

    def total_memory(self, ordinal: int) -> int:
        return self.limit

    def can_access_peer(self, ordinal: int, peer: int) -> bool:
        return ordinal != peer

    # ------------------------------------------------------------------ contexts

    def retain_context(self, ordinal: int) -> int:
        return _FIRST_CONTEXT + ordinal

    def current_context(self) -> int:
        return getattr(self._thread, "context", 0)

    def set_context(self, context: int) -> None:
        self._thread.context = context

    def _ordinal(self) -> int:
        """Return the device of the current context."""
        if not self.current_context():
            raise self._error("driver call", errors.INVALID_CONTEXT)
        return self.current_context() - _FIRST_CONTEXT

    def synchronize_context(self) -> None:
        ordinal = self._ordinal()
        if any(stream.graph is not None for stream in self._on(ordinal)):
            raise self._error("cuCtxSynchronize", errors.CAPTURE_UNSUPPORTED)
        with self._lock:
            for stream in self._on(ordinal):
                stream.run()

    def enable_peer(self, context: int) -> None:
        self._change_peer(context, True)

    def disable_peer(self, context: int) -> None:
        self._change_peer(context, False)

    def _change_peer(self, context: int, is_enabled: bool) -> None:
        pair = (self._ordinal(), context - _FIRST_CONTEXT)
        if (pair in self._peers) == is_enabled:
            error = errors.PEER_ACCESS_ALREADY_ENABLED if is_enabled else errors.PEER_ACCESS_NOT_ENABLED
            raise self._error("cuCtxEnablePeerAccess" if is_enabled else "cuCtxDisablePeerAccess", error)
        (self._peers.add if is_enabled else self._peers.discard)(pair)

    # ------------------------------------------------------------------ memory

    def free_memory(self) -> int:
        return self.limit - self._arenas[self._ordinal()].reserved

    def allocate(self, size: int) -> int:
        self._refuse_in_capture("cuMemAlloc")
        arena = self._reserve("cuMemAlloc", self._ordinal(), size)
        allocation = arena.allocate(size, is_pooled=False)
        arena.open(allocation)
        return allocation.address

    def free(self, address: int) -> None:
        ordinal = self._ordinal()
        self._refuse_in_capture("cuMemFree")
        for stream in self._on(ordinal):
            stream.run()  # frees wait for the device
        self._arenas[ordinal].close(self._owned(address, "cuMemFree", is_pooled=False))

    def allocate_async(self, size: int, stream: int) -> int:
        queue = self._stream(stream)
        if queue.graph is not None:
            raise self._error("cuMemAllocAsync: no memory is allocated in graphs here", errors.CAPTURE_UNSUPPORTED)
        arena = self._reserve("cuMemAllocAsync", queue.ordinal, size)
        allocation = arena.allocate(size, is_pooled=True)
        self._queue(queue, "allocate", lambda: arena.open(allocation))
        return allocation.address

    def free_async(self, address: int, stream: int) -> None:
        queue = self._stream(stream)
        if queue.graph is not None:
            raise self._error("cuMemFreeAsync: no memory is freed in graphs here", errors.CAPTURE_UNSUPPORTED)
        allocation = self._owned(address, "cuMemFreeAsync", is_pooled=True)
        arena = self._arenas[allocation.ordinal]
        self._queue(queue, "free", lambda: arena.close(allocation))

    def _reserve(self, name: str, ordinal: int, size: int) -> Arena:
        arena = self._arenas[ordinal]
        if size <= 0:
            raise self._error(name, errors.INVALID_VALUE)
        if arena.reserved + size > self.limit:
            raise self._error(name, errors.OUT_OF_MEMORY)
        return arena

    def _owned(self, address: int, name: str, is_pooled: bool) -> Any:
        for arena in self._arenas:
            allocation = arena.at(address)
            if allocation is not None and allocation.address == address and allocation.is_pooled == is_pooled:
                if allocation.is_freed:
                    self._violate(f"{name}: {address:#x} was freed before")
                allocation.is_freed = True
                return allocation
        self._violate(f"{name}: {address:#x} was never allocated")
        raise self._error(name, errors.INVALID_VALUE)

    def allocate_host(self, size: int) -> int:
        self._ordinal()
        memory = ctypes.create_string_buffer(size + _PAGE_LOCKED)
        address = -(-ctypes.addressof(memory) // _PAGE_LOCKED) * _PAGE_LOCKED
        self._host_memory[address] = memory
        return address

    def free_host(self, address: int) -> None:
        if self._host_memory.pop(address, None) is None:
            self._violate(f"cuMemFreeHost: {address:#x} is no pinned memory")
            raise self._error("cuMemFreeHost", errors.INVALID_VALUE)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        queue = self._stream(stream)

        def run() -> None:
            self._check(target, size, "a copy writes")
            self._check(source, size, "a copy reads")
            with self._open(*range(len(self._arenas))):
                ctypes.memmove(target, source, size)

        self._queue(queue, "copy", run)

    def fill_bytes(self, target: int, value: int, size: int, stream: int) -> None:
        queue = self._stream(stream)

        def run() -> None:
            self._check(target, size, "a fill writes")
            with self._open(queue.ordinal):
                ctypes.memset(target, value, size)

        self._queue(queue, "fill", run)

    def ordinal_of(self, address: int) -> int:
        for arena in self._arenas:
            if arena.contains(address):
                return arena.ordinal
        raise self._error("cuPointerGetAttribute", errors.INVALID_VALUE)

    # ------------------------------------------------------------------ streams and events

    def create_stream(self, priority: int) -> int:
        stream = Stream(next(self._handles), self._ordinal(), is_blocking=True)
        self._streams[stream.handle] = stream
        return stream.handle

    def destroy_stream(self, stream: int) -> None:
        self._stream(stream).run()
        del self._streams[stream]

    def priority_range(self) -> tuple[int, int]:
        self._ordinal()
        return 0, -5

    def is_blocking(self, stream: int) -> bool:
        return self._stream(stream).is_blocking

    def synchronize_stream(self, stream: int) -> None:
        queue = self._stream(stream)
        if queue.graph is not None:
            raise self._error("cuStreamSynchronize", errors.CAPTURE_UNSUPPORTED)
        with self._lock:
            queue.run()

    def is_stream_complete(self, stream: int) -> bool:
        return self._stream(stream).is_complete

    def is_capturing(self, stream: int) -> bool:
        return self._stream(stream).graph is not None

    def wait_event(self, stream: int, event: int) -> None:
        queue, waited = self._stream(stream), self._event(event)
        if waited.graph is not None:
            if queue.graph not in (None, waited.graph):
                raise self._error("cuStreamWaitEvent", errors.CAPTURE_ISOLATION)
            waited.graph.join(queue, waited)
            return
        if queue.graph is not None:
            raise self._error("cuStreamWaitEvent: the event is not of the capture", errors.CAPTURE_ISOLATION)
        if waited.stream is not None:
            self._queue(queue, "wait", lambda: None, [(waited.stream, waited.position)])

    def create_event(self, has_timing: bool, is_shared: bool) -> int:
        event = Event(next(self._handles), self._ordinal(), has_timing)
        self._events[event.handle] = event
        return event.handle

    def destroy_event(self, event: int) -> None:
        self._event(event)
        del self._events[event]

    def record_event(self, event: int, stream: int) -> None:
        marked, queue = self._event(event), self._stream(stream)
        if marked.ordinal != queue.ordinal:
            raise self._error("cuEventRecord", errors.INVALID_HANDLE)
        marked.graph = queue.graph
        marked.stream = queue
        if queue.graph is None:
            self._queue(queue, "record", marked.reach)
            marked.position = queue.end

    def synchronize_event(self, event: int) -> None:
        marked = self._event(event)
        if marked.graph is not None:
            raise self._error("cuEventSynchronize", errors.CAPTURE_UNSUPPORTED)
        if marked.stream is not None:
            with self._lock:
                marked.stream.run(marked.position)

    def is_event_complete(self, event: int) -> bool:
        marked = self._event(event)
        return marked.stream is None or marked.stream.done >= marked.position

    def elapsed_milliseconds(self, start: int, end: int) -> float:
        first, last = self._event(start), self._event(end)
        if not (first.has_timing and last.has_timing):
            raise self._error("cuEventElapsedTime", errors.INVALID_HANDLE)
        if not (self.is_event_complete(start) and self.is_event_complete(end)):
            raise self._error("cuEventElapsedTime", errors.NOT_READY)
        return (last.time - first.time) * 1e3

    # ------------------------------------------------------------------ kernels

    def load_library(self, image: bytes) -> int:
        self._ordinal()
        handle = next(self._handles)
        self._libraries[handle] = load_hosted(image.decode())
        return handle

    def kernel(self, library: int, name: str) -> int:
        try:
            function = self._libraries[library][f"host_{name}"]
        except AttributeError:
            raise self._error("cuLibraryGetKernel", errors.NOT_FOUND) from None
        handle = next(self._handles)
        self._kernels[handle] = function
        self.functions.parameter_sizes[handle] = parameter_size(self._libraries[library], name)
        return handle

    def launch(self, kernel: int, grid: int, block: int, stream: int, parameters: tuple[bytes, ...]) -> None:
        queue, function = self._stream(stream), self._kernels[kernel]
        if not (0 < grid < 2**31 and 0 < block <= 1024):
            raise self._error("cuLaunchKernel", errors.INVALID_VALUE)
        buffers = [ctypes.create_string_buffer(data, len(data) + 16) for data in parameters]
        ordinal = queue.ordinal

        def run() -> None:
            for data in parameters:
                self._check_pointers(data, ordinal)
            with self._open(ordinal, *self._reachable(ordinal)):
                function(grid, block, *buffers)

        self._queue(queue, "launch", run)

    def _reachable(self, ordinal: int) -> list[int]:
        pairs = {(user, owner) for user, owner in self._peers} | {(user, owner) for owner, user in self._pool_access}
        return [owner for user, owner in pairs if user == ordinal]

    # ------------------------------------------------------------------ queues

    def _stream(self, handle: int) -> Stream:
        ordinal = self._ordinal()
        if handle in (0, 1):
            return self._legacy[ordinal]
        found = self._streams.get(handle)
        if found is None:
            self._violate(f"stream {handle:#x} does not exist")
            raise self._error("driver call", errors.INVALID_HANDLE)
        return found

    def _event(self, handle: int) -> Event:
        self._ordinal()
        found = self._events.get(handle)
        if found is None:
            self._violate(f"event {handle:#x} does not exist")
            raise self._error("driver call", errors.INVALID_HANDLE)
        return found

    def _on(self, ordinal: int) -> list[Stream]:
        return [self._legacy[ordinal], *(s for s in self._streams.values() if s.ordinal == ordinal)]

    def _queue(
        self, stream: Stream, kind: str, run: Callable[[], None], waits: list[tuple[Stream, int]] | None = None
    ) -> None:
        self.calls.append(kind)
        operation = Operation(kind, run, [*(waits or [])])
        with self._lock:
            if stream.graph is not None:
                stream.graph.add(stream, operation)
                return
            legacy = self._legacy[stream.ordinal]
            if stream is legacy:
                blocking = [s for s in self._on(stream.ordinal) if s.is_blocking and s is not legacy]
                if any(other.graph is not None for other in blocking):
                    raise self._error("legacy stream", errors.CAPTURE_IMPLICIT)
                operation.waits += [(other, other.end) for other in blocking]
            elif stream.is_blocking:
                operation.waits.append((legacy, legacy.end))
            stream.add(operation)

    # ------------------------------------------------------------------ checks

    @contextmanager
    def _open(self, *ordinals: int) -> Iterator[None]:
        """Let the memory of some devices be touched for a while."""
        arenas = [self._arenas[ordinal] for ordinal in set(ordinals)]
        for arena in arenas:
            arena.unlock()
        try:
            yield
        finally:
            for arena in arenas:
                arena.lock()

    def _check_pointers(self, data: bytes, ordinal: int) -> None:
        """Check every word of a kernel's parameters that looks like an address on a device."""
        for offset in range(0, len(data) - 7, 8):
            address = int.from_bytes(data[offset : offset + 8], "little")
            for arena in self._arenas:
                if arena.contains(address):
                    self._check(address, 0, "a kernel gets")
                    if arena.ordinal not in (ordinal, *self._reachable(ordinal)):
                        self._violate(f"a kernel on device {ordinal} gets memory of device {arena.ordinal}")
                        raise self._error("cuLaunchKernel", errors.ILLEGAL_ADDRESS)

    def _check(self, address: int, size: int, what: str) -> None:
        for arena in self._arenas:
            if arena.contains(address):
                allocation = arena.at(address)
                if allocation is None or not allocation.is_open or address + size > allocation.end:
                    self._violate(f"{what} {address:#x}, which is not allocated then")
                    raise self._error("memory check", errors.ILLEGAL_ADDRESS)

    def _violate(self, text: str) -> None:
        self.violations.append(text)

    @staticmethod
    def _error(name: str, error: tuple[int, str]) -> Exception:
        return driver_error(name, *error, "reported by the stand-in")


def install(devices: int = 2) -> FakeDriver:
    """Put stand-in devices in the place of this machine's."""
    made = FakeDriver(devices)
    cuda.use_driver(lambda: made, compile_hosted)
    return made
