"""Graphs: captured once, launched again, with memory and gradients inside."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp.errors import ArgumentError, AutogradError, DeviceError, LaunchError

Floats = wp.array(dtype=float)


@wp.kernel
def step(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i] * x[i] + y[i]


@wp.kernel
def total(x: Floats, out: Floats):
    i = wp.tid()
    wp.atomic_add(out, 0, wp.sin(x[i]) * x[i])


@wp.kernel
def fold(x: Floats, n: wp.int32):
    i = wp.tid()
    for k in range(n):
        x[i] = wp.sin(x[i]) * x[i]


@wp.kernel
def count_down(n: wp.array(dtype=int), y: Floats):
    n[0] = n[0] - 1
    y[0] = y[0] + 2.0


@wp.kernel
def positive(x: Floats):
    assert x[wp.tid()] > 0.0


def test_a_graph_runs_when_it_is_launched(driver: FakeDriver) -> None:
    x, y = wp.array([1.0, 2.0], dtype=float, device="cuda"), wp.zeros(2, dtype=float, device="cuda")
    with wp.ScopedDevice("cuda"), wp.ScopedCapture() as capture:
        assert wp.get_device().is_capturing
        wp.launch(step, 2, inputs=[x, y])
        wp.launch(step, 2, inputs=[x, y])
    assert y.list() == [0, 0]
    assert not wp.get_device("cuda").is_capturing
    for runs in (1, 2, 3):
        wp.capture_launch(capture.graph)
        assert y.list() == [2 * runs, 8 * runs]


def test_memory_that_is_made_in_a_graph_is_its_own(driver: FakeDriver) -> None:
    x, y = wp.array([1.0, 2.0], dtype=float, device="cuda"), wp.zeros(2, dtype=float, device="cuda")
    wp.capture_begin("cuda")
    between = wp.zeros(2, dtype=float, device="cuda")
    wp.launch(step, 2, inputs=[x, between], device="cuda")
    wp.launch(step, 2, inputs=[between, y], device="cuda")
    copy = wp.clone(y)
    del between
    gc.collect()
    graph = wp.capture_end("cuda")
    live = driver.live_bytes()
    for runs in (1, 2):
        wp.capture_launch(graph)
        assert y.list() == copy.list() == [runs, 16 * runs]
    assert driver.live_bytes() == live
    del graph
    gc.collect()
    assert driver.live_bytes() == live - 8
    del x, y, copy
    gc.collect()
    assert driver.live_bytes() == 0


def test_arguments_live_as_long_as_the_graph(driver: FakeDriver) -> None:
    y = wp.zeros(1, dtype=float, device="cuda")
    wp.synchronize()
    with wp.ScopedCapture("cuda") as capture:
        x = wp.array(ptr=y.ptr, shape=1, dtype=float, device="cuda")
        wp.launch(step, 1, inputs=[x, y], device="cuda")
    z = wp.full(1, 3.0, dtype=float, device="cuda")
    with wp.ScopedCapture("cuda") as second:
        wp.launch(step, 1, inputs=[z, y], device="cuda")
    del z, x
    gc.collect()
    wp.capture_launch(second.graph)
    wp.capture_launch(capture.graph)
    assert y.list() == [9.0 + 81.0]


def test_backward_passes_are_captured_with_the_forward_pass(driver: FakeDriver) -> None:
    x = wp.array([0.5, 1.0, 2.0], dtype=float, device="cuda", requires_grad=True)
    loss = wp.zeros(1, dtype=float, device="cuda", requires_grad=True)
    wp.synchronize()
    with wp.ScopedDevice("cuda"), wp.ScopedCapture() as capture:
        loss.zero_()
        with wp.Tape() as tape:
            y = wp.clone(x)
            wp.launch(fold, 3, inputs=[y, 0])
            wp.launch(total, 3, inputs=[y, loss])
            y.zero_()
        tape.zero()
        tape.backward(loss)
    for values in ([0.5, 1.0, 2.0], [0.1, -1.0, 3.0]):
        x.assign(values)
        wp.capture_launch(capture.graph)
        v = np.array(values)
        np.testing.assert_allclose(loss.numpy(), np.sum(np.sin(v) * v), rtol=1e-6)
        np.testing.assert_allclose(x.grad.numpy(), np.cos(v) * v + np.sin(v), rtol=1e-6)


def test_what_a_graph_keeps_for_its_gradient_has_the_size_of_the_launch_before(driver: FakeDriver) -> None:
    def run() -> tuple[wp.Tape, wp.array]:
        with wp.Tape() as tape:
            y = wp.clone(x)
            wp.launch(fold, 3, inputs=[y, 40], device="cuda")
        return tape, y

    x = wp.array([0.5, 1.0, 2.0], dtype=float, device="cuda", requires_grad=True)
    tape, y = run()
    tape.backward(grads={y: wp.ones_like(y)})
    expected = x.grad.numpy()
    assert np.abs(expected).max() > 0.0
    with wp.ScopedCapture("cuda") as capture:
        tape, y = run()
        tape.zero()
        tape.backward(grads={y: wp.ones_like(y)})
    x.grad.fill_(7.0)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_streams_that_wait_for_the_capture_take_part(driver: FakeDriver) -> None:
    x, y = wp.full(1, 3.0, dtype=float, device="cuda"), wp.zeros(1, dtype=float, device="cuda")
    side = wp.Stream("cuda")
    wp.synchronize()
    with wp.ScopedCapture("cuda") as capture:
        side.wait_stream(wp.get_stream())
        wp.launch(step, 1, inputs=[x, y], stream=side)
        wp.get_stream().wait_stream(side)
        wp.launch(step, 1, inputs=[y, x])
    wp.capture_launch(capture.graph)
    assert (x.list(), y.list()) == ([84.0], [9.0])
    wp.capture_begin("cuda")
    side.wait_stream(wp.get_stream("cuda"))
    wp.launch(step, 1, inputs=[x, y], stream=side)
    with pytest.raises(DeviceError, match=r"UNJOINED \(904\)"):
        wp.capture_end("cuda")


def test_what_needs_the_host_is_refused_and_the_device_stays_usable(driver: FakeDriver) -> None:
    x = wp.ones(2, dtype=float, device="cuda")
    for use in (x.numpy, lambda: x.assign([1.0, 2.0]), wp.synchronize, lambda: x[0], lambda: str(x)):
        with pytest.raises(DeviceError, match="while a graph is captured"), wp.ScopedCapture("cuda"):
            use()
        assert x.list() == [1, 1]
    with pytest.raises(DeviceError, match="from the stream already"), wp.ScopedCapture("cuda"):
        wp.capture_begin("cuda")
    with pytest.raises(DeviceError, match="no graph is being captured"):
        wp.capture_end("cuda")
    with pytest.raises(DeviceError, match="not on 'cpu'"):
        wp.capture_begin("cpu")
    with pytest.raises(ArgumentError, match=r"warp\.Graph"):
        wp.capture_launch(x)


def test_replays_are_no_secret_to_tapes(driver: FakeDriver) -> None:
    x, y = (wp.array([2.0], dtype=float, device="cuda", requires_grad=True) for _ in range(2))
    loss = wp.zeros(1, dtype=float, device="cuda", requires_grad=True)
    with wp.ScopedCapture("cuda") as capture:
        wp.launch(step, 1, inputs=[y, x], device="cuda")
    with wp.Tape() as tape:
        wp.launch(total, 1, inputs=[x, loss], device="cuda")
        with pytest.raises(AutogradError, match="cannot record the launch of a graph"):
            wp.capture_launch(capture.graph)
    wp.capture_launch(capture.graph)
    with pytest.warns(UserWarning, match="modified off the tape"):
        tape.backward(loss)


def test_faults_in_graphs_are_reported_at_every_run(driver: FakeDriver) -> None:
    x = wp.array([1.0, 1.0], dtype=float, device="cuda")
    with wp.ScopedCapture("cuda") as capture:
        wp.launch(positive, 2, inputs=[x], device="cuda")
    wp.capture_launch(capture.graph)
    wp.synchronize()
    x.assign([1.0, -1.0])
    for _ in range(2):
        wp.capture_launch(capture.graph)
        with pytest.raises(LaunchError, match=r"positive: assertion failed, at line \d+, .* index \(1\)"):
            wp.synchronize()


def test_branches_and_loops_outside_of_captures(driver: FakeDriver) -> None:
    n, y = wp.array([3], dtype=int, device="cuda"), wp.zeros(1, dtype=float, device="cuda")
    with wp.ScopedCapture("cuda") as capture:
        wp.launch(count_down, 1, inputs=[n, y], device="cuda")
    wp.capture_while(n, capture.graph)
    assert (n.list(), y.list()) == ([0], [6.0])
    wp.capture_if(n, on_true=capture.graph, on_false=lambda value: y.fill_(value), value=5.0)
    assert y.list() == [5.0]
    n.fill_(1)
    wp.capture_if(n, on_true=capture.graph)
    assert y.list() == [7.0]


def test_captures_that_others_have_begun(driver: FakeDriver) -> None:
    stream = wp.Stream("cuda", cuda_stream=driver.make_foreign_stream())
    x, y = wp.ones(1, dtype=float, device="cuda"), wp.zeros(1, dtype=float, device="cuda")
    wp.synchronize()
    with wp.get_device("cuda").active():
        driver.begin_capture(stream.cuda_stream, 1)
        with wp.ScopedCapture(stream=stream, external=True) as capture:
            wp.launch(step, 1, inputs=[wp.clone(x), y])
        executable = driver.instantiate(driver.end_capture(stream.cuda_stream))
        driver.launch_graph(executable, stream.cuda_stream)
        stream.synchronize()
    assert y.list() == [1.0]
    with pytest.raises(DeviceError, match="another framework"):
        wp.capture_launch(capture.graph)
