"""Streams and events. On the CPU every operation is complete when it returns, so they keep order by doing nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType, TracebackType
from typing import Final

from warp._src.runtime.device import Device, DeviceLike, ScopedDevice, get_device
from warp.errors import ArgumentError, DeviceError


class Stream:
    """An ordered queue of operations on one device.

    `priority` and `cuda_stream` (the handle of a foreign stream to wrap) have a meaning on CUDA devices only.
    """

    def __init__(self, device: DeviceLike = None, priority: int = 0, cuda_stream: int | None = None) -> None:
        self.device: Device = get_device(device)
        self.priority = priority
        self.cuda_stream = cuda_stream
        self.owner = cuda_stream is None

    @property
    def is_complete(self) -> bool:
        """Say whether everything queued so far has run."""
        return True

    @property
    def is_capturing(self) -> bool:
        """Say whether a graph is being captured from this stream."""
        return False

    def record_event(self, event: Event | None = None) -> Event:
        """Mark this point of the stream with `event`, or with a new one, and return it."""
        marked = event if event is not None else Event(self.device)
        marked.mark()
        return marked

    def wait_event(self, event: Event) -> None:
        """Let later operations of this stream wait for `event`."""
        _expect(event, Event, "event")

    def wait_stream(self, other_stream: Stream, event: Event | None = None) -> None:
        """Let later operations of this stream wait for everything queued on `other_stream`."""
        _expect(other_stream, Stream, "other_stream")
        if event is not None:
            other_stream.record_event(event)

    def __repr__(self) -> str:
        return f"Stream(device={self.device.alias!r})"


class Event:
    """A point in a stream. With `enable_timing` the time between two of them can be measured."""

    def __init__(self, device: DeviceLike = None, enable_timing: bool = False, interprocess: bool = False) -> None:
        self.device: Device = get_device(device)
        self.enable_timing = enable_timing
        self.interprocess = interprocess
        self.cuda_event: int | None = None
        self._time_ns: int | None = None

    @property
    def is_complete(self) -> bool:
        """Say whether the recorded point has been reached."""
        return True

    @property
    def time_ns(self) -> int:
        """Return the host time at which the point was reached. Raises DeviceError if it was never recorded."""
        if self._time_ns is None:
            raise DeviceError("the event has not been recorded")
        return self._time_ns

    def mark(self) -> None:
        """Take the present as the event's time."""
        self._time_ns = time.perf_counter_ns()


_NO_STREAMS: Final[Mapping[str, Stream]] = MappingProxyType({})
_current_streams: Final[ContextVar[Mapping[str, Stream]]] = ContextVar("warp_streams", default=_NO_STREAMS)


class ScopedStream:
    """Make a stream, and its device, current inside a `with` block. None leaves everything as it is.

    `sync_enter` lets the stream wait for the one it replaces; `sync_exit` the other way round at the end.
    """

    def __init__(self, stream: Stream | None, sync_enter: bool = True, sync_exit: bool = False) -> None:
        if stream is not None:
            _expect(stream, Stream, "stream")
        self.stream = stream
        self.device = stream.device if stream is not None else None
        self.sync_enter = sync_enter
        self.sync_exit = sync_exit
        self._entered: list[tuple[ScopedDevice, Stream]] = []

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            scope = ScopedDevice(self.stream.device)
            scope.__enter__()
            self._entered.append((scope, get_stream(self.stream.device)))
            set_stream(self.stream, sync=self.sync_enter)
        return self.stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.stream is not None:
            scope, previous = self._entered.pop()
            set_stream(previous, sync=self.sync_exit)
            scope.__exit__(kind, error, traceback)


def get_stream(device: DeviceLike = None) -> Stream:
    """Return the current stream of a device."""
    found = get_device(device)
    return _current_streams.get().get(found.alias) or _default_stream(found.alias)


def set_stream(stream: Stream, device: DeviceLike = None, sync: bool = False) -> None:
    """Make a stream current on its device; with `sync` it first waits for the one it replaces."""
    _expect(stream, Stream, "stream")
    if device is not None and get_device(device) != stream.device:
        raise ArgumentError(f"stream belongs to device {stream.device}, not to {get_device(device)}")
    if sync:
        stream.wait_stream(get_stream(stream.device))
    _current_streams.set({**_current_streams.get(), stream.device.alias: stream})


def record_event(event: Event | None = None) -> Event:
    """Record an event, or a new one, on the current stream and return it."""
    return get_stream(event.device if event is not None else None).record_event(event)


def wait_event(event: Event) -> None:
    """Let the current stream wait for an event."""
    _expect(event, Event, "event")
    get_stream(event.device).wait_event(event)


def wait_stream(other_stream: Stream, event: Event | None = None) -> None:
    """Let the current stream wait for everything queued on another."""
    get_stream().wait_stream(other_stream, event)


def get_event_elapsed_time(start_event: Event, end_event: Event, synchronize: bool = True) -> float:
    """Return the milliseconds between two recorded events.

    `synchronize` waits for `end_event` first. Raises ArgumentError if an event was made without `enable_timing`,
    DeviceError if one was never recorded.
    """
    for name, event in (("start_event", start_event), ("end_event", end_event)):
        _expect(event, Event, name)
        if not event.enable_timing:
            raise ArgumentError(f"{name} was made without enable_timing=True")
    if synchronize:
        synchronize_event(end_event)
    return (end_event.time_ns - start_event.time_ns) / 1e6


def synchronize() -> None:
    """Wait until every operation on every device has run."""


def synchronize_device(device: DeviceLike = None) -> None:
    """Wait until every operation on a device has run."""
    get_device(device)


def synchronize_stream(stream_or_device: Stream | DeviceLike = None) -> None:
    """Wait until every operation on a stream, or on a device's current stream, has run."""
    if not isinstance(stream_or_device, Stream):
        get_stream(stream_or_device)


def synchronize_event(event: Event) -> None:
    """Wait until an event's point has been reached."""
    _expect(event, Event, "event")


@cache
def _default_stream(alias: str) -> Stream:
    return Stream(alias)


def _expect(value: object, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} must be a warp.{kind.__name__}, not {type(value).__qualname__}")
