"""Arrays that kernels reach only through arrays of structs take part in tapes as arguments do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.autograd.checking import check_gradients

import warp as wp
from warp.errors import AutogradError

# On a CUDA device work items race where they may write to any array; tests/cuda has a file about that.
pytestmark = pytest.mark.cpu

f = wp.float64
START = np.array([0.7, -0.4, 1.1])


@wp.struct
class Layer:
    values: wp.array(dtype=f)
    scale: f


@wp.struct
class Stack:
    inner: Layer
    count: int


@wp.kernel
def spread(x: wp.array(dtype=f), layers: wp.array(dtype=Layer)):
    i = wp.tid()
    for j in range(layers.shape[0]):
        layers[j].values[i] = x[i] * x[i] * layers[j].scale


@wp.kernel
def gather(layers: wp.array(dtype=Layer), y: wp.array(dtype=f)):
    i = wp.tid()
    for j in range(layers.shape[0]):
        y[i] += layers[j].values[i] * layers[j].values[i]


@wp.kernel
def scale_in_place(layers: wp.array(dtype=Layer)):
    i = wp.tid()
    for j in range(layers.shape[0]):
        layers[j].values[i] *= layers[j].values[i] * layers[j].scale


@wp.kernel
def gather_stacks(stacks: wp.array(dtype=Stack), y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = stacks[0].inner.values[i] * stacks[1].inner.values[i]


@wp.kernel
def square(x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def zeros(requires_grad: bool = True) -> Any:
    return wp.zeros(3, dtype=f, requires_grad=requires_grad)


def layer(values: Any, scale: float) -> Any:
    made = Layer()
    made.values, made.scale = values, scale
    return made


def layers_of(*arrays: Any) -> Any:
    return wp.array([layer(values, 2.0 + n) for n, values in enumerate(arrays)], dtype=Layer)


def written(x: Any) -> Any:
    """What is written through an array of structs is read directly."""
    a, b, y, z = zeros(), zeros(), zeros(), zeros()
    wp.launch(spread, 3, inputs=[x, layers_of(a, b)])
    wp.launch(square, 3, inputs=[a, y])
    wp.launch(square, 3, inputs=[b, z])
    return y, z


def read(x: Any) -> Any:
    """What is written directly is read through an array of structs."""
    a, b, y = zeros(), zeros(), zeros()
    wp.launch(square, 3, inputs=[x, a])
    wp.launch(square, 3, inputs=[a, b])
    wp.launch(gather, 3, inputs=[layers_of(a, b), y])
    return y


def overwritten(x: Any) -> Any:
    """Values that were read through an array of structs are overwritten by other operations."""
    a, b, y = zeros(), zeros(), zeros()
    layers = layers_of(a, b)
    wp.launch(spread, 3, inputs=[x, layers])
    wp.launch(gather, 3, inputs=[layers, y])
    a.fill_(3.0)
    wp.launch(square, 3, inputs=[y, b])
    wp.launch(gather, 3, inputs=[layers, y])
    return y


def overwriting(x: Any) -> Any:
    """Values that were read directly are overwritten through an array of structs."""
    a, b, y = zeros(), zeros(), zeros()
    wp.launch(square, 3, inputs=[x, a])
    wp.launch(square, 3, inputs=[a, y])
    wp.launch(spread, 3, inputs=[y, layers_of(a, b)])
    wp.launch(square, 3, inputs=[a, b])
    return b, y


def leaf(x: Any) -> Any:
    y = zeros()
    layers = layers_of(x, x)
    wp.launch(gather, 3, inputs=[layers, y])
    wp.launch(scale_in_place, 3, inputs=[layers_of(y)])
    return y


def nested(x: Any) -> Any:
    a, y = zeros(), zeros()
    wp.launch(square, 3, inputs=[x, a])
    stacks = [Stack(), Stack()]
    stacks[0].inner, stacks[1].inner = layer(a, 1.0), layer(x[::-1], 1.0)
    wp.launch(gather_stacks, 3, inputs=[wp.array(stacks, dtype=Stack), y])
    return y


def copied(x: Any) -> Any:
    """The copy of an array of structs refers to the same arrays."""
    a, y = zeros(), zeros()
    layers = wp.clone(layers_of(a, a))
    wp.launch(square, 3, inputs=[x, a])
    wp.launch(gather, 3, inputs=[layers, y])
    return y


@pytest.mark.parametrize("program", [written, read, overwritten, overwriting, leaf, nested, copied])
def test_gradients(program: Any) -> None:
    check_gradients(program, START)


def test_a_second_backward_pass_doubles_the_leaves() -> None:
    x = wp.array(START, dtype=f, requires_grad=True)
    y = zeros()
    layers = layers_of(x)
    with wp.Tape() as tape:
        wp.launch(gather, 3, inputs=[layers, y])
        wp.launch(scale_in_place, 3, inputs=[layers])
    for count in (1, 2):
        tape.backward(grads={y: np.ones(3), x: np.ones(3)})
        np.testing.assert_allclose(x.grad.numpy(), count * (2 * START + 4 * START), rtol=1e-12)
    assert x in tape.gradients


def test_structs_that_change_after_the_launch() -> None:
    a, b, y = zeros(), zeros(), zeros()
    x = wp.array(START, dtype=f, requires_grad=True)
    layers = layers_of(a)
    with wp.Tape() as tape:
        wp.launch(square, 3, inputs=[x, a])
        wp.launch(gather, 3, inputs=[layers, y])
    layers.assign(layers_of(b))
    with wp.Tape() as later:
        wp.launch(square, 3, inputs=[x, b])
        wp.launch(gather, 3, inputs=[layers, y])
    later.backward(grads={y: np.ones(3)})
    np.testing.assert_allclose(x.grad.numpy(), 4 * START**3, rtol=1e-12)
    with pytest.raises(AutogradError, match="Record a new tape"):
        tape.backward(grads={y: np.ones(3)})


def test_an_array_without_gradient_that_one_must_pass_through() -> None:
    x = wp.array(START, dtype=f, requires_grad=True)
    a, y = zeros(requires_grad=False), zeros()
    with wp.Tape() as tape:
        wp.launch(square, 3, inputs=[x, a])
        wp.launch(gather, 3, inputs=[layers_of(a), y])
    with pytest.raises(AutogradError, match=r"'gather' .* through an array of structs.*requires_grad=True before"):
        tape.backward(grads={y: np.ones(3)})


def test_gradients_outlive_their_replacement() -> None:
    x = wp.array(START, dtype=f, requires_grad=True)
    first, y = x.grad, zeros()
    layers = layers_of(x)
    address = first.ptr
    del first
    x.grad = wp.zeros(3, dtype=f)
    assert layers.owner[1].ptr == address
    assert x.grad.ptr != address
    with wp.Tape() as tape:
        wp.launch(gather, 3, inputs=[layers, y])
    tape.backward(grads={y: np.ones(3)})
    np.testing.assert_allclose(layers.owner[1].numpy(), 2 * START, rtol=1e-12)
