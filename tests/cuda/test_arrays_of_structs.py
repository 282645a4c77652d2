"""Arrays behind arrays of structs on CUDA devices: on tapes, and while graphs are captured."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp.errors import AutogradError

Floats = wp.array(dtype=float)


@wp.struct
class Layer:
    values: wp.array(dtype=float)


@wp.kernel
def square(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def spread(x: Floats, layers: wp.array(dtype=Layer)):
    i = wp.tid()
    for j in range(layers.shape[0]):
        layers[j].values[i] = x[i] * x[i]


def on_device(count: int) -> wp.array:
    return wp.zeros(count, dtype=float, device="cuda", requires_grad=True)


def test_gradients_pass_through_them(driver: FakeDriver) -> None:
    x, a, y = wp.array([1.0, 2.0], dtype=float, device="cuda", requires_grad=True), on_device(2), on_device(2)
    layers = wp.array([Layer(values=a)], dtype=Layer, device="cuda")
    with wp.Tape() as tape:
        wp.launch(spread, 2, inputs=[x, layers], device="cuda")
        wp.launch(square, 2, inputs=[a, y], device="cuda")
        a.zero_()
    for count in (1, 2):
        tape.backward(grads={y: wp.ones(2, dtype=float, device="cuda")})
        np.testing.assert_allclose(x.grad.numpy(), np.multiply(count, [4.0, 32.0]))


def test_indexed_arrays_are_copied(driver: FakeDriver) -> None:
    x, y = wp.array([1.0, 2.0, 3.0], dtype=float, device="cuda", requires_grad=True), on_device(2)
    with wp.Tape() as tape:
        places = wp.array([2, 2], dtype=int, device="cuda")
        wp.launch(square, 2, inputs=[x[places].contiguous(), y], device="cuda")
        places.zero_()
    tape.backward(grads={y: wp.ones(2, dtype=float, device="cuda")})
    np.testing.assert_allclose(x.grad.numpy(), [0.0, 0.0, 12.0])


def test_graphs_are_captured_without_a_look_into_memory(driver: FakeDriver) -> None:
    x, a = wp.array([1.0, 2.0], dtype=float, device="cuda"), on_device(2)
    layers = wp.array([Layer(values=a)], dtype=Layer, device="cuda")
    wp.launch(spread, 2, inputs=[x, layers], device="cuda")
    a.zero_()
    with wp.ScopedDevice("cuda"), wp.ScopedCapture() as capture:
        wp.launch(spread, 2, inputs=[x, layers])
        with wp.Tape(), pytest.raises(AutogradError, match="'spread' reaches arrays through an array of structs"):
            wp.launch(spread, 2, inputs=[x, layers])
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(a.numpy(), [1.0, 4.0])
