"""CUDA graphs: operations that are captured from a stream once and launched again and again."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final

from warp._src.recording.recorder import current_recorder, listen_to_writes, mark_written, stop_listening
from warp._src.runtime.cuda import Block, CudaDevice, DeviceMemory
from warp._src.runtime.device import DeviceLike
from warp._src.runtime.driver import CAPTURE_THREAD_LOCAL
from warp._src.runtime.stream import ScopedStream, Stream, get_stream
from warp.errors import ArgumentError, AutogradError, DeviceError


class Graph:
    """Captured operations, ready to be launched; it keeps the memory that they use."""

    def __init__(self, capture: Capture, graph: int, executable: int) -> None:
        self.device = capture.device
        self._capture = capture
        self._graph = graph
        self._executable = executable
        finalizer = weakref.finalize(self, _discard, capture, graph, executable)
        finalizer.atexit = False

    @property
    def writes(self) -> list[Any]:
        """Return the arrays that a launch writes."""
        return list(self._capture.writes.values())

    def launch(self, stream: Stream) -> None:
        """Queue the operations on a stream of the graph's device, or make them part of the graph captured from it."""
        if not self._executable:
            raise DeviceError("the graph was captured by another framework, which has to launch it")
        if current_recorder() is not None:
            raise AutogradError(
                "a tape cannot record the launch of a graph; capture the backward pass together with the forward pass, "
                "or launch the kernels themselves"
            )
        capture = self.device.capture_of(stream.handle)
        with self.device.active():
            if capture is None:
                self.device.driver.launch_graph(self._executable, stream.handle)
            elif self._capture.has_conditions:
                raise DeviceError(
                    "a graph with branches or loops cannot be part of another one; give the function that it was "
                    "captured from"
                )
            else:
                self.device.driver.add_child_graph(stream.handle, self._graph)
                capture.keep(self)
        self._capture.streams[stream.handle] = stream
        mark_written(self.writes)

    def note_streams(self, streams: dict[int, Stream]) -> None:
        """Keep what the graph uses until streams are done that have run it as a part of another one."""
        self._capture.streams.update(streams)


class Capture:
    """A graph in the making. What is freed meanwhile stays for the graph, which may use it in every run."""

    def __init__(self, stream: Stream, is_external: bool) -> None:
        assert isinstance(stream.device, CudaDevice)
        self.device: CudaDevice = stream.device
        self.stream = stream
        self.is_external = is_external
        self.writes: dict[int, Any] = {}
        self.streams: dict[int, Stream] = {stream.handle: stream}
        self.has_conditions = False
        self.open_bodies = 0
        """How many branches and loops are being captured, one inside of the other."""
        self.is_broken = False
        """Whether a branch or loop was not captured completely."""
        self._thread = threading.get_ident()
        self._kept: dict[int, object] = {}
        self._blocks: list[Block] = []

    def keep(self, kept: object) -> None:
        """Keep an object as long as the graph."""
        self._kept[id(kept)] = kept

    def keep_block(self, block: Block) -> None:
        """Free memory no sooner than the graph."""
        self._blocks.append(block)

    def note_writes(self, arrays: Sequence[Any]) -> None:
        """Note what an operation has written, if it is one of the capture."""
        if threading.get_ident() == self._thread:
            self.writes.update((id(array), array) for array in arrays if array.device is self.device)

    def discard(self) -> None:
        """Free what was kept, once the streams that ran the graph are done with it."""
        for block in self._blocks:
            block.users.update(self.streams)
            self.device.release(block)
        for kept in self._kept.values():
            if isinstance(kept, Graph):
                kept.note_streams(self.streams)
            memory = getattr(kept, "owner", kept)
            if isinstance(memory, DeviceMemory):
                for stream in self.streams.values():
                    memory.note_use(stream)
        self._blocks.clear()
        self._kept.clear()
        self.writes.clear()


def _discard(capture: Capture, graph: int, executable: int) -> None:
    if executable:
        with capture.device.active():
            capture.device.driver.destroy_executable(executable)
            capture.device.driver.destroy_graph(graph)
    capture.discard()


def capture_begin(
    device: DeviceLike = None,
    stream: Stream | None = None,
    force_module_load: bool | None = None,  # noqa: ARG001 - kernels are loaded when they are first needed
    external: bool = False,
) -> None:
    """Begin to capture what is queued on a stream into a graph, instead of running it.

    Args:
        device: The device; the current one by default.
        stream: The stream; the current one of the device by default. Streams that wait for its events take part.
        force_module_load: Accepted for compatibility: kernels can be compiled and loaded during a capture.
        external: Another framework captures from the stream already; the arrays used are kept for its graph.

    Raises:
        DeviceError: The device is not a CUDA device, or a graph is being captured from the stream already.
    """
    place = stream if stream is not None else get_stream(device)
    found = place.device
    if not isinstance(found, CudaDevice):
        raise DeviceError(f"graphs are captured on CUDA devices, not on '{found}'")
    if any(capture.stream.handle == place.handle for capture in found.captures):
        raise DeviceError("a graph is being captured from the stream already")
    if not external:
        with found.active():
            found.driver.begin_capture(place.handle, CAPTURE_THREAD_LOCAL)
    capture = Capture(place, external)
    found.captures.append(capture)
    listen_to_writes(capture.note_writes)


def capture_end(device: DeviceLike = None, stream: Stream | None = None) -> Graph:
    """End the capture from a stream, by default the current one of a device, and return the graph.

    Raises DeviceError if none was begun, or if something that cannot be captured has invalidated it.
    """
    place = stream if stream is not None else get_stream(device)
    found = place.device
    captures = found.captures if isinstance(found, CudaDevice) else []
    capture = next((made for made in captures if made.stream.handle == place.handle), None)
    if capture is None or not isinstance(found, CudaDevice):
        raise DeviceError("no graph is being captured from the stream")
    if capture.open_bodies:
        raise DeviceError("a capture cannot end inside of its branches and loops")
    found.captures.remove(capture)
    stop_listening(capture.note_writes)
    if capture.is_external:
        return Graph(capture, 0, 0)
    try:
        with found.active():
            graph = found.driver.end_capture(place.handle)
            executable = _instantiate(found, capture, graph)
    except DeviceError:
        capture.discard()
        raise
    return Graph(capture, graph, executable)


def _instantiate(device: CudaDevice, capture: Capture, graph: int) -> int:
    try:
        if capture.is_broken:
            raise DeviceError("a branch or loop of the graph was not captured completely, because of an error in it")
        return device.driver.instantiate(graph)
    except DeviceError:
        device.driver.destroy_graph(graph)
        raise


def capture_launch(graph: Graph, stream: Stream | None = None) -> None:
    """Launch a graph on a stream, by default the current one of the graph's device.

    Raises AutogradError inside a tape, which cannot see what a graph does.
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(f"graph must be a warp.Graph, not {type(graph).__qualname__}")
    place = stream if stream is not None else get_stream(graph.device)
    if place.device is not graph.device:
        raise ArgumentError(f"stream belongs to device {place.device}, the graph to {graph.device}")
    graph.launch(place)


class ScopedCapture:
    """Capture what is queued inside a `with` block; `graph` holds the result afterwards."""

    def __init__(
        self,
        device: DeviceLike = None,
        stream: Stream | None = None,
        force_module_load: bool | None = None,
        external: bool = False,
    ) -> None:
        self.stream = stream if stream is not None else get_stream(device)
        self.device = self.stream.device
        self.graph: Graph | None = None
        self._options: Final = (force_module_load, external)
        self._scope = ScopedStream(self.stream, sync_enter=False)

    def __enter__(self) -> ScopedCapture:
        force_module_load, external = self._options
        capture_begin(stream=self.stream, force_module_load=force_module_load, external=external)
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._scope.__exit__(kind, error, traceback)
        try:
            self.graph = capture_end(stream=self.stream)
        except DeviceError:
            if error is None:
                raise  # else the error that made the capture invalid is on its way
