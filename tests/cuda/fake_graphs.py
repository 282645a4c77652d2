"""Graphs of the stand-in for a driver: captured from streams, instantiated once or more, launched."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

from tests.cuda import fake_errors as errors
from tests.cuda.fake_streams import Executable, Graph, Operation, Stream

from warp._src.runtime.driver import CAPTURE_GLOBAL, CAPTURE_RELAXED

_FIRST_WITH_CONDITIONS = 12040
_FIRST_WITH_EMPTY_BODIES = 12080


class Graphs:
    """The calls that concern graphs. What is captured in them runs in the order of the calls."""

    def __init__(self, handles: Iterator[int]) -> None:
        self._handles = handles
        self._thread = threading.local()
        self._graphs: dict[int, Graph] = {}
        self._executables: dict[int, Executable] = {}
        self._conditions: dict[int, ctypes.c_uint] = {}

    def begin_capture(self, stream: int, mode: int) -> None:
        self._begin("cuStreamBeginCapture", stream, Graph(next(self._handles)), mode)

    def begin_capture_to(self, stream: int, graph: int, mode: int) -> None:
        self._begin("cuStreamBeginCaptureToGraph", stream, self._graphs[graph], mode)

    def _begin(self, name: str, stream: int, graph: Graph, mode: int) -> None:
        queue = self._stream(stream)
        if stream == 0 or queue.graph is not None:
            raise self._error(name, errors.CAPTURE_UNSUPPORTED)
        graph.enter(queue, mode, threading.get_ident())

    def end_capture(self, stream: int) -> int:
        queue = self._stream(stream)
        graph = queue.graph
        if graph is None or graph.origin is not queue:
            raise self._error("cuStreamEndCapture", errors.INVALID_VALUE)
        unjoined = graph.leave()
        if unjoined:
            raise self._error("cuStreamEndCapture", errors.CAPTURE_UNJOINED)
        self._graphs[graph.handle] = graph
        return graph.handle

    def exchange_capture_mode(self, mode: int) -> int:
        previous: int = getattr(self._thread, "mode", CAPTURE_GLOBAL)
        self._thread.mode = mode
        return previous

    def instantiate(self, graph: int) -> int:
        made = self._graphs[graph]
        if not all(made.conditions.values()) or (made.conditions and made.is_instantiated):
            raise self._error("cuGraphInstantiate", errors.INVALID_VALUE)
        made.is_instantiated = True
        handle = next(self._handles)
        self._executables[handle] = Executable(list(made.operations))
        return handle

    def launch_graph(self, executable: int, stream: int) -> None:
        made, queue = self._executables[executable], self._stream(stream)
        if queue.graph is not None:
            raise self._error("cuGraphLaunch: a capture takes child graphs", errors.CAPTURE_UNSUPPORTED)
        self._queue(queue, "graph", made.run)

    def destroy_graph(self, graph: int) -> None:
        del self._graphs[graph]

    def destroy_executable(self, executable: int) -> None:
        del self._executables[executable]

    def add_child_graph(self, stream: int, graph: int) -> None:
        child = self._graphs[graph]
        if child.conditions:
            raise self._error("cuGraphAddNode: a child has conditional nodes", errors.INVALID_VALUE)
        self._add(stream, Operation("graph", Executable(list(child.operations)).run))

    # ------------------------------------------------------------------ conditional nodes

    def create_condition(self, stream: int) -> int:
        graph = self._captured(stream)
        if self.driver_version() < _FIRST_WITH_CONDITIONS:
            raise self._error("cuGraphConditionalHandleCreate", errors.NOT_SUPPORTED)
        value = ctypes.c_uint(0)
        handle = ctypes.addressof(value)
        self._conditions[handle] = value
        graph.conditions[handle] = False
        return handle

    def add_conditional(self, stream: int, condition: int, is_loop: bool) -> int:
        graph = self._captured(stream)
        if graph.conditions.get(condition, True):
            raise self._error("cuGraphAddNode: the condition is not of the graph or in use", errors.INVALID_VALUE)
        graph.conditions[condition] = True
        value, body = self._conditions[condition], Graph(next(self._handles))
        self._graphs[body.handle] = body

        def run() -> None:
            if not body.operations and self.driver_version() < _FIRST_WITH_EMPTY_BODIES:
                self._violate("a conditional node with an empty graph, which hangs")
            while value.value:
                for operation in body.operations:
                    operation.run()
                if not is_loop:
                    break

        self._add(stream, Operation("conditional", run))
        return body.handle

    def last_captured(self, stream: int) -> tuple[int, ...]:
        return (len(self._captured(stream).operations),)

    def _captured(self, stream: int) -> Graph:
        graph: Graph | None = self._stream(stream).graph
        if graph is None:
            raise self._error("cuStreamGetCaptureInfo: nothing is captured", errors.INVALID_VALUE)
        return graph

    def _add(self, stream: int, operation: Operation) -> None:
        queue: Stream = self._stream(stream)
        self._captured(stream).add(queue, operation)

    def _refuse_in_capture(self, name: str) -> None:
        """Refuse what no thread may do while a graph is captured, unless it says that it knows."""
        is_relaxed = getattr(self._thread, "mode", CAPTURE_GLOBAL) == CAPTURE_RELAXED
        here = threading.get_ident()
        streams: list[Any] = list(self._streams.values())
        graphs = [stream.graph for stream in streams if stream.graph is not None]
        if not is_relaxed and any(g.mode == CAPTURE_GLOBAL or g.thread == here for g in graphs):
            raise self._error(name, errors.CAPTURE_UNSUPPORTED)
