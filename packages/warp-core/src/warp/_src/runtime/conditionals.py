"""Branches and loops by a value on the device: the host decides, or nodes of the graph that is being captured."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from warp._src.recording.recorder import current_recorder
from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.driver import CAPTURE_THREAD_LOCAL, version_text
from warp._src.runtime.graph import Capture, Graph, capture_launch
from warp._src.runtime.own_kernels import load_kernels
from warp._src.runtime.stream import ScopedStream, Stream, get_stream
from warp.errors import ArgumentError, AutogradError, DeviceError

Branch = Callable[..., object] | Graph

_ARGUMENTS: Final = struct.Struct("=QQq")
_OLDEST_DRIVER: Final = 12040
_FIRST_WITH_EMPTY_BODIES: Final = 12080


def capture_if(
    condition: Any,
    on_true: Branch | None = None,
    on_false: Branch | None = None,
    stream: Stream | None = None,
    **kwargs: Any,
) -> None:
    """Run one of two branches, functions or graphs, by an array of one int32; zero is false.

    Inside a capture the graph decides, each time that it is launched: both branches are captured now, as conditional
    nodes, which need a driver for CUDA 12.4 or later and NVRTC 12.3 or later. Elsewhere the host reads the condition.

    Args:
        condition: An int32 array of one element, on the device of the stream.
        on_true: What runs if it is not zero.
        on_false: What runs if it is.
        stream: The stream; the current one of the condition's device by default. It is current in the branches.
        kwargs: Arguments of branches that are functions.

    Raises:
        ArgumentError: The condition or a branch is something else.
        DeviceError: The driver has no conditional nodes, or a branch is a graph that has some.
        ToolchainError: NVRTC is too old for them.
        AutogradError: A tape records around a call inside a capture; it could not see what a launch will choose.
    """
    branches = [(on_true, False), (on_false, True)]
    with _place(condition, stream, "capture_if", on_true, on_false) as place:
        if place is not None and place.is_capturing:
            _add_branches(place, condition, [(taken, negated) for taken, negated in branches if taken], kwargs)
        elif (chosen := on_true if _value(condition) else on_false) is not None:
            _run(chosen, kwargs)


def capture_while(condition: Any, while_body: Branch, stream: Stream | None = None, **kwargs: Any) -> None:
    """Run a function or graph as long as an array of one int32 is not zero; it is looked at before each turn.

    Inside a capture the body is captured once and repeated by the graph; arguments and errors are as of `capture_if`.
    """
    with _place(condition, stream, "capture_while", while_body) as place:
        if place is not None and place.is_capturing:
            _add_loop(place, condition, while_body, kwargs)
            return
        while _value(condition):
            _run(while_body, kwargs)


@contextmanager
def _place(condition: Any, stream: Stream | None, caller: str, *branches: Any) -> Iterator[Stream | None]:
    """Check the arguments and make the stream current; give that of the condition's device if it is a CUDA device."""
    device = getattr(condition, "device", None)
    if device is None or getattr(condition.dtype, "name", "") != "int32" or condition.size != 1:
        raise ArgumentError(f"{caller}: condition must be a warp.array of one int32, got {condition!r}")
    for branch in branches:
        if not (branch is None or callable(branch) or isinstance(branch, Graph)):
            raise ArgumentError(f"{caller}: a branch must be a function or a warp.Graph, got {branch!r}")
    if stream is not None and stream.device is not device:
        raise ArgumentError(f"{caller}: stream belongs to device {stream.device}, the condition to {device}")
    with ScopedStream(stream, sync_enter=False):
        yield get_stream(device) if isinstance(device, CudaDevice) else None


def _value(condition: Any) -> bool:
    return bool(condition.numpy().ravel()[0])


def _run(branch: Branch, kwargs: dict[str, Any]) -> None:
    if isinstance(branch, Graph):
        capture_launch(branch)
    else:
        branch(**kwargs)


# ---------------------------------------------------------------------- inside of captures


def _add_branches(
    place: Stream, condition: Any, branches: Sequence[tuple[Branch, bool]], kwargs: dict[str, Any]
) -> None:
    capture = _capture(place, "capture_if", condition)
    driver = capture.device.driver
    # Every node looks at a value of its own, set before a branch runs, which may change the condition.
    values = [driver.create_condition(place.handle) for _ in branches]
    for value, (_, is_negated) in zip(values, branches, strict=True):
        _set(place, value, condition, is_negated)
    for value, (branch, is_negated) in zip(values, branches, strict=True):
        with _body(capture, place, value, is_loop=False):
            _run(branch, kwargs)
            if driver.driver_version() < _FIRST_WITH_EMPTY_BODIES:  # where launches of an empty body never end
                _set(place, value, condition, is_negated)


def _add_loop(place: Stream, condition: Any, body: Branch, kwargs: dict[str, Any]) -> None:
    capture = _capture(place, "capture_while", condition)
    value = capture.device.driver.create_condition(place.handle)
    _set(place, value, condition)
    with _body(capture, place, value, is_loop=True):
        _run(body, kwargs)
        _set(place, value, condition)


def _capture(place: Stream, caller: str, condition: Any) -> Capture:
    """Return the graph in the making that a stream belongs to, if it can have conditional nodes."""
    device = place.device
    assert isinstance(device, CudaDevice)
    version = device.driver.driver_version()
    if version < _OLDEST_DRIVER:
        raise DeviceError(
            f"{caller} in a capture needs conditional nodes, from CUDA 12.4 on; the driver is for CUDA "
            f"{version_text(version)}. Call it outside of the capture, with graphs"
        )
    if current_recorder() is not None:
        raise AutogradError(
            f"a tape cannot record {caller} in a capture, since launches of the graph will choose what runs; a tape "
            "inside of the function can record it, together with its backward pass"
        )
    if device.condition_kernel is None:
        (device.condition_kernel,) = load_kernels(device, "conditions.cu", "wp_set_condition")
    capture = device.capture_of(place.handle)
    assert isinstance(capture, Capture)
    capture.has_conditions = True
    capture.keep(condition)
    return capture


@contextmanager
def _body(capture: Capture, place: Stream, value: int, is_loop: bool) -> Iterator[None]:
    """Add a conditional node, and capture what is queued inside a `with` block on a stream into its graph."""
    device, outer = capture.device, place.handle
    driver = device.driver
    with device.active(), device.relaxed():
        inner = driver.create_stream(0)
    capture.open_bodies += 1
    try:
        with device.active():
            body = driver.add_conditional(outer, value, is_loop)
            before = driver.last_captured(outer)
            driver.begin_capture_to(inner, body, CAPTURE_THREAD_LOCAL)
            # The stream is that of the body meanwhile, for whoever uses it.
            place.handle = inner
            try:
                yield
            except BaseException:
                with suppress(DeviceError):
                    driver.end_capture(inner)
                raise
            finally:
                place.handle = outer
            driver.end_capture(inner)
            if driver.last_captured(outer) != before:
                raise DeviceError(
                    "a branch queued work on the stream that the graph is captured from, past Warp; in a branch "
                    "wp.get_stream().cuda_stream is the stream to use"
                )
    except BaseException:
        capture.is_broken = True
        raise
    finally:
        capture.open_bodies -= 1
        with device.active(), device.relaxed():
            driver.destroy_stream(inner)


def _set(place: Stream, value: int, condition: Any, is_negated: bool = False) -> None:
    """Let the graph set the value that a node looks at to whether the condition holds."""
    device = place.device
    assert isinstance(device, CudaDevice)
    assert device.condition_kernel is not None
    packed = _ARGUMENTS.pack(value, condition.ptr, is_negated)
    with device.active():
        device.driver.launch(device.condition_kernel, 1, 1, place.handle, (pack_launch((1,)), packed))
