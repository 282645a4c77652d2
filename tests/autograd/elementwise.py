"""Events made of NumPy arithmetic, y = f(x) with its derivative, to try tapes without kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warp._src.array.array import array
from warp.recording import Recordable, RecordedArray, about_to_write, current_recorder, mark_written

Function = Callable[[Any], Any]


class Elementwise(Recordable):
    """y = f(x), or y += f(x); needs the values of x unless f is linear."""

    def __init__(self, x: array, y: array, derivative: Function, adds: bool, needs: tuple[array, ...]) -> None:
        self.label = "elementwise"
        self.location = "test.py:1"
        self.reads = (x, y) if adds else (x,)
        self.writes = (y,)
        self.signature = ("elementwise", x.layout(), y.layout(), adds)
        self.x, self.y, self.derivative, self.adds, self.needs = x, y, derivative, adds, needs

    def needed(self) -> tuple[RecordedArray, ...]:
        return self.needs

    def run_adjoint(self) -> None:
        if self.y.grad is None:
            return
        incoming = np.array(self.y.grad.numpy())
        if not self.adds:
            self.y.grad.numpy()[...] = 0
        if self.x.grad is not None:
            self.x.grad.numpy()[...] += incoming * self.derivative(self.x.numpy())


def run(f: Function, derivative: Function, x: array, y: array, adds: bool = False, linear: bool = False) -> None:
    about_to_write((y,))
    y.numpy()[...] = f(x.numpy()) + (y.numpy() if adds else 0)
    event = Elementwise(x, y, derivative, adds, () if linear else (x,))
    event.stamp = mark_written(event.writes, event.signature)
    recorder = current_recorder()
    if recorder is not None:
        recorder.record(event)


def square(x: array, y: array, adds: bool = False) -> None:
    run(lambda v: v * v, lambda v: 2 * v, x, y, adds)


def double(x: array, y: array, adds: bool = False) -> None:
    run(lambda v: 2 * v, lambda v: 2.0 + 0 * v, x, y, adds, linear=True)


def vector(*values: float, requires_grad: bool = True) -> array:
    made: array = array(values, dtype=float, requires_grad=requires_grad)
    return made
