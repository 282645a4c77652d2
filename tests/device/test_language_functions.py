"""Functions and kernels as programs write them, compiled: generics, factories, notebooks, redefinition, options."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.launch.program import executor

Floats = wp.array(dtype=float)


@wp.func
def root(x: wp.Float):
    return wp.sqrt(x)


@wp.func_grad(root)
def adj_root(x: wp.Float, adj_ret: wp.Float):
    if x > type(x)(0.0):
        wp.adjoint[x] += adj_ret / (type(x)(2.0) * wp.sqrt(x))


@wp.func
def next_place(counter: wp.array(dtype=Any), i: int):
    return wp.atomic_add(counter, 0, 1)


@wp.func_replay(next_place)
def replay_next_place(counter: wp.array(dtype=Any), i: int):
    return i


@wp.kernel
def roots(counter: wp.array(dtype=int), x: wp.array(dtype=wp.Float), y: wp.array(dtype=wp.Float)):
    i = next_place(counter, wp.tid())
    y[i] = root(x[i])


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_custom_gradient_and_replay_of_generic_functions(dtype: Any) -> None:
    x = wp.array([0.0, 4.0, 1.0], dtype=dtype, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(roots, 3, inputs=[wp.zeros(1, dtype=int), x], outputs=[y])
    tape.backward(grads={y: wp.ones(3, dtype=dtype)})
    assert y.numpy().tolist() == [0, 2, 1]
    assert x.grad.numpy().tolist() == [0, 0.25, 0.5]


@wp.kernel
def with_default(y: Floats, factor: float = 2.0, power: int = 1):
    y[0] = factor * float(power)


def test_defaults_of_a_kernel() -> None:
    y = wp.zeros(1, dtype=float)
    wp.launch(with_default, 1, inputs=[y])
    assert y.numpy()[0] == 2
    wp.launch(with_default, 1, inputs=[y, 3.0])
    assert y.numpy()[0] == 3


@wp.func
def twice(function: Callable, x: float):
    return function(function(x))


@wp.func
def successor(x: float):
    return x + 1.0


def make(function: Any, value: float) -> wp.Kernel:
    @wp.kernel(module="unique")
    def kernel(y: Floats):
        y[0] = twice(function, value)

    return kernel


def test_factories_keep_their_captured_values() -> None:
    y = wp.zeros(1, dtype=float)
    for kernel, expected in ((make(successor, 1.0), 3), (make(wp.sqrt, 16.0), 2), (make(successor, 5.0), 7)):
        wp.launch(kernel, 1, inputs=[y])
        assert y.numpy()[0] == expected


@pytest.mark.cpu
def test_a_thousand_identical_kernels_share_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    load = type(executor()).load
    monkeypatch.setattr(type(executor()), "load", lambda self, path: loaded.append(str(path)) or load(self, path))
    y = wp.zeros(1, dtype=float)

    def run(count: int) -> int:
        for _ in range(count):
            wp.launch(make(successor, 1.0), 1, inputs=[y])
        gc.collect()
        return sum(1 for thing in gc.get_objects() if isinstance(thing, wp.Kernel))

    before = run(10)
    assert run(100) <= before + 1
    assert len(set(loaded)) == 1


def cell(number: int, text: str, names: dict[str, Any]) -> None:
    """Run text as a notebook does."""
    file = f"<ipython-input-{number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)


def test_redefinition_in_a_notebook() -> None:
    names: dict[str, Any] = {"wp": wp, "Floats": Floats, "__name__": "notebook"}
    function = "@wp.func\ndef scale(x: float):\n    return x * {}\n"
    kernel = "@wp.kernel\ndef kernel(x: Floats):\n    x[0] = scale(1.0) + {}\n"

    def result() -> float:
        x = wp.zeros(1, dtype=float)
        wp.launch(names["kernel"], 1, inputs=[x])
        return float(x.numpy()[0])

    cell(1, function.format("2.0"), names)
    cell(2, kernel.format("0.0"), names)
    assert result() == 2
    cell(3, kernel.format("0.5"), names)
    assert result() == 2.5
    cell(4, function.format("3.0"), names)
    assert result() == 3.5


class Solver:
    """Kernels and functions may live in classes."""

    gravity = -10.0

    @wp.func
    def pulled(v: float, dt: float):
        return v + Solver.gravity * dt

    @wp.kernel
    def step(v: Floats, dt: float):
        i = wp.tid()
        v[i] = Solver.pulled(v[i], dt)

    def run(self, v: wp.array, dt: float) -> None:
        wp.launch(self.step, len(v), inputs=[v, dt])


def test_kernels_in_classes() -> None:
    v = wp.array([1.0, 2.0], dtype=float)
    Solver().run(v, 0.1)
    np.testing.assert_allclose(v.numpy(), [0, 1], atol=1e-6)


@wp.kernel
def empty(x: Floats): ...


def test_an_empty_kernel_does_nothing() -> None:
    x = wp.array([3.0], dtype=float)
    wp.launch(empty, 1, inputs=[x])
    assert x.numpy()[0] == 3
