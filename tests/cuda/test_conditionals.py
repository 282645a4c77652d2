"""Branches and loops that graphs decide about when they are launched."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp._src import build
from warp.errors import ArgumentError, AutogradError, DeviceError, LaunchError, ToolchainError

Floats = wp.array(dtype=float)
Ints = wp.array(dtype=int)


@wp.kernel
def count_down(n: Ints, y: Floats):
    n[0] = n[0] - 1
    y[0] = y[0] + 2.0


@wp.kernel
def add(state: Ints, at: wp.int32, amount: wp.int32):
    state[at] = state[at] + amount


@wp.kernel
def double(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def positive(x: Floats, n: Ints):
    i = wp.tid()
    assert x[i] > 0.0
    n[0] = 0


@wp.kernel
def distance(x: Floats, loss: Floats):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 3.0) * (x[i] - 3.0))


@wp.kernel
def descend(x: Floats, slope: Floats, n: Ints):
    i = wp.tid()
    x[i] = x[i] - 0.25 * slope[i]
    if i == 0:
        n[0] = 0
        if wp.abs(slope[i]) > 1e-3:
            n[0] = 1


def ints(*values: int) -> wp.array:
    return wp.array(list(values), dtype=int, device="cuda")


def floats(*values: float) -> wp.array:
    return wp.array(list(values), dtype=float, device="cuda")


def test_a_graph_takes_the_branch_of_the_value_at_each_launch(driver: FakeDriver) -> None:
    n, y = ints(0), floats(1.0, 1.0)
    wp.synchronize()
    with wp.ScopedCapture("cuda") as capture:
        wp.capture_if(n, on_true=lambda: y.fill_(4.0), on_false=y.zero_)
    assert y.list() == [1.0, 1.0]
    for value, expected in ((0, 0.0), (1, 4.0), (-7, 4.0), (0, 0.0)):
        n.fill_(value)
        y.fill_(9.0)
        wp.capture_launch(capture.graph)
        assert y.list() == [expected] * 2


def test_one_branch_may_be_missing(driver: FakeDriver) -> None:
    n, y, z = ints(0), floats(0.0), floats(0.0)
    with wp.ScopedCapture("cuda") as capture:
        wp.capture_if(n, on_true=lambda value: y.fill_(value), value=4.0)
        wp.capture_if(n, on_false=lambda value: z.fill_(value), value=5.0)
        wp.capture_if(n)
    for value, expected in ((0, (0.0, 5.0)), (2, (4.0, 0.0))):
        n.fill_(value)
        y.zero_()
        z.zero_()
        wp.capture_launch(capture.graph)
        assert (*y.list(), *z.list()) == expected


def test_only_one_branch_runs_if_it_changes_the_condition(driver: FakeDriver) -> None:
    n, y = ints(1), floats(0.0)
    with wp.ScopedCapture("cuda") as capture:
        wp.capture_if(n, on_true=n.zero_, on_false=lambda: y.fill_(1.0))
    for first, expected in ((1, [0, 0.0]), (0, [0, 1.0])):
        n.fill_(first)
        wp.capture_launch(capture.graph)
        assert [*n.list(), *y.list()] == expected


@pytest.mark.parametrize("as_graph", [False, True])
def test_a_loop_runs_as_often_as_the_value_says(driver: FakeDriver, as_graph: bool) -> None:
    n, y = ints(0), floats(0.0)
    body: Any = lambda: wp.launch(count_down, 1, inputs=[n, y], device="cuda")  # noqa: E731
    if as_graph:
        with wp.ScopedCapture("cuda") as inner:
            body()
        body = inner.graph
    with wp.ScopedCapture("cuda") as capture:
        y.fill_(1.0)
        wp.capture_while(n, body)
    del body
    gc.collect()
    for turns in (3, 0, 1, 40):
        n.fill_(turns)
        wp.capture_launch(capture.graph)
        assert (n.list(), y.list()) == ([0], [1.0 + 2.0 * turns])


# A program is a list of statements over four numbers: ("add", at, amount), ("copy", at, from), ("if", at, yes, no) and
# ("loop", at, times, body), which counts a number of its own down.
def programs() -> st.SearchStrategy[list[Any]]:
    number = st.integers(0, 3)
    simple = st.one_of(
        st.tuples(st.just("add"), number, st.integers(-2, 2)), st.tuples(st.just("copy"), number, number)
    )

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        block = st.lists(inner, max_size=3)
        return st.one_of(
            inner,
            st.tuples(st.just("if"), number, block, block),
            st.tuples(st.just("loop"), number, st.integers(0, 3), block),
        )

    return st.lists(st.recursive(simple, deeper, max_leaves=8), min_size=1, max_size=4)


def run_here(program: list[Any], state: list[int]) -> None:
    for kind, at, *rest in program:
        if kind == "add":
            state[at] += rest[0]
        elif kind == "copy":
            state[at] = state[rest[0]]
        elif kind == "if":
            run_here(rest[0] if state[at] else rest[1], state)
        else:
            for _ in range(rest[0] + abs(state[at]) % 2):
                run_here(rest[1], state)


STATES = st.lists(st.integers(-1, 2), min_size=4, max_size=4)


@wp.kernel
def set_turns(turns: Ints, state: Ints, at: wp.int32, times: wp.int32):
    turns[0] = times + wp.abs(state[at]) % 2


def run_there(program: list[Any], state: wp.array) -> None:
    for kind, at, *rest in program:
        if kind == "add":
            wp.launch(add, 1, inputs=[state, at, rest[0]], device="cuda")
        elif kind == "copy":
            wp.copy(state, state, dest_offset=at, src_offset=rest[0], count=1)
        elif kind == "if":
            yes, no = rest
            wp.capture_if(
                state[at : at + 1], on_true=lambda p=yes: run_there(p, state), on_false=lambda p=no: run_there(p, state)
            )
        else:
            turns = wp.empty(1, dtype=int, device="cuda")
            wp.launch(set_turns, 1, inputs=[turns, state, at, rest[0]], device="cuda")

            def body(turns: wp.array, inner: list[Any]) -> None:
                run_there(inner, state)
                wp.launch(add, 1, inputs=[turns, 0, -1], device="cuda")

            wp.capture_while(turns, body, turns=turns, inner=rest[1])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    program=programs(), starts=st.lists(st.lists(st.integers(-1, 2), min_size=4, max_size=4), min_size=2, max_size=3)
)
@pytest.mark.parametrize("version", [12040, 13000])
def test_nested_branches_and_loops(driver: FakeDriver, version: int, program: list[Any], starts: Any) -> None:
    driver.version = version
    state = ints(0, 0, 0, 0)
    wp.synchronize()
    with wp.ScopedCapture("cuda") as capture:
        run_there(program, state)
    for start in starts:
        expected = list(start)
        run_here(program, expected)
        state.assign(start)
        wp.capture_launch(capture.graph)
        assert state.list() == expected
        state.assign(start)
        run_there(program, state)  # the host decides
        assert state.list() == expected


def test_memory_that_is_made_in_a_body_is_the_graphs(driver: FakeDriver) -> None:
    n, x, y = ints(0), floats(1.0, 2.0), floats(0.0, 0.0)

    def body() -> None:
        between = wp.zeros(2, dtype=float, device="cuda")
        wp.launch(double, 2, inputs=[x, between], device="cuda")
        wp.copy(y, wp.clone(between))
        wp.copy(x, y)
        wp.launch(count_down, 1, inputs=[n, wp.zeros(1, dtype=float, device="cuda")], device="cuda")

    before = driver.live_bytes()
    with wp.ScopedCapture("cuda") as capture:
        wp.capture_while(n, body)
    for turns in (1, 3):
        n.fill_(turns)
        x.assign([1.0, 2.0])
        wp.capture_launch(capture.graph)
        assert y.list() == [2.0**turns, 2.0 * 2.0**turns]
    assert driver.live_bytes() > before
    capture.graph = None
    gc.collect()
    assert driver.live_bytes() == before


def test_what_a_graph_uses_outlives_the_caller(driver: FakeDriver) -> None:
    n, y = ints(2), floats(0.0)
    with wp.ScopedCapture("cuda") as inner:
        wp.launch(count_down, 1, inputs=[n, y], device="cuda")
    stream = wp.Stream("cuda")
    wp.synchronize()
    with wp.ScopedCapture(stream=stream) as capture:
        wp.capture_launch(inner.graph)
        wp.capture_launch(inner.graph)
    kept = wp.empty_like(y)
    del n, inner
    gc.collect()
    wp.capture_launch(capture.graph, stream)
    with wp.ScopedStream(stream):
        wp.copy(kept, y)
    del capture, y
    gc.collect()
    assert kept.list() == [4.0]


def test_streams_in_bodies(driver: FakeDriver) -> None:
    x, y, n = floats(3.0), floats(0.0), ints(1)
    stream, side = wp.Stream("cuda"), wp.Stream("cuda")
    wp.synchronize()

    def body() -> None:
        assert wp.get_stream("cuda") is stream and stream.is_capturing
        side.wait_stream(stream)
        wp.launch(double, 1, inputs=[x, y], stream=side)
        stream.wait_stream(side)
        wp.launch(double, 1, inputs=[y, x], stream=stream)

    with wp.ScopedCapture(stream=stream) as capture:
        wp.capture_if(n, body, stream=stream)
    wp.capture_launch(capture.graph, stream)
    stream.synchronize()
    assert (x.list(), y.list()) == ([12.0], [6.0])
    with pytest.raises(DeviceError, match=r"UNJOINED \(904\)"), wp.ScopedCapture(stream=stream):
        wp.capture_if(n, lambda: side.wait_stream(stream) or wp.launch(double, 1, inputs=[x, y], stream=side))
    outside = wp.Event("cuda")
    with pytest.raises(DeviceError, match=r"ISOLATION \(905\)"), wp.ScopedCapture(stream=stream):
        wp.capture_if(stream.record_event(outside) and n, lambda: stream.wait_event(outside))
    wp.launch(double, 1, inputs=[x, y], stream=stream)
    stream.synchronize()
    assert y.list() == [24.0]


def test_gradient_descent_in_a_loop_of_a_graph(driver: FakeDriver) -> None:
    n = ints(1)
    x = wp.array([0.0, 5.0], dtype=float, device="cuda", requires_grad=True)
    loss = wp.zeros(1, dtype=float, device="cuda", requires_grad=True)

    def body() -> None:
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(distance, 2, inputs=[x, loss], device="cuda")
        tape.zero()
        tape.backward(loss)
        wp.launch(descend, 2, inputs=[x, x.grad, n], device="cuda")

    with wp.ScopedCapture("cuda") as capture:
        n.fill_(1)
        wp.capture_while(n, body)
    for start in ([0.0, 5.0], [-2.0, 3.0]):
        x.assign(start)
        wp.capture_launch(capture.graph)
        np.testing.assert_allclose(x.numpy(), 3.0, atol=1e-3)


def test_a_tape_around_a_branch_is_refused(driver: FakeDriver) -> None:
    n, x, y = ints(1), floats(1.0), floats(1.0)
    for call in (wp.capture_if, wp.capture_while):
        with pytest.raises(AutogradError, match=rf"cannot record {call.__name__}"), wp.ScopedCapture("cuda"), wp.Tape():
            call(n, lambda: wp.launch(double, 1, inputs=[x, y], device="cuda"))


def fails_in_a_body(driver: FakeDriver, use: Callable[[], object], error: type[Exception], match: str) -> None:
    """Check that an error in a branch is raised, that no graph comes of it, and that nothing else is harmed."""
    n, x, y = ints(1), floats(1.0), floats(1.0)
    live, streams = driver.live_bytes(), len(driver._streams)
    with pytest.raises(error, match=match), wp.ScopedCapture("cuda"):
        wp.capture_if(n, use)
    wp.capture_begin("cuda")
    with pytest.raises(error, match=match):
        wp.capture_while(n, use)
    assert wp.get_stream("cuda").is_capturing
    with pytest.raises(DeviceError, match="not captured completely"):
        wp.capture_end("cuda")
    assert not wp.get_stream("cuda").is_capturing
    wp.launch(double, 1, inputs=[x, y], device="cuda")
    assert y.list() == [2.0]
    gc.collect()
    assert driver.live_bytes() == live and len(driver._streams) == streams


def test_errors_in_branches_are_raised_and_spoil_the_graph_only(driver: FakeDriver) -> None:
    x, n = floats(1.0), ints(1)
    outer = wp.get_stream("cuda").cuda_stream
    with wp.ScopedCapture("cuda") as inner:
        wp.capture_if(n, x.zero_)
    fails_in_a_body(driver, lambda: 1 / 0, ZeroDivisionError, "division")
    fails_in_a_body(driver, x.numpy, DeviceError, "while a graph is captured")
    fails_in_a_body(driver, lambda: wp.capture_end("cuda"), DeviceError, "inside of its branches")
    fails_in_a_body(driver, lambda: wp.capture_begin("cuda"), DeviceError, "from the stream already")
    fails_in_a_body(driver, lambda: driver.fill_bytes(x.ptr, 0, 4, outer), DeviceError, "past Warp")
    fails_in_a_body(driver, lambda: wp.capture_launch(inner.graph), DeviceError, "cannot be part of another")


def test_failed_assertions_in_bodies_name_the_line(driver: FakeDriver) -> None:
    x, n = floats(1.0, -1.0), ints(0)
    with wp.ScopedCapture("cuda") as capture:
        wp.capture_while(n, lambda: wp.launch(positive, 2, inputs=[x, n], device="cuda"))
    wp.capture_launch(capture.graph)
    wp.synchronize()
    n.fill_(1)
    wp.capture_launch(capture.graph)
    with pytest.raises(LaunchError, match=r"positive: assertion failed, at line \d+, .* index \(1\)"):
        wp.synchronize()


def test_captures_of_others_take_branches(driver: FakeDriver) -> None:
    stream = wp.Stream("cuda", cuda_stream=driver.make_foreign_stream())
    n, y = ints(1), floats(0.0)
    wp.synchronize()
    with wp.get_device("cuda").active():
        driver.begin_capture(stream.cuda_stream, 1)
        with wp.ScopedCapture(stream=stream, external=True):
            wp.capture_if(n, lambda: y.fill_(1.0), lambda: y.fill_(2.0))
        executable = driver.instantiate(driver.end_capture(stream.cuda_stream))
        for value, expected in ((1, 1.0), (0, 2.0)):
            n.fill_(value)
            stream.wait_stream(wp.get_stream("cuda"))
            driver.launch_graph(executable, stream.cuda_stream)
            stream.synchronize()
            assert y.list() == [expected]


def test_older_drivers_have_no_conditional_nodes(driver: FakeDriver) -> None:
    driver.version = 12020
    n, y = ints(2), floats(0.0)
    wp.synchronize()
    with wp.ScopedCapture("cuda") as capture:
        wp.launch(count_down, 1, inputs=[n, y], device="cuda")
        with pytest.raises(DeviceError, match=r"capture_while in a capture .* the driver is for CUDA 12\.2"):
            wp.capture_while(n, lambda: None)
    wp.capture_while(n, capture.graph)
    assert y.list() == [4.0]


def test_older_compilers_are_named(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    n, y = ints(1), floats(0.0)
    with wp.ScopedCapture("cuda") as capture:
        y.fill_(2.0)
        with monkeypatch.context() as patch:
            patch.setattr(wp.get_device("cuda"), "compiler", None)
            patch.setattr(build, "nvrtc_version", lambda: (12, 2))
            with pytest.raises(ToolchainError, match=r"from CUDA 12\.3 on; this is NVRTC 12\.2"):
                wp.capture_if(n, y.zero_)
    wp.capture_launch(capture.graph)
    assert y.list() == [2.0]


def test_arguments_are_checked(driver: FakeDriver) -> None:
    n = ints(1)
    for condition in (floats(1.0), ints(1, 1), 1, None):
        with pytest.raises(ArgumentError, match=r"capture_if: condition must be a warp\.array of one int32"):
            wp.capture_if(condition)
    with pytest.raises(ArgumentError, match=r"capture_while: a branch must be a function or a warp\.Graph, got 5"):
        wp.capture_while(n, 5)
    with pytest.raises(ArgumentError, match="stream belongs to device cuda:1, the condition to cuda:0"):
        wp.capture_if(n, lambda: None, stream=wp.Stream("cuda:1"))
