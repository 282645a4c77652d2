"""Kernels of devices by their handles, as native code of a framework queues them; on the stand-in for the driver."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp.entries import (
    DeviceEntries,
    KernelEntries,
    driver_function,
    driver_message,
    launch_block,
    primary_context,
)
from warp.errors import AutogradError, DeviceError, LaunchError

Floats = wp.array(dtype=float)
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
_FAULT, _RECORD = 48, 56


@wp.kernel
def fold(x: Floats, n: wp.int32, y: Floats):
    i = wp.tid()
    assert n > 0
    for _k in range(n):
        y[i] = y[i] * wp.sin(y[i]) + x[i]


@wp.kernel
def running(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i]
    if i > 0:
        y[i] = y[i - 1] + x[i]


def entries_of(kernel: Any, *types: Any) -> tuple[KernelEntries, DeviceEntries]:
    made = KernelEntries(kernel, types)
    return made, DeviceEntries(made, ["cuda:0", "cuda:1"])


def launch(device: str, kernel: int, point: Any, block: bytes, arguments: bytes, stream: int = 0) -> int:
    function = _LAUNCH(driver_function(device, "cuLaunchKernel"))
    buffers = [ctypes.create_string_buffer(data, len(data) + 16) for data in (block, arguments)]
    both = (ctypes.c_void_p * 2)(*map(ctypes.addressof, buffers))
    return function(kernel, point.grid, 1, 1, point.block, 1, 1, 0, stream, ctypes.addressof(both), None)


@pytest.mark.parametrize("number", [0, 1])
def test_native_code_launches_a_kernel(driver: FakeDriver, number: int) -> None:
    made, entries = entries_of(fold, Floats, wp.int32, Floats)
    device = f"cuda:{number}"
    x, y = (wp.array(v, dtype=float, device=device) for v in ([0.5, 0.25], [0.1, 0.2]))
    block = made.arguments([None, 2, None])
    arguments = bytearray(block.template)
    for place, array in ((0, x), (2, y)):
        arguments[block.offsets[place] : block.offsets[place] + 120] = array.descriptor()
    point = entries.forward(2)
    assert point.has_checks
    assert not point.waits
    driver.set_context(primary_context(device))
    assert launch(device, point.kernels[number], point, launch_block(2), bytes(arguments)) == 0
    expected = np.asarray([0.1, 0.2])
    for _ in range(2):
        expected = expected * np.sin(expected) + [0.5, 0.25]
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


def test_a_watched_launch_reports_to_the_next_wait(driver: FakeDriver) -> None:
    made, entries = entries_of(fold, Floats, wp.int32, Floats)
    places = entries.watch("tangent of ", launch_block(3))
    assert len(set(places)) == 2
    x = wp.zeros(3, dtype=float, device="cuda:1")
    block = made.arguments([None, 0, None])
    arguments = bytearray(block.template)
    for place in (0, 2):
        arguments[block.offsets[place] : block.offsets[place] + 120] = x.descriptor()
    launched = bytearray(launch_block(3))
    launched[_FAULT:_RECORD] = places[1].to_bytes(8, "little")
    point = entries.forward(3)
    for _ in range(2):
        driver.set_context(primary_context("cuda:1"))
        assert launch("cuda:1", point.kernels[1], point, bytes(launched), bytes(arguments)) == 0
        with pytest.raises(LaunchError, match=r"tangent of fold: assertion failed, .*index \(0\)(.|\n)*assert n > 0"):
            wp.synchronize()
        wp.synchronize()


def test_a_record_tells_what_memory_it_wants(driver: FakeDriver) -> None:
    _, entries = entries_of(fold, Floats, wp.int32, Floats)
    found = entries.recording(5)
    assert found is not None
    assert found.has_stream
    assert found.share > 0
    header = found.header
    assert (header.size, header.missing) == (56, 40)
    assert header.starts - header.places == header.stream - header.starts == 8
    assert entries.recording(5).entry.identity == found.entry.identity != entries.forward(5).identity  # type: ignore[union-attr]  # as above


def test_what_depends_on_the_order_of_threads_is_refused(driver: FakeDriver) -> None:
    made, entries = entries_of(running, Floats, Floats)
    assert made.backward(4).address
    for ask in (entries.backward, entries.adjoint_tangent):
        with pytest.raises(AutogradError, match=r"(?s)'running'.*test_native_entries\.py"):
            ask(4)
    assert entries.tangent(4).grid == entries.forward(4).grid == 1


def test_nothing_to_do_and_other_devices(driver: FakeDriver) -> None:
    made, entries = entries_of(running, Floats, Floats)
    assert entries.forward(0).grid == 0
    assert entries.forward(1000).grid == 4
    with pytest.raises(DeviceError, match="'cpu' is not a CUDA device"):
        DeviceEntries(made, ["cpu"])
    with pytest.raises(DeviceError, match="there is no CUDA device"):
        DeviceEntries(made, [])
    assert driver_message("cuda", "cuLaunchKernel", 2).startswith("cuLaunchKernel: CUDA_ERROR_OUT_OF_MEMORY (2)")


def test_a_capture_holds_any_number_of_launches_with_checks(driver: FakeDriver) -> None:
    x = wp.array([1.0], dtype=float, device="cuda")
    y = wp.zeros(1, dtype=float, device="cuda")
    wp.launch(fold, 1, inputs=[x, 1, y], device="cuda")
    with wp.ScopedDevice("cuda"), wp.ScopedCapture() as capture:
        for count in [1] * 600 + [0]:
            wp.launch(fold, 1, inputs=[x, count, y])
    wp.capture_launch(capture.graph)
    with pytest.raises(LaunchError, match="fold: assertion failed"):
        wp.synchronize()
    del capture


def test_captures_by_others_are_seen_on_their_streams(driver: FakeDriver) -> None:
    handle = driver.make_foreign_stream()
    theirs, mine = wp.Stream("cuda:0", cuda_stream=handle), wp.Stream("cuda:0")
    driver.set_context(primary_context("cuda:0"))
    assert not theirs.is_capturing
    driver.begin_capture(handle, 1)
    assert theirs.is_capturing
    assert not mine.is_capturing
    driver.end_capture(handle)
