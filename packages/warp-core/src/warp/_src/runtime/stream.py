"""Streams and events. On the CPU every operation is complete when it returns, so they keep order by doing nothing."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import Final

from warp._src.runtime.cuda import CudaDevice, set_current_stream
from warp._src.runtime.device import Device, DeviceLike, ScopedDevice, get_device, known_devices
from warp.errors import ArgumentError, DeviceError


class Stream:
    """An ordered queue of operations on one device.

    `priority`, lower numbers first, and `cuda_stream`, the handle of a foreign stream to wrap, have a meaning on CUDA
    devices only. A foreign stream must outlive the arrays that are made while it is current.
    """

    def __init__(self, device: DeviceLike = None, priority: int = 0, cuda_stream: int | None = None) -> None:
        self.device: Device = get_device(device)
        self.priority = priority
        self.handle = 0
        """The driver's handle; 0 on the CPU."""
        self.owner = cuda_stream is None
        if isinstance(self.device, CudaDevice):
            self._open(self.device, cuda_stream)

    def _open(self, device: CudaDevice, foreign: int | None) -> None:
        driver = device.driver
        device.streams_made += 1
        if foreign is not None:
            self.handle = int(foreign)
            return
        with device.active():
            least, greatest = driver.priority_range()
            self.handle = driver.create_stream(min(max(self.priority, greatest), least))
        weakref.finalize(self, driver.destroy_stream, self.handle).atexit = False

    @property
    def cuda_stream(self) -> int | None:
        """Return the driver's handle; None on the CPU."""
        return self.handle if self.device.is_cuda else None

    @property
    def is_complete(self) -> bool:
        """Say whether everything queued so far has run."""
        if not isinstance(self.device, CudaDevice):
            return True
        with self.device.active():
            return self.device.driver.is_stream_complete(self.handle)

    @property
    def is_capturing(self) -> bool:
        """Say whether a graph is being captured from this stream, by whomever."""
        if not isinstance(self.device, CudaDevice):
            return False
        if self.owner and not self.device.captures:
            return False  # another framework captures from no stream but its own
        with self.device.active():
            return self.device.driver.is_capturing(self.handle)

    def record_event(self, event: Event | None = None) -> Event:
        """Mark this point of the stream with `event`, or with a new one, and return it."""
        marked = event if event is not None else Event(self.device)
        marked.mark(self)
        return marked

    def wait_event(self, event: Event) -> None:
        """Let later operations of this stream wait for `event`."""
        _expect(event, Event, "event")
        if event.cuda_event is None:
            return
        if not isinstance(self.device, CudaDevice):
            synchronize_event(event)  # nothing is queued on the CPU, so it waits now
            return
        with self.device.active():
            self.device.driver.wait_event(self.handle, event.cuda_event)

    def wait_stream(self, other_stream: Stream, event: Event | None = None) -> None:
        """Let later operations of this stream wait for everything queued on `other_stream`."""
        _expect(other_stream, Stream, "other_stream")
        if event is not None or (other_stream.device.is_cuda and other_stream.handle != self.handle):
            self.wait_event(other_stream.record_event(event))

    def synchronize(self) -> None:
        """Wait until everything queued has run. Raises LaunchError if a kernel failed a check."""
        if not isinstance(self.device, CudaDevice):
            return
        if self.is_capturing:
            raise DeviceError(
                f"a stream of device '{self.device}' cannot be waited for while a graph is captured from it; values of "
                "arrays are not known then"
            )
        with self.device.active():
            self.device.driver.synchronize_stream(self.handle)
        self.device.check_faults(self.handle)

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
        if enable_timing and interprocess and self.device.is_cuda:
            raise ArgumentError("an event for other processes cannot measure time: give enable_timing or interprocess")
        if isinstance(self.device, CudaDevice):
            with self.device.active():
                self.cuda_event = self.device.driver.create_event(enable_timing, interprocess)
            weakref.finalize(self, self.device.driver.destroy_event, self.cuda_event).atexit = False

    @property
    def is_complete(self) -> bool:
        """Say whether the recorded point has been reached."""
        if not isinstance(self.device, CudaDevice) or self.cuda_event is None:
            return True
        with self.device.active():
            return self.device.driver.is_event_complete(self.cuda_event)

    @property
    def time_ns(self) -> int:
        """Return the host time at which the point was recorded. Raises DeviceError if it was never recorded."""
        if self._time_ns is None:
            raise DeviceError("the event has not been recorded")
        return self._time_ns

    def mark(self, stream: Stream | None = None) -> None:
        """Take the present end of a stream, the device's current one by default, as the event's point."""
        self._time_ns = time.perf_counter_ns()
        if isinstance(self.device, CudaDevice) and self.cuda_event is not None:
            where = get_stream(self.device) if stream is None else stream
            if where.device is not self.device:
                raise ArgumentError(f"the event is of device '{self.device}', the stream of '{where.device}'")
            with self.device.active():
                self.device.driver.record_event(self.cuda_event, where.handle)


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
    current = _current_streams.get().get(found.alias)
    if current is not None and current.device is found:
        return current
    if found.default_stream is None:
        found.default_stream = Stream(found)
    default: Stream = found.default_stream
    return default


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
    host_time = (end_event.time_ns - start_event.time_ns) / 1e6
    device = end_event.device
    if not isinstance(device, CudaDevice) or start_event.cuda_event is None or end_event.cuda_event is None:
        return host_time
    with device.active():
        return device.driver.elapsed_milliseconds(start_event.cuda_event, end_event.cuda_event)


def synchronize() -> None:
    """Wait until every operation on every device has run. Raises LaunchError if a kernel failed a check."""
    for device in _devices_in_use():
        device.synchronize()


def synchronize_device(device: DeviceLike = None) -> None:
    """Wait until every operation on a device has run. Raises LaunchError if a kernel failed a check."""
    found = get_device(device)
    if isinstance(found, CudaDevice):
        found.synchronize()


def synchronize_stream(stream_or_device: Stream | DeviceLike = None) -> None:
    """Wait until every operation on a stream, or on a device's current stream, has run.

    Raises LaunchError if a kernel failed a check.
    """
    stream = stream_or_device if isinstance(stream_or_device, Stream) else get_stream(stream_or_device)
    stream.synchronize()


def synchronize_event(event: Event) -> None:
    """Wait until an event's point has been reached."""
    _expect(event, Event, "event")
    if isinstance(event.device, CudaDevice) and event.cuda_event is not None:
        with event.device.active():
            event.device.driver.synchronize_event(event.cuda_event)


def _devices_in_use() -> list[CudaDevice]:
    return [device for device in known_devices() if isinstance(device, CudaDevice)]


def _expect(value: object, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} must be a warp.{kind.__name__}, not {type(value).__qualname__}")


set_current_stream(get_stream)
