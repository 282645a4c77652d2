"""`warp.entries`: kernels by address, called from native code."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp.entries import KernelEntries, compile_native, launch_block, native_launcher
from warp.errors import ArgumentError, AutogradError

DESCRIPTOR = struct.Struct("=QQ4q4q4qii")
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long, ctypes.c_char_p
)


@wp.kernel
def scale(x: wp.array(dtype=float), factor: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = factor * x[i] * x[i]


@wp.kernel
def overwrite(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    for _ in range(3):
        y[i] = y[i] * y[i] + x[i]


@wp.kernel
def generic(x: wp.array(dtype=wp.Float), factor: wp.Float, y: wp.array(dtype=wp.Float)):
    i = wp.tid()
    y[i] = factor * x[i]


@wp.kernel(enable_backward=False)
def without_gradient(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel(module="unique")
def pick(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i + 2]


def descriptor(values: Any, gradient: Any = None) -> bytes:
    address = 0 if gradient is None else gradient.ctypes.data
    size = values.itemsize
    return DESCRIPTOR.pack(values.ctypes.data, address, len(values), 1, 1, 1, size, 0, 0, 0, size, 0, 0, 0, 1, 0)


def run(point: Any, block: Any, dim: int, arrays: dict[int, bytes]) -> bytes:
    """Launch an entry point from native code, and return the fault."""
    arguments = bytearray(block.template)
    for number, packed in arrays.items():
        arguments[block.offsets[number] : block.offsets[number] + len(packed)] = packed
    fault = ctypes.create_string_buffer(80)
    assert not LAUNCH(native_launcher())(point.address, launch_block(dim), bytes(arguments), point.flags, fault)
    return fault.raw


floats = wp.array(dtype=float)
x = np.array([1.0, 2.0, 3.0], np.float32)


def test_forward_backward_and_tangent() -> None:
    entries = KernelEntries(scale, [floats, wp.float32, floats])
    assert (entries.reads, entries.writes) == ({0}, {2})
    assert entries.needed(3) == {0}
    assert entries.recording(3) is None
    values = [None, 2.0, None]
    y, x_grad, y_grad = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    block = entries.arguments(values)
    assert not any(run(entries.forward(3), block, 3, {0: descriptor(x), 2: descriptor(y)}))
    np.testing.assert_array_equal(y, 2.0 * x * x)
    run(entries.backward(3), block, 3, {0: descriptor(x, x_grad), 2: descriptor(y, y_grad)})
    np.testing.assert_array_equal(x_grad, 4.0 * x)
    direction, moved = np.array([1.0, 0.0, -1.0], np.float32), np.zeros_like(x)
    doubled = entries.arguments(values, with_directions=True)
    arrays = {0: descriptor(x), 2: descriptor(y), 3: descriptor(direction), 5: descriptor(moved)}
    run(entries.tangent(3), doubled, 3, arrays)
    np.testing.assert_array_equal(moved, 4.0 * x * direction)


def test_kernels_that_overwrite_say_that_they_record() -> None:
    recording = KernelEntries(overwrite, [floats, floats]).recording(3)
    assert recording is not None
    assert recording.bytes_per_thread > 0 or recording.has_stream


def test_identities_are_those_of_the_code() -> None:
    types = [floats, wp.float32, floats]
    first, second = KernelEntries(scale, types), KernelEntries(scale, types)
    assert first.forward(3).identity == second.forward(5).identity
    assert first.forward(3).identity != first.backward(3).identity


def test_generic_kernels_take_types_and_numbers() -> None:
    doubles = wp.array(dtype=wp.float64)
    entries = KernelEntries(generic, [doubles, 2.0, doubles])
    assert entries.types[1] is wp.float64
    assert len(entries.arguments([None, 2.0, None]).template) == 2 * DESCRIPTOR.size + 8


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="int"):
        KernelEntries(3, [])
    with pytest.raises(ArgumentError, match="'x'"):
        KernelEntries(scale, [wp.array(dtype=int), wp.float32, floats])
    entries = KernelEntries(scale, [floats, wp.float32, floats])
    with pytest.raises(ArgumentError, match="'factor'"):
        entries.arguments([None, "text", None])
    with pytest.raises(ArgumentError, match="dim"):
        entries.forward(-1)
    with pytest.raises(AutogradError, match="enable_backward"):
        KernelEntries(without_gradient, [floats, floats]).backward(3)
    with pytest.raises(wp.errors.ToolchainError, match="no symbol 'missing'"):
        compile_native("WP_EXPORT int present() { return 3; }").address("missing")


def test_faults_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "mode", "debug")
    entries = KernelEntries(pick, [floats, floats])
    y = np.zeros_like(x)
    fault = run(entries.forward(3), entries.arguments([None, None]), 3, {0: descriptor(x), 1: descriptor(y)})
    assert any(fault)
    text = entries.describe(fault, launch_block(3))
    assert "index 3 is out of bounds for array 'x'" in text
    assert "y[i] = x[i + 2]" in text
