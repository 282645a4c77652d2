"""Gradients of programs against central differences of fourth order, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

import warp as wp

Values = NDArray[np.float64]
Program = Callable[..., "wp.array | Sequence[wp.array]"]

STEP = 1e-4


def weights_of(shape: tuple[int, ...]) -> Values:
    """Return the weights of the loss: fixed, positive, between 0.5 and 1.5, and hardly two alike."""
    count = int(np.prod(shape, dtype=int))
    return (1.0 + 0.5 * np.cos(1.0 + 2.3 * np.arange(count))).reshape(shape)


def array_of(values: Values, like: wp.array | Values) -> wp.array:
    """Return a fresh array that takes part in gradients; its dtype is that of `like`, else float64."""
    dtype = wp.float64 if isinstance(like, np.ndarray) else like.dtype
    return wp.array(values.copy(), dtype=dtype, requires_grad=True)


def numpy_of(values: wp.array | Values) -> Values:
    return np.array(values if isinstance(values, np.ndarray) else values.numpy(), dtype=np.float64)


def outputs_of(program: Program, arrays: Sequence[wp.array]) -> list[wp.array]:
    outputs = program(*arrays)
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def differences_of(program: Program, inputs: Sequence[wp.array | Values], step: float = STEP) -> list[Values]:
    """Return the derivative of the weighted sum of all outputs by every component of every input."""
    values = [numpy_of(array) for array in inputs]

    def loss() -> float:
        arrays = [array_of(value, like) for value, like in zip(values, inputs, strict=True)]
        results = [output.numpy() for output in outputs_of(program, arrays)]
        return float(sum(np.sum(weights_of(result.shape) * result) for result in results))

    def moved(entries: Values, index: tuple[int, ...], distance: float) -> float:
        original = entries[index]
        entries[index] = original + distance
        result = loss()
        entries[index] = original
        return result

    def derivative(entries: Values, index: tuple[int, ...]) -> float:
        near = moved(entries, index, step) - moved(entries, index, -step)
        far = moved(entries, index, 2.0 * step) - moved(entries, index, -2.0 * step)
        return (8.0 * near - far) / (12.0 * step)

    derivatives = []
    for entries in values:
        indices = np.ndindex(entries.shape)
        derivatives.append(np.array([derivative(entries, index) for index in indices]).reshape(entries.shape))
    return derivatives


def gradients_of(program: Program, inputs: Sequence[wp.array | Values]) -> tuple[list[Values], list[Values]]:
    """Return the outputs, and the gradient of their weighted sum by every input, of one backward pass."""
    arrays = [array_of(numpy_of(array), array) for array in inputs]
    with wp.Tape() as tape:
        outputs = outputs_of(program, arrays)
    seeds = {output: wp.array(weights_of(output.numpy().shape), dtype=output.dtype) for output in outputs}
    tape.backward(grads=seeds)
    return [numpy_of(output) for output in outputs], [numpy_of(array.grad) for array in arrays]


def check_gradients(
    program: Program, *inputs: wp.array | Values, rtol: float = 1e-7, atol: float = 1e-9
) -> list[Values]:
    """Compare the gradients of a program with differences and return its outputs.

    `program` gets an array with a gradient for each input (of float64, if the input is a NumPy array) and returns its
    output or outputs; the loss is their weighted sum.
    """
    outputs, gradients = gradients_of(program, inputs)
    for gradient, expected in zip(gradients, differences_of(program, inputs), strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=atol)
    return outputs
