"""Queues of a stand-in device, and graphs captured from them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Operation:
    """Something that is queued, and how far other streams must be before it runs."""

    kind: str
    run: Callable[[], None]
    waits: list[tuple[Stream, int]] = field(default_factory=list)


class Stream:
    """A queue that runs when somebody waits for it, and not sooner."""

    def __init__(self, handle: int, ordinal: int, is_blocking: bool) -> None:
        self.handle = handle
        self.ordinal = ordinal
        self.is_blocking = is_blocking
        self.graph: Graph | None = None
        self.done = 0
        self._waiting: deque[Operation] = deque()

    @property
    def end(self) -> int:
        """Return the position after the last operation."""
        return self.done + len(self._waiting)

    @property
    def is_complete(self) -> bool:
        return not self._waiting

    def add(self, operation: Operation) -> None:
        self._waiting.append(operation)

    def run(self, position: int | None = None) -> None:
        """Run up to a position, or everything."""
        last = self.end if position is None else position
        while self.done < last:
            operation = self._waiting.popleft()
            self.done += 1
            for stream, needed in operation.waits:
                stream.run(needed)
            operation.run()


class Event:
    """A position in a stream."""

    def __init__(self, handle: int, ordinal: int, has_timing: bool) -> None:
        self.handle = handle
        self.ordinal = ordinal
        self.has_timing = has_timing
        self.stream: Stream | None = None
        self.position = 0
        self.graph: Graph | None = None
        self.time = 0.0

    def reach(self) -> None:
        self.time = time.perf_counter()


class Graph:
    """What is captured instead of being run, in the order of the calls, which respects every dependency."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.operations: list[Operation] = []
        self.conditions: dict[int, bool] = {}
        """Conditions that were made for the graph, and whether a node of it has them."""
        self.is_instantiated = False

    def enter(self, origin: Stream, mode: int, thread: int) -> None:
        """Begin to capture from a stream."""
        self.origin = origin
        self.mode = mode
        self.thread = thread
        self._streams = [origin]
        self._unjoined: set[Stream] = set()
        origin.graph = self

    def add(self, stream: Stream, operation: Operation) -> None:
        self.operations.append(operation)
        if stream is not self.origin:
            self._unjoined.add(stream)

    def join(self, stream: Stream, event: Event) -> None:
        """Let a stream take part that waits for an event of the capture."""
        if stream.graph is None:
            stream.graph = self
            self._streams.append(stream)
            self._unjoined.add(stream)
        if event.stream is not None:
            self._unjoined.discard(event.stream)

    def leave(self) -> set[Stream]:
        """End the capture; return the streams that were left behind."""
        for stream in self._streams:
            stream.graph = None
        return self._unjoined


class Executable:
    """A graph that can be launched."""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations

    def run(self) -> None:
        for operation in self._operations:
            operation.run()
