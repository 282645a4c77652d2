"""The calls of the CUDA driver that the runtime uses, and the only module that imports `cuda.bindings.driver`.

Handles, addresses and ordinals are plain integers. Whatever the driver refuses is a DeviceError.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any, Final, Protocol

from warp.errors import DeviceError

LEGACY_STREAM: Final = 0
"""The stream that every stream without the non-blocking flag keeps in step with."""

CAPTURE_GLOBAL: Final = 0
CAPTURE_THREAD_LOCAL: Final = 1
CAPTURE_RELAXED: Final = 2


class Driver(Protocol):
    """What the runtime asks of a CUDA driver; calls that name no device or stream concern the current context."""

    def device_count(self) -> int: ...
    def driver_version(self) -> int: ...
    def function(self, name: str) -> int: ...
    def explain(self, name: str, code: int) -> str: ...
    def device_name(self, ordinal: int) -> str: ...
    def device_uuid(self, ordinal: int) -> bytes: ...
    def device_attribute(self, ordinal: int, name: str) -> int: ...
    def total_memory(self, ordinal: int) -> int: ...
    def can_access_peer(self, ordinal: int, peer: int) -> bool: ...

    def retain_context(self, ordinal: int) -> int: ...
    def current_context(self) -> int: ...
    def set_context(self, context: int) -> None: ...
    def synchronize_context(self) -> None: ...
    def enable_peer(self, context: int) -> None: ...
    def disable_peer(self, context: int) -> None: ...

    def free_memory(self) -> int: ...
    def allocate(self, size: int) -> int: ...
    def free(self, address: int) -> None: ...
    def allocate_async(self, size: int, stream: int) -> int: ...
    def free_async(self, address: int, stream: int) -> None: ...
    def allocate_host(self, size: int) -> int: ...
    def free_host(self, address: int) -> None: ...
    def copy(self, target: int, source: int, size: int, stream: int) -> None: ...
    def fill_bytes(self, target: int, value: int, size: int, stream: int) -> None: ...
    def ordinal_of(self, address: int) -> int: ...

    def memory_pool(self, ordinal: int) -> int: ...
    def pool_attribute(self, pool: int, name: str) -> int: ...
    def set_pool_attribute(self, pool: int, name: str, value: int) -> None: ...
    def trim_pool(self, pool: int, kept: int) -> None: ...
    def is_pool_accessible(self, pool: int, peer: int) -> bool: ...
    def set_pool_access(self, pool: int, peer: int, is_enabled: bool) -> None: ...

    def create_stream(self, priority: int) -> int: ...
    def destroy_stream(self, stream: int) -> None: ...
    def priority_range(self) -> tuple[int, int]: ...
    def is_blocking(self, stream: int) -> bool: ...
    def synchronize_stream(self, stream: int) -> None: ...
    def is_stream_complete(self, stream: int) -> bool: ...
    def is_capturing(self, stream: int) -> bool: ...
    def wait_event(self, stream: int, event: int) -> None: ...

    def create_event(self, has_timing: bool, is_shared: bool) -> int: ...
    def destroy_event(self, event: int) -> None: ...
    def record_event(self, event: int, stream: int) -> None: ...
    def synchronize_event(self, event: int) -> None: ...
    def is_event_complete(self, event: int) -> bool: ...
    def elapsed_milliseconds(self, start: int, end: int) -> float: ...

    def load_library(self, image: bytes) -> int: ...
    def kernel(self, library: int, name: str) -> int: ...
    def launch(self, kernel: int, grid: int, block: int, stream: int, parameters: tuple[bytes, ...]) -> None: ...

    def begin_capture(self, stream: int, mode: int) -> None: ...
    def end_capture(self, stream: int) -> int: ...
    def exchange_capture_mode(self, mode: int) -> int: ...
    def instantiate(self, graph: int) -> int: ...
    def launch_graph(self, executable: int, stream: int) -> None: ...
    def destroy_graph(self, graph: int) -> None: ...
    def destroy_executable(self, executable: int) -> None: ...
    def add_child_graph(self, stream: int, graph: int) -> None: ...
    def create_condition(self, stream: int) -> int: ...
    def add_conditional(self, stream: int, condition: int, is_loop: bool) -> int: ...
    def begin_capture_to(self, stream: int, graph: int, mode: int) -> None: ...
    def last_captured(self, stream: int) -> tuple[int, ...]: ...


class CudaDriver:
    """The driver of this machine, through cuda-python."""

    def __init__(self) -> None:
        """Load and initialise the driver. Raises DeviceError if there is none, or one that is too old."""
        try:
            self._bindings: Any = importlib.import_module("cuda.bindings.driver")
            self._call("cuInit", 0)
        except (ImportError, OSError, RuntimeError) as error:
            raise DeviceError(f"CUDA cannot be used: {error}") from error
        version = self.driver_version()
        if version < _OLDEST_VERSION:
            raise DeviceError(f"the CUDA driver is for CUDA {version_text(version)}; 12.0 or later is needed")

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a function; give what follows the status in its answer."""
        status, *values = getattr(self._bindings, name)(*arguments)
        if int(status):
            raise self._error(name, status)
        return values[0] if len(values) == 1 else tuple(values)

    def _error(self, name: str, status: Any) -> DeviceError:
        code = int(status)
        known, text = self._bindings.cuGetErrorString(status)
        meaning = "" if int(known) else text.decode("ascii", "replace")
        return driver_error(name, code, getattr(status, "name", "CUDA_ERROR"), meaning)

    def _is_ready(self, name: str, handle: int) -> bool:
        (status,) = getattr(self._bindings, name)(handle)
        if int(status) == _NOT_READY:
            return False
        if int(status):
            raise self._error(name, status)
        return True

    # ------------------------------------------------------------------ devices

    def device_count(self) -> int:
        return int(self._call("cuDeviceGetCount"))

    def driver_version(self) -> int:
        return int(self._call("cuDriverGetVersion"))

    def function(self, name: str) -> int:
        """Return the address of a function of the driver, for native code. Raises DeviceError if there is none."""
        address, _ = self._call("cuGetProcAddress", name.encode(), _OLDEST_VERSION, 0)
        if not address:
            raise DeviceError(f"the CUDA driver has no function {name}")
        return int(address)

    def explain(self, name: str, code: int) -> str:
        """Say what it means that a function has returned a code to native code."""
        return str(self._error(name, self._bindings.CUresult(code)))

    def device_name(self, ordinal: int) -> str:
        name: bytes = self._call("cuDeviceGetName", 256, self._device(ordinal))
        return name.rstrip(b"\0").decode("utf-8", "replace")

    def device_uuid(self, ordinal: int) -> bytes:
        return bytes(self._call("cuDeviceGetUuid", self._device(ordinal)).bytes)

    def device_attribute(self, ordinal: int, name: str) -> int:
        attribute = getattr(self._bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", attribute, self._device(ordinal)))

    def total_memory(self, ordinal: int) -> int:
        return int(self._call("cuDeviceTotalMem", self._device(ordinal)))

    def can_access_peer(self, ordinal: int, peer: int) -> bool:
        return bool(self._call("cuDeviceCanAccessPeer", self._device(ordinal), self._device(peer)))

    def _device(self, ordinal: int) -> Any:
        return self._call("cuDeviceGet", ordinal)

    # ------------------------------------------------------------------ contexts

    def retain_context(self, ordinal: int) -> int:
        return int(self._call("cuDevicePrimaryCtxRetain", self._device(ordinal)))

    def current_context(self) -> int:
        return int(self._call("cuCtxGetCurrent"))

    def set_context(self, context: int) -> None:
        self._call("cuCtxSetCurrent", context)

    def synchronize_context(self) -> None:
        self._call("cuCtxSynchronize")

    def enable_peer(self, context: int) -> None:
        self._call("cuCtxEnablePeerAccess", context, 0)

    def disable_peer(self, context: int) -> None:
        self._call("cuCtxDisablePeerAccess", context)

    # ------------------------------------------------------------------ memory

    def free_memory(self) -> int:
        free, _ = self._call("cuMemGetInfo")
        return int(free)

    def allocate(self, size: int) -> int:
        return int(self._call("cuMemAlloc", size))

    def free(self, address: int) -> None:
        self._call("cuMemFree", address)

    def allocate_async(self, size: int, stream: int) -> int:
        return int(self._call("cuMemAllocAsync", size, stream))

    def free_async(self, address: int, stream: int) -> None:
        self._call("cuMemFreeAsync", address, stream)

    def allocate_host(self, size: int) -> int:
        # Pinned for every context, and seen by all devices at the address that the host has.
        return int(self._call("cuMemHostAlloc", size, _HOST_PORTABLE | _HOST_MAPPED))

    def free_host(self, address: int) -> None:
        self._call("cuMemFreeHost", address)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self._call("cuMemcpyAsync", target, source, size, stream)

    def fill_bytes(self, target: int, value: int, size: int, stream: int) -> None:
        self._call("cuMemsetD8Async", target, value, size, stream)

    def ordinal_of(self, address: int) -> int:
        attribute = self._bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self._call("cuPointerGetAttribute", attribute, address))

    # ------------------------------------------------------------------ pools

    def memory_pool(self, ordinal: int) -> int:
        return int(self._call("cuDeviceGetDefaultMemPool", self._device(ordinal)))

    def pool_attribute(self, pool: int, name: str) -> int:
        return int(self._call("cuMemPoolGetAttribute", pool, self._pool_attribute(name)))

    def set_pool_attribute(self, pool: int, name: str, value: int) -> None:
        wrapped = self._bindings.cuuint64_t(value)
        self._call("cuMemPoolSetAttribute", pool, self._pool_attribute(name), wrapped)

    def _pool_attribute(self, name: str) -> Any:
        return getattr(self._bindings.CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")

    def trim_pool(self, pool: int, kept: int) -> None:
        self._call("cuMemPoolTrimTo", pool, kept)

    def is_pool_accessible(self, pool: int, peer: int) -> bool:
        flags = self._call("cuMemPoolGetAccess", pool, self._location(peer))
        return bool(int(flags) == int(self._bindings.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE))

    def set_pool_access(self, pool: int, peer: int, is_enabled: bool) -> None:
        access = self._bindings.CUmemAccess_flags
        description = self._bindings.CUmemAccessDesc()
        description.location = self._location(peer)
        description.flags = (
            access.CU_MEM_ACCESS_FLAGS_PROT_READWRITE if is_enabled else access.CU_MEM_ACCESS_FLAGS_PROT_NONE
        )
        self._call("cuMemPoolSetAccess", pool, [description], 1)

    def _location(self, ordinal: int) -> Any:
        location = self._bindings.CUmemLocation()
        location.type = self._bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = ordinal
        return location

    # ------------------------------------------------------------------ streams and events

    def create_stream(self, priority: int) -> int:
        return int(self._call("cuStreamCreateWithPriority", 0, priority))

    def destroy_stream(self, stream: int) -> None:
        self._call("cuStreamDestroy", stream)

    def priority_range(self) -> tuple[int, int]:
        least, greatest = self._call("cuCtxGetStreamPriorityRange")
        return int(least), int(greatest)

    def is_blocking(self, stream: int) -> bool:
        return not int(self._call("cuStreamGetFlags", stream)) & _NON_BLOCKING

    def synchronize_stream(self, stream: int) -> None:
        self._call("cuStreamSynchronize", stream)

    def is_stream_complete(self, stream: int) -> bool:
        return self._is_ready("cuStreamQuery", stream)

    def is_capturing(self, stream: int) -> bool:
        return bool(int(self._call("cuStreamIsCapturing", stream)))

    def wait_event(self, stream: int, event: int) -> None:
        self._call("cuStreamWaitEvent", stream, event, 0)

    def create_event(self, has_timing: bool, is_shared: bool) -> int:
        flags = (0 if has_timing else _EVENT_WITHOUT_TIMING) | (_EVENT_INTERPROCESS if is_shared else 0)
        return int(self._call("cuEventCreate", flags))

    def destroy_event(self, event: int) -> None:
        self._call("cuEventDestroy", event)

    def record_event(self, event: int, stream: int) -> None:
        self._call("cuEventRecord", event, stream)

    def synchronize_event(self, event: int) -> None:
        self._call("cuEventSynchronize", event)

    def is_event_complete(self, event: int) -> bool:
        return self._is_ready("cuEventQuery", event)

    def elapsed_milliseconds(self, start: int, end: int) -> float:
        return float(self._call("cuEventElapsedTime", start, end))

    # ------------------------------------------------------------------ kernels

    def load_library(self, image: bytes) -> int:
        return int(self._call("cuLibraryLoadData", image, [], [], 0, [], [], 0))

    def kernel(self, library: int, name: str) -> int:
        kernel = int(self._call("cuLibraryGetKernel", library, name.encode()))
        self._call("cuKernelGetFunction", kernel)  # else the first launch would load it, which captures refuse
        return kernel

    def launch(self, kernel: int, grid: int, block: int, stream: int, parameters: tuple[bytes, ...]) -> None:
        # The driver copies the parameters before it returns. It reads whole structs, whose padding the bytes may lack.
        buffers = [ctypes.create_string_buffer(data, len(data) + _PADDING) for data in parameters]
        addresses = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
        where = ctypes.addressof(addresses)
        self._call("cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, 0, stream, where, 0)

    # ------------------------------------------------------------------ graphs

    def begin_capture(self, stream: int, mode: int) -> None:
        self._call("cuStreamBeginCapture", stream, self._bindings.CUstreamCaptureMode(mode))

    def end_capture(self, stream: int) -> int:
        return int(self._call("cuStreamEndCapture", stream))

    def exchange_capture_mode(self, mode: int) -> int:
        return int(self._call("cuThreadExchangeStreamCaptureMode", self._bindings.CUstreamCaptureMode(mode)))

    def instantiate(self, graph: int) -> int:
        return int(self._call("cuGraphInstantiate", graph, 0))

    def launch_graph(self, executable: int, stream: int) -> None:
        self._call("cuGraphLaunch", executable, stream)

    def destroy_graph(self, graph: int) -> None:
        self._call("cuGraphDestroy", graph)

    def destroy_executable(self, executable: int) -> None:
        self._call("cuGraphExecDestroy", executable)

    def add_child_graph(self, stream: int, graph: int) -> None:
        """Add a graph to the one that is captured from a stream, in the stream's order."""
        parameters = self._bindings.CUgraphNodeParams()
        parameters.type = self._bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH
        parameters.graph.graph = graph
        self._add_node(stream, parameters)

    def create_condition(self, stream: int) -> int:
        """Make a value, for one conditional node, that kernels of the graph captured from a stream can set."""
        graph, *_ = self._capture(stream)
        return int(self._call("cuGraphConditionalHandleCreate", graph, self.current_context(), 0, 0))

    def add_conditional(self, stream: int, condition: int, is_loop: bool) -> int:
        """Add a node that runs a graph once, or again and again, while a condition is not 0; return that graph."""
        kinds = self._bindings.CUgraphConditionalNodeType
        parameters = self._bindings.CUgraphNodeParams()
        parameters.type = self._bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        parameters.conditional.handle = condition
        parameters.conditional.type = kinds.CU_GRAPH_COND_TYPE_WHILE if is_loop else kinds.CU_GRAPH_COND_TYPE_IF
        parameters.conditional.size = 1
        parameters.conditional.ctx = self.current_context()
        self._add_node(stream, parameters)
        return int(parameters.conditional.phGraph_out[0])

    def begin_capture_to(self, stream: int, graph: int, mode: int) -> None:
        """Capture from a stream into a graph that has no nodes yet."""
        mode = self._bindings.CUstreamCaptureMode(mode)
        self._call("cuStreamBeginCaptureToGraph", stream, graph, [], [], 0, mode)

    def last_captured(self, stream: int) -> tuple[int, ...]:
        """Return the nodes that whatever is captured next from a stream will wait for."""
        _, nodes, *_ = self._capture(stream)
        return tuple(map(int, nodes))

    def _capture(self, stream: int) -> tuple[Any, ...]:
        """Return the graph captured from a stream, its last nodes, with CUDA 13 what their edges are, and how many."""
        _, _, *found = self._call("cuStreamGetCaptureInfo", stream)
        return tuple(found)

    def _add_node(self, stream: int, parameters: Any) -> None:
        graph, nodes, *edges, count = self._capture(stream)
        node = self._call("cuGraphAddNode", graph, nodes, *edges, count, parameters)
        plain = [[self._bindings.CUgraphEdgeData()] for _ in edges]
        self._call("cuStreamUpdateCaptureDependencies", stream, [node], *plain, 1, _SET_DEPENDENCIES)


_OLDEST_VERSION: Final = 12000
_NOT_READY: Final = 600
_NON_BLOCKING: Final = 1
_HOST_PORTABLE: Final = 1
_HOST_MAPPED: Final = 2
_EVENT_WITHOUT_TIMING: Final = 2
_EVENT_INTERPROCESS: Final = 4
_PADDING: Final = 16
_SET_DEPENDENCIES: Final = 1

_ADVICE: Final = {
    2: "free arrays that are no longer needed, or release what the memory pool holds: set_mempool_release_threshold",
    3: "the process was forked after CUDA was initialised; use the 'spawn' start method",
    46: "another process has the device for itself",
    100: "the driver finds no device; see CUDA_VISIBLE_DEVICES",
    209: "the kernel was compiled for another architecture",
    700: "a kernel accessed memory that is not the device's; the process must be restarted to use CUDA again",
    701: "the block needs more registers than there are: use a smaller block_dim, or launch_bounds",
    716: "a kernel accessed an address that is not aligned; the process must be restarted to use CUDA again",
    719: "a kernel failed; the process must be restarted to use CUDA again",
    900: "this is not possible while a graph is captured from the stream",
    901: "the capture was invalidated by an operation that is not possible in it",
    906: "an operation on the legacy stream would wait for the capture",
}


def version_text(version: int) -> str:
    """Spell the number of a driver's version, such as 12040, as people do."""
    return f"{version // 1000}.{version % 1000 // 10}"


def driver_error(function: str, code: int, name: str, meaning: str) -> DeviceError:
    """Make the error for a call that the driver refused: its code, the code's name, what it means and what to do."""
    advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
    return DeviceError(f"{function}: {name} ({code}): {meaning or 'no description'}{advice}")
