"""What the tests of bridges launch: kernels over one dimension, with closed forms to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warp as wp


@wp.kernel
def twice(x: Any, y: Any) -> None:
    """Set y to twice x."""
    i = wp.tid()
    y[i] = x[i] + x[i]


@wp.kernel
def square(x: Any, y: Any) -> None:
    """Set y to the square of x."""
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def damped_wave(x: Any, y: Any) -> None:
    """Set y to sin(x) exp(-x)."""
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.exp(-x[i])


@wp.kernel
def iterated_sine(x: Any, y: Any) -> None:
    """Apply the sine i + 1 times."""
    i = wp.tid()
    value = x[i]
    for _ in range(i + 1):
        value = wp.sin(value)
    y[i] = value


def _iterate_sine(x: Any) -> Any:
    values = [x[i] for i in range(len(x))]
    for i in range(len(values)):
        for _ in range(i + 1):
            values[i] = np.sin(values[i])
    return np.array(values)


DIFFERENTIABLE: dict[Any, Callable[[Any], Any]] = {
    square: lambda x: x * x,
    damped_wave: lambda x: np.sin(x) * np.exp(-x),
    iterated_sine: _iterate_sine,
}
"""Kernels from x to y, and what they compute, as NumPy does it."""
