"""Memory shared with other frameworks on a stand-in device, in the order of both sides' streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp._src.runtime import dlpack
from warp.errors import ArgumentError, DeviceError

Floats = wp.array(dtype=float)


@wp.kernel
def double(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = 2.0 * x[i]


class Foreign:
    """An array of another framework, which works on a stream of its own."""

    def __init__(self, driver: FakeDriver, values: Any) -> None:
        self.driver = driver
        self.stream = driver.make_foreign_stream()
        self.memory = wp.zeros(len(values), dtype=float, device="cuda")
        wp.synchronize()
        self.values = np.array(values, np.float32)
        self.waited: Any = "never"

    def write(self) -> None:
        """Queue the values on the framework's stream."""
        with wp.get_device("cuda").active():
            self.driver.copy(self.memory.ptr, self.values.ctypes.data, self.values.nbytes, self.stream)

    def read(self) -> list[float]:
        """Read the memory in the order of the framework's stream."""
        found = np.zeros_like(self.values)
        with wp.get_device("cuda").active():
            self.driver.copy(found.ctypes.data, self.memory.ptr, found.nbytes, self.stream)
            self.driver.synchronize_stream(self.stream)
        return [float(value) for value in found]


class WithInterface(Foreign):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shape = self.values.shape
        return {"version": 3, "data": (self.memory.ptr, False), "shape": shape, "typestr": "<f4", "stream": self.stream}


class WithDlpack(Foreign):
    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0

    def __dlpack__(self, stream: Any = None, max_version: Any = None) -> Any:
        self.waited = stream
        with wp.get_device("cuda").active():
            event = self.driver.create_event(False, False)
            self.driver.record_event(event, self.stream)
            self.driver.wait_event(stream, event)
        return wp.to_dlpack(self.memory)


@pytest.mark.parametrize("kind", [WithInterface, WithDlpack])
def test_what_others_have_queued_is_waited_for(kind: type[Foreign], driver: FakeDriver) -> None:
    foreign = kind(driver, [1.0, 2.0, 3.0])
    foreign.write()
    out = wp.zeros(3, dtype=float, device="cuda")
    wp.launch(double, 3, inputs=[foreign, out], device="cuda")
    assert out.list() == [2, 4, 6]
    if isinstance(foreign, WithDlpack):
        assert foreign.waited == wp.get_stream("cuda").cuda_stream
        seen = wp.from_dlpack(foreign)
    else:
        seen = wp.array(foreign, copy=False, device="cuda")
        assert wp.array(foreign, device="cuda").ptr != foreign.memory.ptr
    assert (seen.ptr, seen.device, seen.list()) == (foreign.memory.ptr, wp.get_device("cuda:0"), [1, 2, 3])


def test_others_wait_for_what_is_queued_here(driver: FakeDriver) -> None:
    foreign = WithInterface(driver, [0.0, 0.0, 0.0])
    x = wp.array([1.0, 2.0, 3.0], dtype=float, device="cuda")
    wp.launch(double, 3, inputs=[x, foreign.memory], device="cuda")
    assert foreign.read() == [0, 0, 0]
    taken = wp.from_dlpack(foreign.memory.__dlpack__(stream=foreign.stream))
    assert foreign.read() == [2, 4, 6]
    assert taken.ptr == foreign.memory.ptr
    interface = foreign.memory.__cuda_array_interface__
    assert interface["data"] == (foreign.memory.ptr, False)
    assert (interface["shape"], interface["typestr"], interface["strides"]) == ((3,), "<f4", None)
    assert interface["stream"] == wp.get_stream("cuda").cuda_stream
    assert x[::2].__cuda_array_interface__["strides"] == (8,)
    vectors = wp.zeros(2, dtype=wp.vec3, device="cuda")
    assert vectors.__cuda_array_interface__["shape"] == (2, 3)


@pytest.mark.parametrize("stream", [None, 1])
def test_the_legacy_stream_waits_by_itself_and_for_streams_that_do_not(stream: Any, driver: FakeDriver) -> None:
    x, y = wp.ones(2, dtype=float, device="cuda"), wp.zeros(2, dtype=float, device="cuda")
    wp.synchronize()
    found = np.zeros(2, np.float32)
    with wp.ScopedStream(wp.Stream("cuda", cuda_stream=driver.make_foreign_stream())):
        wp.launch(double, 2, inputs=[x, y])
        capsule = y.__dlpack__(stream=stream)
    with wp.get_device("cuda").active():
        driver.copy(found.ctypes.data, y.ptr, found.nbytes, 0)
        driver.synchronize_stream(0)
    assert found.tolist() == [2, 2]
    del capsule


def test_nobody_waits_if_that_is_asked_for(driver: FakeDriver) -> None:
    y = wp.zeros(2, dtype=float, device="cuda")
    wp.synchronize()
    calls = len(driver.calls)
    y.__dlpack__(stream=-1)
    wp.to_dlpack(y)
    assert len(driver.calls) == calls


def test_what_cannot_be_shared_is_refused(driver: FakeDriver) -> None:
    x = wp.zeros(2, dtype=float, device="cuda:1")
    with pytest.raises(BufferError, match="stream must be 1, 2"):
        x.__dlpack__(stream=0)
    with pytest.raises(BufferError, match=r"on device \(2, 1\), not on \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    assert wp.from_dlpack(x.__dlpack__(dl_device=(1, 0))).device == "cpu"
    copied = wp.from_dlpack(x.__dlpack__(copy=True, stream=-1))
    assert copied.device == "cuda:1" and copied.ptr != x.ptr
    assert not hasattr(x, "__array_interface__") and not hasattr(wp.zeros(1), "__cuda_array_interface__")
    with pytest.raises(ArgumentError, match="the array is on device 'cuda:1', the launch on 'cuda:0'"):
        wp.launch(double, 2, inputs=[x, x], device="cuda:0")
    with pytest.raises(DeviceError, match="no counterpart of DLPack's device"):
        wp.from_dlpack(OnMars())
    assert np.asarray(x).tolist() == [0, 0]


class First:
    """A producer on a device that nobody has used yet."""

    def __init__(self) -> None:
        self.streams: list[int | None] = []
        self.values = np.zeros(2, np.float32)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0

    def __dlpack__(self, stream: int | None = None, max_version: Any = None) -> Any:
        self.streams.append(stream)
        return dlpack.export_capsule(self, self.values.ctypes.data, (2,), (4,), 4, 2, dlpack.CUDA, 0)


def test_the_first_tensor_of_a_device_is_asked_for_on_its_stream(driver: FakeDriver) -> None:
    source = First()
    seen = wp.from_dlpack(source)
    assert seen.device == "cuda:0"
    assert source.streams[-1] == wp.get_stream("cuda:0").cuda_stream
    wp.from_dlpack(source)
    assert source.streams[1:] == 2 * [wp.get_stream("cuda:0").cuda_stream]


class OnMars:
    def __dlpack_device__(self) -> tuple[int, int]:
        return 77, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError("nobody may ask")


def test_memory_outlives_its_capsule(driver: FakeDriver) -> None:
    seen = wp.from_dlpack(wp.array([1.0, 2.0], dtype=float, device="cuda"))
    assert seen.list() == [1, 2]
    del seen
    assert driver.live_bytes() == 0
