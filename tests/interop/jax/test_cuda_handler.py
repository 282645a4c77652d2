"""The native handler for CUDA, called with frames made by hand: order, devices, graphs, errors, and what XLA asks."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import warp as wp
from warp_interop_jax import callback, function_calls
from warp_interop_jax.calls import Adjoint, Forward
from warp_interop_jax.frame import GRAPH_COMPATIBLE
from warp_interop_jax.function_calls import FunctionAdjoint, FunctionForward

from .stand_in import Call, Memory, StandInXla, XlaError, metadata_of, stand_in_xla
from .test_gradients import overwrite_dynamically

FLOAT, INT = np.dtype(np.float32), np.dtype(np.int32)
_INTERNAL, _INVALID, _NOT_FOUND, _PRECONDITION = 13, 3, 5, 9


@wp.kernel
def scale(a: wp.array(dtype=float), factor: float, b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * factor


@wp.kernel
def accumulate(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] += a[i]


@wp.kernel
def positive(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    assert a[i] > 0.0
    b[i] = a[i]


@wp.kernel(module_options={"mode": "debug"}, module="unique")
def pick(a: wp.array(dtype=float), index: wp.array(dtype=int), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[index[i]]


@pytest.fixture(scope="module")
def xla() -> Iterator[StandInXla]:
    """Stand-in devices for the whole file."""
    made = stand_in_xla()
    with made.installed():
        yield made


class Device:
    """A device with a stream of XLA's, and arrays on it."""

    def __init__(self, xla: StandInXla, ordinal: int = 0) -> None:
        self.xla = xla
        self.driver = xla.driver
        self.ordinal = ordinal
        self.memory = Memory(xla.driver, ordinal, xla.driver.make_foreign_stream(ordinal))
        self.stream = self.memory.stream
        self._used: list[int] = []

    def put(self, values: Any, dtype: Any = FLOAT) -> tuple[int, tuple[int, ...], Any]:
        array = np.asarray(values, dtype)
        address = self.memory.put(array)
        self._used.append(address)
        return address, array.shape, dtype

    def get(self, buffer: Any) -> Any:
        return self.memory.get(*buffer)

    def call(self, plan: Any, inputs: Any, results: Any, ordinal: int | None = -1) -> None:
        key = self.xla.handler.add(plan)
        where = self.ordinal if ordinal == -1 else ordinal
        is_captured = "without" not in self.xla.handler.target(plan)
        Call(inputs, results, {"plan": key}).on(self.stream, where).run(self.xla.address(is_captured))

    def is_waiting(self) -> bool:
        with self.memory.current():
            return not self.driver.is_stream_complete(self.stream)

    def close(self) -> None:
        self.memory.free(self._used)
        self.driver.run_all()


@pytest.fixture(params=[0, 1])
def device(xla: StandInXla, request: pytest.FixtureRequest) -> Iterator[Device]:
    """Each of two devices."""
    made = Device(xla, request.param)
    before = xla.driver.live_bytes(made.ordinal)
    yield made
    made.close()
    assert xla.driver.violations == []
    assert xla.driver.live_bytes(made.ordinal) <= before


def forward(kernel: Any, *args: Any, **options: Any) -> Forward:
    """Return the call that JAX would compile for arguments."""
    operation = wp.jax_kernel(kernel, **options)

    def trace(*arrays: Any) -> Any:
        given = iter(arrays)
        return operation(*[next(given) if isinstance(arg, np.ndarray) else arg for arg in args])

    jaxpr = jax.make_jaxpr(trace)(*[arg for arg in args if isinstance(arg, np.ndarray)])
    found = [equation.params["call"] for equation in jaxpr.jaxpr.eqns if "call" in equation.params]
    assert len(found) == 1
    made: Forward = found[0]
    return made


VALUES = np.asarray([1.0, -2.0, 3.0], FLOAT)


def test_what_xla_asks(xla: StandInXla) -> None:
    assert metadata_of(xla.address()) == (0, 1, GRAPH_COMPATIBLE)
    assert metadata_of(xla.address(is_captured=False)) == (0, 1, 0)


def test_a_call_is_queued_on_the_stream_and_waits_for_nothing(device: Device) -> None:
    plan = forward(scale, VALUES, 3.0).plan("cuda")
    a, b = device.put(VALUES), device.put(np.full(3, 7.0))
    with device.memory.current():
        # What is on the stream before the call is seen by it.
        device.driver.fill_bytes(a[0], 0, 4, device.stream)
    device.xla.driver.functions.calls.clear()
    device.call(plan, [a], [b])
    assert device.is_waiting()
    assert device.xla.driver.functions.calls.count("cuLaunchKernel") == 1
    assert not any("Synchronize" in name for name in device.xla.driver.functions.calls)
    with device.memory.current():
        device.driver.fill_bytes(a[0], 0, 12, device.stream)  # and what comes after it is not
    np.testing.assert_array_equal(device.get(b), [0.0, -6.0, 9.0])


def test_outputs_begin_as_zeros_or_as_what_they_change(device: Device) -> None:
    a, start, out = device.put(VALUES), device.put([10.0, 20.0, 30.0]), device.put(np.full(3, 7.0))
    device.call(forward(accumulate, VALUES).plan("cuda"), [a], [out])
    np.testing.assert_array_equal(device.get(out), VALUES)
    plan = forward(accumulate, VALUES, VALUES, in_out_argnames=["b"]).plan("cuda")
    device.call(plan, [a, start], [out])
    np.testing.assert_array_equal(device.get(out), [11.0, 18.0, 33.0])
    np.testing.assert_array_equal(device.get(start), [10.0, 20.0, 30.0])
    device.call(plan, [a, start], [start])  # donated
    np.testing.assert_array_equal(device.get(start), [11.0, 18.0, 33.0])


def test_the_device_is_that_of_the_context_where_the_runtime_does_not_tell(device: Device) -> None:
    plan = forward(scale, VALUES, 3.0).plan("cuda")
    a, b = device.put(VALUES), device.put(np.zeros(3))
    with device.memory.current():
        device.call(plan, [a], [b], ordinal=None)
    np.testing.assert_array_equal(device.get(b), 3.0 * VALUES)
    device.driver.set_context(0)
    with pytest.raises(XlaError, match="not prepared for the device") as caught:
        device.call(plan, [a], [b], ordinal=None)
    assert caught.value.code == _PRECONDITION
    with pytest.raises(XlaError, match="not prepared for the device"):
        device.call(plan, [a], [b], ordinal=2)


def test_the_context_of_the_caller_is_left_as_it_was(device: Device) -> None:
    plan = forward(scale, VALUES, 3.0).plan("cuda")
    a, b = device.put(VALUES), device.put(np.zeros(3))
    other = device.driver.retain_context(1 - device.ordinal)
    for context in (other, 0):
        device.driver.set_context(context)
        device.call(plan, [a], [b])
        assert device.driver.current_context() == context
    np.testing.assert_array_equal(device.get(b), 3.0 * VALUES)


def test_batches(device: Device) -> None:
    plan = forward(scale, VALUES, 2.0).plan("cuda")
    rows = np.arange(6.0).reshape(2, 3)
    a, b = device.put(rows), device.put(np.zeros((2, 3)))
    device.call(plan, [a], [b])
    np.testing.assert_array_equal(device.get(b), 2.0 * rows)
    with pytest.raises(XlaError, match="dimensions of the buffers") as caught:
        device.call(plan, [a], [device.put(np.zeros((3, 3)))])
    assert caught.value.code == _INVALID
    with pytest.raises(XlaError, match="dimensions of the buffers"):
        device.call(plan, [device.put(1.0)], [b])
    with pytest.raises(XlaError, match="number of buffers"):
        device.call(plan, [a, a], [b])


def test_nothing_to_do(device: Device) -> None:
    none = np.zeros(0, FLOAT)
    device.call(forward(scale, none, 2.0).plan("cuda"), [device.put(none)], [device.put(none)])
    assert not device.is_waiting()


def test_graphs(device: Device) -> None:
    call = forward(accumulate, VALUES, VALUES, in_out_argnames=["b"])
    plan = call.plan("cuda")
    a, start, out = device.put(VALUES), device.put([10.0, 20.0, 30.0]), device.put(np.zeros(3))
    with device.memory.current():
        device.driver.begin_capture(device.stream, 1)
        device.call(plan, [a, start], [out])
        graph = device.driver.instantiate(device.driver.end_capture(device.stream))
    np.testing.assert_array_equal(device.get(out), np.zeros(3))
    device.xla.driver.functions.calls.clear()
    for values in ([1.0, 2.0, 3.0], [5.0, 6.0, 7.0]):
        new = np.asarray(values, FLOAT)
        with device.memory.current():
            device.driver.copy(a[0], new.ctypes.data, 12, device.stream)
            device.driver.launch_graph(graph, device.stream)
        np.testing.assert_array_equal(device.get(out), np.asarray([10.0, 20.0, 30.0]) + new)
    assert device.xla.driver.functions.calls == []  # the graph needs no handler


def adjoint_of(call: Forward) -> Adjoint:
    wanted = call.site.wanted
    return Adjoint(call.site, wanted, (0,), tuple(range(len(call.site.float_results))))


def overwritten(x: Any, n: int, y: Any) -> tuple[Any, Any]:
    """Return the result of `overwrite_dynamically` and its derivative by x, in double precision."""
    value, slope = y.astype(np.float64), np.zeros(len(y))
    for _ in range(n):
        slope = slope * (np.sin(value) + value * np.cos(value)) + 1.0
        value = value * np.sin(value) + x
    return value, slope


@pytest.mark.parametrize("count", [1, 4, 100])
def test_records_grow_until_they_hold_what_loops_need(device: Device, count: int) -> None:
    x, y = np.asarray([0.3, 0.5, 0.7], FLOAT), np.asarray([0.1, 0.2, 0.4], FLOAT)
    n = np.full(3, count, INT)
    adjoint = adjoint_of(forward(overwrite_dynamically, x, n, y, in_out_argnames=["y"]))
    plan = adjoint.plan("cuda")
    assert device.xla.handler.target(plan).endswith("without_graph")
    seeds = np.asarray([1.0, -2.0, 3.0], FLOAT)
    for _ in range(2):
        inputs = [device.put(x), device.put(n, INT), device.put(y), device.put(seeds)]
        results = [device.put(np.full(layout.full, 7), layout.dtype) for layout in plan.results]
        device.xla.driver.functions.calls.clear()
        device.call(plan, inputs, results)
        np.testing.assert_allclose(device.get(results[0]), overwritten(x, count, y)[1] * seeds, rtol=1e-4)
        np.testing.assert_array_equal(device.get(inputs[2]), y)
    # Both times it ran with memory of its own, the second time with as much as the first had found to be needed.
    calls = device.xla.driver.functions.calls
    assert calls.count("cuMemAllocAsync") == calls.count("cuMemFreeAsync") == 1
    assert calls.count("cuLaunchKernel") == 3


def test_a_failed_assertion_is_an_error_of_the_next_call_or_of_a_wait(device: Device) -> None:
    plan = forward(positive, VALUES).plan("cuda")
    good, bad, out = device.put(np.ones(3)), device.put(VALUES), device.put(np.zeros(3))
    device.call(plan, [bad], [out])
    device.driver.run_all()
    message = r"(?s)positive: assertion failed, at line \d+, in the thread with index \(1\).*a\[i\] > 0\.0"
    with pytest.raises(XlaError, match=message) as caught:
        device.call(plan, [good], [out])
    assert caught.value.code == _INTERNAL
    device.call(plan, [good], [out])
    np.testing.assert_array_equal(device.get(out), np.ones(3))
    device.call(plan, [bad], [out])
    with pytest.raises(wp.errors.LaunchError, match=message):
        wp.synchronize()
    device.call(plan, [good], [out])


def test_debug_mode_waits_and_fails_at_once(device: Device) -> None:
    good, bad = np.asarray([2, 0, 1], INT), np.asarray([0, 5, 1], INT)
    plan = forward(pick, VALUES, good).plan("cuda")
    assert device.xla.handler.target(plan).endswith("without_graph")
    a, out = device.put(VALUES), device.put(np.zeros(3))
    with pytest.raises(XlaError, match=r"(?s)pick: index 5 is out of bounds for array 'a'.*a\[index\[i\]\]"):
        device.call(plan, [a, device.put(bad, INT)], [out])
    device.call(plan, [a, device.put(good, INT)], [out])
    assert not device.is_waiting()
    np.testing.assert_array_equal(device.get(out), VALUES[good])


@pytest.mark.parametrize("name", ["cuLaunchKernel", "cuMemsetD8Async", "cuCtxGetCurrent", "cuCtxSetCurrent"])
def test_what_the_driver_refuses_is_an_error_with_its_meaning(device: Device, name: str) -> None:
    plan = forward(scale, VALUES, 3.0).plan("cuda")
    a, b = device.put(VALUES), device.put(np.zeros(3))
    device.driver.set_context(0)
    device.xla.driver.functions.refusals[name] = 2
    with pytest.raises(XlaError, match=rf"warp: {name}: CUDA_ERROR_OUT_OF_MEMORY \(2\): .*free arrays") as caught:
        device.call(plan, [a], [b])
    assert caught.value.code == _INTERNAL
    device.call(plan, [a], [b])
    np.testing.assert_array_equal(device.get(b), 3.0 * VALUES)


@pytest.mark.parametrize("name", ["cuMemAllocAsync", "cuStreamSynchronize", "cuMemcpyAsync", "cuLaunchKernel"])
def test_errors_inside_an_adjoint_leave_no_memory_behind(device: Device, name: str) -> None:
    x, n, y = VALUES, np.full(3, 2, INT), VALUES
    plan = adjoint_of(forward(overwrite_dynamically, x, n, y, in_out_argnames=["y"])).plan("cuda")
    inputs = [device.put(x), device.put(n, INT), device.put(y), device.put(x)]
    results = [device.put(np.zeros(layout.full), layout.dtype) for layout in plan.results]
    before = device.driver.live_bytes(device.ordinal)
    device.xla.driver.functions.refusals[name] = 2
    with pytest.raises(XlaError, match=f"{name}: CUDA_ERROR_OUT_OF_MEMORY"):
        device.call(plan, inputs, results)
    assert device.driver.live_bytes(device.ordinal) == before


def test_calls_that_name_no_plan(device: Device) -> None:
    for attributes, code, text in (
        ({}, _INVALID, "does not name the kernel"),
        ({"other": 1}, _INVALID, "does not name the kernel"),
        ({"plan": 1}, _NOT_FOUND, "has not prepared the kernel"),
    ):
        with pytest.raises(XlaError, match=text) as caught:
            Call([], [], attributes).on(device.stream, device.ordinal).run(device.xla.address())
        assert caught.value.code == code


# ---------------------------------------------------------------------------------------------------- functions


def scaled_twice(a: wp.array(dtype=float), b: wp.array(dtype=float)) -> None:
    between = wp.zeros_like(a)
    wp.launch(scale, a.shape, inputs=[a, 2.0], outputs=[between])
    wp.launch(scale, a.shape, inputs=[between, 5.0], outputs=[b])


class Function:
    """A function of two launches as JAX would call it on a CUDA device, and its handler."""

    def __init__(self) -> None:
        jaxpr = jax.make_jaxpr(wp.jax_callable(scaled_twice))(VALUES)
        self.call: FunctionForward = next(equation.params["call"] for equation in jaxpr.jaxpr.eqns)
        run = callback._Handler("function", function_calls._handle, "CUDA", GRAPH_COMPATIBLE)
        self._handler = callback._HANDLER(run)

    @property
    def address(self) -> int:
        return ctypes.cast(self._handler, ctypes.c_void_p).value or 0

    def run(self, key: int, device: Device, inputs: Any, results: Any) -> None:
        Call(inputs, results, {"call": key}).on(device.stream, device.ordinal).run(self.address)


def test_a_function_is_queued_on_the_stream_after_what_warp_has_queued(device: Device) -> None:
    function = Function()
    assert metadata_of(function.address) == (0, 1, GRAPH_COMPATIBLE)
    a, b = device.put(np.zeros(3)), device.put(np.full(3, 7.0))
    with wp.ScopedDevice(f"cuda:{device.ordinal}"):
        mine = wp.array(ptr=a[0], shape=3, dtype=float)
        mine.assign(VALUES)
        function.run(function.call.key, device, [a], [b])
    assert device.is_waiting()
    np.testing.assert_array_equal(device.get(b), 10.0 * VALUES)


def test_a_function_in_a_graph_of_xla(device: Device) -> None:
    function = Function()
    a, b = device.put(VALUES), device.put(np.full(3, 7.0))
    with device.memory.current():
        device.driver.begin_capture(device.stream, 1)
        function.run(function.call.key, device, [a], [b])
        graph = device.driver.instantiate(device.driver.end_capture(device.stream))
    for values in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
        new = np.asarray(values, FLOAT)
        with device.memory.current():
            device.driver.copy(a[0], new.ctypes.data, 12, device.stream)
            device.driver.launch_graph(graph, device.stream)
        np.testing.assert_array_equal(device.get(b), 10.0 * new)
    function_calls._graphs.clear()


def test_the_adjoint_of_a_function(device: Device) -> None:
    function = Function()
    adjoint = FunctionAdjoint(function.call.site, (0,))
    assert function.call.is_graph_compatible
    assert not adjoint.is_graph_compatible
    a, seed, gradient = device.put(VALUES), device.put([1.0, 0.0, 2.0]), device.put(np.full(3, 7.0))
    function.run(adjoint.key, device, [a, seed], [gradient])
    np.testing.assert_array_equal(device.get(gradient), [10.0, 0.0, 20.0])
