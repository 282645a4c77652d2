"""Streams, events and waits on stand-in devices, on which nothing runs before somebody waits."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp.errors import ArgumentError, DeviceError

Floats = wp.array(dtype=float)


@wp.kernel
def scale(x: Floats, factor: float):
    i = wp.tid()
    x[i] = factor * x[i] + 1.0


def scaled(x: Any, factor: float, times: int = 1) -> list[float]:
    for _ in range(times):
        x = [factor * v + 1.0 for v in x]
    return x


def test_launches_wait_in_their_stream(driver: FakeDriver) -> None:
    x = wp.array([1.0, 2.0], dtype=float, device="cuda")
    stream = wp.get_stream("cuda")
    assert stream is wp.get_stream("cuda:0") and stream.cuda_stream and stream.is_complete
    wp.launch(scale, 2, inputs=[x, 2.0], device="cuda")
    assert not stream.is_complete
    wp.synchronize_stream(stream)
    assert stream.is_complete
    wp.launch(scale, 2, inputs=[x, 2.0], device="cuda")
    wp.synchronize_device("cuda")
    assert stream.is_complete
    wp.launch(scale, 2, inputs=[x, 2.0], device="cuda")
    wp.synchronize()
    assert stream.is_complete
    assert x.list() == scaled([1.0, 2.0], 2.0, 3)


def test_events_order_streams(driver: FakeDriver) -> None:
    x = wp.array([1.0], dtype=float, device="cuda")
    first, second = wp.Stream("cuda"), wp.Stream("cuda", priority=-1)
    first.wait_stream(wp.get_stream("cuda"))
    wp.launch(scale, 1, inputs=[x, 3.0], stream=first)
    done = first.record_event()
    assert not done.is_complete
    second.wait_event(done)
    wp.launch(scale, 1, inputs=[x, 5.0], stream=second, device="cuda:0")
    second.synchronize()
    assert done.is_complete and first.is_complete
    wp.wait_stream(second)
    wp.get_stream("cuda").wait_stream(second)
    assert x.list() == [(3.0 + 1.0) * 5.0 + 1.0]


def test_a_missing_wait_is_seen(driver: FakeDriver) -> None:
    """The stand-in does what a device may do: another stream's work has not happened."""
    x = wp.zeros(1, dtype=float, device="cuda")
    wp.synchronize_device("cuda")
    other = wp.Stream("cuda")
    wp.launch(scale, 1, inputs=[x, 3.0], stream=other)
    assert x.list() == [0.0]
    wp.get_stream("cuda").wait_stream(other)
    assert x.list() == [1.0]


def test_scoped_streams_wait_for_the_stream_before(driver: FakeDriver) -> None:
    x = wp.array([1.0], dtype=float, device="cuda")
    wp.launch(scale, 1, inputs=[x, 3.0], device="cuda")
    with wp.ScopedStream(wp.Stream("cuda"), sync_exit=True) as inside:
        assert wp.get_device() == "cuda:0" and wp.get_stream() is inside
        wp.launch(scale, 1, inputs=[x, 5.0])
        y = wp.clone(x)
    assert wp.get_device() == "cpu"
    assert (x.list(), y.list()) == ([21.0], [21.0])


def test_memory_outlives_the_streams_that_use_it(driver: FakeDriver) -> None:
    x = wp.zeros(1, dtype=float, device="cuda")
    y = wp.ones(1, dtype=float, device="cuda")
    address = y.ptr
    other = wp.Stream("cuda")
    other.wait_stream(wp.get_stream("cuda"))
    with wp.ScopedStream(other):
        wp.copy(x, y)
    del y
    wp.synchronize_stream(wp.get_stream("cuda"))
    assert other.is_complete, f"memory at {address:#x} was freed before the copy on another stream"
    wp.synchronize()
    assert x.list() == [1.0]


def test_time_between_events(driver: FakeDriver) -> None:
    x = wp.zeros(1, dtype=float, device="cuda")
    start, end = (wp.Event("cuda", enable_timing=True) for _ in range(2))
    with wp.ScopedDevice("cuda"):
        wp.record_event(start)
        wp.launch(scale, 1, inputs=[x, 3.0])
        assert wp.record_event(end) is end
    assert wp.get_event_elapsed_time(start, end) >= 0.0
    with pytest.raises(ArgumentError, match="enable_timing"):
        wp.get_event_elapsed_time(start, wp.Event("cuda"))
    with pytest.raises(ArgumentError, match="other processes"):
        wp.Event("cuda", enable_timing=True, interprocess=True)
    wp.synchronize_event(end)
    assert end.is_complete
    with pytest.raises(ArgumentError, match="cuda:1"):
        wp.Stream("cuda:1").record_event(start)


def test_the_cpu_waits_for_events_of_devices(driver: FakeDriver) -> None:
    x = wp.zeros(1, dtype=float, device="cuda")
    wp.launch(scale, 1, inputs=[x, 3.0], device="cuda")
    event = wp.get_stream("cuda").record_event()
    wp.get_stream("cpu").wait_event(event)
    assert event.is_complete


def test_foreign_streams_are_wrapped(driver: FakeDriver) -> None:
    handle = driver.make_foreign_stream()
    stream = wp.Stream("cuda", cuda_stream=handle)
    assert stream.cuda_stream == handle and not stream.owner
    x = wp.zeros(1, dtype=float, device="cuda")
    with wp.ScopedStream(stream):
        wp.launch(scale, 1, inputs=[x, 3.0])
        assert x.list() == [1.0]
    del stream
    assert handle in driver._streams


def test_streams_are_per_thread(driver: FakeDriver) -> None:
    seen = []
    with wp.ScopedStream(wp.Stream("cuda")):
        thread = threading.Thread(target=lambda: seen.append(wp.get_stream("cuda")))
        thread.start()
        thread.join()
        assert seen[0] is not wp.get_stream()
    assert seen == [wp.get_stream("cuda")]


def test_what_is_no_stream_of_the_device_is_refused(driver: FakeDriver) -> None:
    x = wp.zeros(1, dtype=float, device="cuda")
    with pytest.raises(ArgumentError, match="stream belongs to device 'cuda:1', not to 'cuda:0'"):
        wp.launch(scale, 1, inputs=[x, 3.0], device="cuda:0", stream=wp.Stream("cuda:1"))
    with pytest.raises(ArgumentError, match=r"must be a warp\.Stream"):
        wp.launch(scale, 1, inputs=[x, 3.0], device="cuda:0", stream=7)
    with pytest.raises(ArgumentError, match="belongs to device"):
        wp.set_stream(wp.Stream("cuda:1"), "cuda:0")
    with pytest.raises(ArgumentError, match="not a stream of the device"):
        wp.copy(x, x, stream=wp.Stream("cuda:1"))


def test_recorded_launches_run_on_a_stream(driver: FakeDriver) -> None:
    x = wp.zeros(1, dtype=float, device="cuda")
    command = wp.launch(scale, 1, inputs=[x, 2.0], device="cuda", record_cmd=True)
    other = wp.Stream("cuda")
    other.wait_stream(wp.get_stream("cuda"))
    assert command is not None
    command.launch(stream=other)
    assert x.list() == [0.0]
    other.synchronize()
    assert x.list() == [1.0]


def test_driver_errors_say_code_name_and_meaning(driver: FakeDriver) -> None:
    stream = wp.Stream("cuda")
    driver._streams.pop(stream.handle)
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_INVALID_HANDLE \(400\)"):
        stream.synchronize()
    driver.violations.clear()
    driver.make_foreign_stream()
    driver._streams[stream.handle] = driver._streams[next(iter(driver._streams))]


def test_gradients_on_a_stream_of_their_own(driver: FakeDriver) -> None:
    x = wp.array([1.0, 2.0], dtype=float, device="cuda", requires_grad=True)
    wp.synchronize()
    with wp.ScopedStream(wp.Stream("cuda")), wp.Tape() as tape:
        y = wp.clone(x)
        wp.launch(scale, 2, inputs=[y, 3.0])
        z = wp.clone(y)
    with wp.ScopedStream(wp.Stream("cuda")) as stream:
        stream.synchronize()
    wp.synchronize()
    tape.backward(grads={z: wp.ones_like(z)})
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0])
