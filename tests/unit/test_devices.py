from __future__ import annotations

import threading
import time

import pytest

from warp._src.runtime import device as devices
from warp._src.runtime import stream as streams
from warp._src.runtime.device import Device, ScopedDevice, UnknownDeviceError, get_device, set_device
from warp._src.runtime.stream import Event, ScopedStream, Stream, get_event_elapsed_time, get_stream
from warp.errors import ArgumentError, DeviceError


@pytest.fixture
def other_device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device("cpu2", "a second processor")
    monkeypatch.setitem(devices._DEVICES, "cpu2", made)
    return made


def test_the_cpu_is_always_there_and_current() -> None:
    cpu = get_device()
    assert cpu is get_device("cpu") is get_device(" CPU ") is get_device("cpu:0") is get_device(cpu)
    assert (str(cpu), repr(cpu), cpu.is_cpu, cpu.is_cuda, cpu.context) == ("cpu", 'Device("cpu")', True, False, None)
    assert cpu == "cpu" != "cuda"
    assert {cpu: 1}["cpu"] == 1  # type: ignore[index]  # equal to its name
    assert devices.get_devices() == [cpu]
    assert devices.get_preferred_device() is cpu
    assert cpu.total_memory > cpu.free_memory >= 0


def test_without_cuda_its_devices_are_refused_by_name() -> None:
    assert not devices.is_cuda_available()
    assert devices.get_cuda_device_count() == 0
    assert devices.get_cuda_devices() == []
    assert devices.is_cpu_available()
    assert devices.is_device_available("cpu")
    assert not devices.is_device_available("cuda:0")
    with pytest.raises(DeviceError, match=r'CUDA is not available: .cuda..*available: "cpu"'):
        get_device("cuda")


@pytest.mark.parametrize("ident", ["gpu", "", 7, object()])
def test_an_unknown_device_is_a_value_error_that_lists_what_exists(ident: object) -> None:
    with pytest.raises(ValueError, match='available: "cpu"') as caught:
        get_device(ident)
    assert isinstance(caught.value, UnknownDeviceError)


def test_scopes_nest_and_belong_to_their_thread(other_device: Device) -> None:
    seen = []
    with ScopedDevice("cpu2") as inside:
        assert inside is other_device is get_device()
        with ScopedDevice("cpu"):
            assert get_device() == "cpu"
        assert get_device() is other_device
        thread = threading.Thread(target=lambda: seen.append(get_device().alias))
        thread.start()
        thread.join()
    assert seen == ["cpu"]
    set_device("cpu2")
    assert get_device() is other_device
    set_device("cpu")


def test_a_scope_ends_when_an_error_leaves_it(other_device: Device) -> None:
    with pytest.raises(KeyError), ScopedStream(Stream(other_device)), ScopedDevice("cpu"):
        raise KeyError
    assert get_device() == "cpu"


def test_a_scoped_stream_is_current_with_its_device(other_device: Device) -> None:
    default = get_stream()
    assert default is get_stream("cpu")
    stream = Stream(other_device)
    with ScopedStream(stream, sync_enter=True, sync_exit=True) as inside:
        assert inside is stream is get_stream()
        assert get_device() is other_device
        assert get_stream("cpu") is default
    assert get_stream() is default
    assert get_stream(other_device) is not stream
    with ScopedStream(None):
        assert get_stream() is default


def test_events_measure_host_time() -> None:
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    assert streams.record_event(start) is start
    time.sleep(0.02)
    get_stream().record_event(end)
    assert 20.0 <= get_event_elapsed_time(start, end) < 2000.0
    with pytest.raises(ArgumentError, match="end_event was made without enable_timing"):
        get_event_elapsed_time(start, Event())
    with pytest.raises(DeviceError, match="not been recorded"):
        get_event_elapsed_time(start, Event(enable_timing=True))


def test_waiting_and_synchronising_accept_what_they_should() -> None:
    stream, event = Stream("cpu"), streams.record_event()
    stream.wait_event(event)
    stream.wait_stream(get_stream(), event)
    streams.wait_event(event)
    streams.wait_stream(stream)
    streams.synchronize()
    streams.synchronize_device("cpu")
    streams.synchronize_stream()
    streams.synchronize_stream(stream)
    streams.synchronize_stream("cpu")
    streams.synchronize_event(event)
    assert stream.is_complete
    assert event.is_complete
    assert not stream.is_capturing
    with pytest.raises(ArgumentError, match=r"event must be a warp\.Event, not str"):
        streams.wait_event("now")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ArgumentError, match=r"stream must be a warp\.Stream"):
        streams.set_stream("cpu")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(UnknownDeviceError):
        streams.synchronize_device("cuda:3")
