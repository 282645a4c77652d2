"""Kernels inside compiled functions of JAX; run by `tests/gpu/run.sh` where JAX is, on a GPU if it sees one."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import warp as wp

FOUND = all(importlib.util.find_spec(name) for name in ("jax", "warp_interop_jax"))
SIZE = 1 << 16


@wp.kernel
def swing(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] - 0.1 * x[i] * x[i] * x[i]


@wp.kernel
def fold(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    for _k in range(n[i]):
        y[i] = y[i] * wp.sin(y[i]) + x[i]


@wp.kernel
def positive(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    assert x[i] > 0.0
    y[i] = x[i]


def swing_twice(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    between = wp.zeros_like(x)
    wp.launch(swing, x.shape, inputs=[x], outputs=[between])
    wp.launch(swing, x.shape, inputs=[between], outputs=[y])


@pytest.fixture(autouse=True)
def _without_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let launches be queued and captured, as they are by default."""
    monkeypatch.setattr(wp.config, "verify_cuda", False)
    yield
    wp.synchronize()


@pytest.fixture
def jax() -> Any:
    """Return JAX; its default device is a GPU where it sees one."""
    return importlib.import_module("jax")


def both(jax: Any) -> tuple[Any, Any]:
    operation = wp.jax_kernel(swing)
    return lambda x: operation(x)[0], lambda x: x - 0.1 * x**3


TRANSFORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "jit": lambda jax, f, x: jax.jit(f)(x),
    "grad": lambda jax, f, x: jax.grad(lambda x: (f(x) ** 2).sum())(x),
    "jvp": lambda jax, f, x: jax.jvp(f, (x,), (2.0 * x,))[1],
    "vmap": lambda jax, f, x: jax.vmap(f, 1, 1)(x.reshape(-1, 4)),
    "vmap of grad": lambda jax, f, x: jax.vmap(jax.grad(lambda x: f(x).sum()))(x.reshape(4, -1)),
    "scan": lambda jax, f, x: jax.lax.scan(lambda carry, _: (f(carry), None), x, None, length=5)[0],
    "grad of scan": lambda jax, f, x: jax.grad(
        lambda x: jax.lax.scan(lambda carry, _: (f(carry), None), x, None, length=5)[0].sum()
    )(x),
    "hessian": lambda jax, f, x: jax.hessian(lambda x: (f(x) ** 2).sum())(x[:6]),
}

if FOUND:

    @pytest.mark.parametrize("name", TRANSFORMS)
    def test_transformations(jax: Any, name: str) -> None:
        operation, reference = both(jax)
        x = jax.numpy.linspace(-2.0, 2.0, 400)
        found, wanted = (TRANSFORMS[name](jax, function, x) for function in (operation, reference))
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)

    def test_order_of_the_stream(jax: Any) -> None:
        """What JAX computes before and after a kernel is slow enough for a wrong order to be seen."""
        operation, reference = both(jax)
        side = 2048 if jax.default_backend() == "gpu" else 64
        matrix = jax.random.normal(jax.random.key(0), (side, side)) / side**0.5

        def run(f: Any, a: Any) -> Any:
            for _ in range(4):
                for _ in range(4):
                    a = a @ matrix
                a = f(a.ravel()).reshape(a.shape)
            return a @ matrix

        compiled = [jax.jit(lambda a, f=f: run(f, a)) for f in (operation, reference)]
        for number in range(10):
            start = jax.random.normal(jax.random.key(number), (side, side))
            found, wanted = (function(start) for function in compiled)
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * float(np.abs(wanted).max()))

    @pytest.mark.parametrize("is_function", [False, True])
    def test_graphs_that_xla_captures(jax: Any, is_function: bool) -> None:
        """XLA captures sequences of a few operations, and updates the graph where buffers have moved."""
        operation, reference = both(jax)
        if is_function:
            twice = wp.jax_callable(swing_twice)
            compiled = jax.jit(lambda x: twice(twice(twice(x)[0])[0])[0])
        else:
            compiled = jax.jit(lambda x: operation(operation(operation(operation(operation(operation(x)))))))
        kept = []
        for number in range(12):
            x = jax.numpy.linspace(0.5, 1.0 + 0.1 * number, SIZE)
            wanted = x
            for _ in range(6):
                wanted = reference(wanted)
            kept.append(compiled(x))
            np.testing.assert_allclose(kept[-1], wanted, rtol=1e-4, atol=1e-6)

    def test_records_of_loops(jax: Any) -> None:
        operation = wp.jax_kernel(fold, in_out_argnames=["y"])
        x, y = jax.numpy.linspace(0.1, 0.7, 1000), jax.numpy.linspace(0.1, 0.4, 1000)
        for count in (2, 60):
            n = jax.numpy.full(1000, count, "int32")
            found = jax.grad(lambda x, n=n: operation(x, n, y)[0].sum())(x)
            value, slope = np.asarray(y, np.float64), np.zeros(1000)
            for _ in range(count):
                slope = slope * (np.sin(value) + value * np.cos(value)) + 1.0
                value = value * np.sin(value) + np.asarray(x, np.float64)
            np.testing.assert_allclose(found, slope, rtol=2e-3)

    def test_failed_assertions(jax: Any) -> None:
        run = jax.jit(lambda x: wp.jax_kernel(positive)(x)[0])
        x = jax.numpy.ones(1000)

        def run_and_wait() -> None:
            jax.block_until_ready(run(x.at[7].set(-1.0)))  # raises on the CPU
            wp.synchronize()

        with pytest.raises(Exception, match=r"positive: assertion failed, at line \d+, .* index \(7\)"):
            run_and_wait()
        np.testing.assert_array_equal(run(x), x)

    def test_every_device(jax: Any) -> None:
        operation, reference = both(jax)
        compiled = jax.jit(operation)
        for device in jax.local_devices():
            x = jax.device_put(np.linspace(0.0, 1.0, 100, dtype=np.float32), device)
            np.testing.assert_allclose(compiled(x), reference(x), rtol=1e-5)
            assert compiled(x).devices() == {device}
