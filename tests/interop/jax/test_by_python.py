"""Kernels that Python launches, as on CUDA devices, but here on the CPU: results and derivatives are the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import mlir

import warp as wp
from warp_interop_jax import primitive

from .test_gradients import PAIRS, TRANSFORMS, assert_close, energy, x


@pytest.fixture(autouse=True)
def _launched_by_python() -> Iterator[None]:
    """Lower calls for the CPU as for devices that native code does not launch on."""

    def register(is_native: bool) -> None:
        rule = mlir.lower_fun(partial(primitive._lowered, is_native=is_native), multiple_results=True)
        mlir.register_lowering(primitive.call_p, rule, platform="cpu")
        jax.clear_caches()
        primitive._compiled.cache_clear()

    register(False)
    yield
    register(True)


CHOSEN = ["grad", "jvp", "jacrev", "jacfwd", "vmap of grad", "grad of scan", "vmap of jvp"]


@pytest.mark.parametrize("transform", CHOSEN)
@pytest.mark.parametrize("kind", PAIRS)
def test_derivatives(kind: str, transform: str) -> None:
    operation, reference = PAIRS[kind]
    assert_close(TRANSFORMS[transform](operation), TRANSFORMS[transform](reference))


def test_values_vectors_and_no_inputs() -> None:
    points, masses = jnp.arange(6.0).reshape(2, 3), jnp.asarray([1.0, 2.0])
    (found,) = jax.jit(wp.jax_kernel(energy, output_dims=1))(points, masses)
    np.testing.assert_allclose(found, [0.5 * 5.0 + 50.0])
    gradient = jax.grad(lambda p: wp.jax_kernel(energy, output_dims=1)(p, masses)[0][0])(points)
    np.testing.assert_allclose(gradient, np.asarray(masses)[:, None] * points)
    (found,) = wp.jax_kernel(scaled)(x, 3.0)
    np.testing.assert_allclose(found, 3.0 * x)
    assert "warp_function" in jax.jit(lambda x: wp.jax_kernel(scaled)(x, 3.0)).lower(x).as_text()
    (found,) = wp.jax_kernel(ones)(launch_dims=3)
    np.testing.assert_array_equal(found, np.ones((3, 2)))


@wp.kernel
def scaled(a: wp.array(dtype=float), factor: float, b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * factor


@wp.kernel
def ones(a: wp.array(dtype=wp.vec2)):
    a[wp.tid()] = wp.vec2(1.0, 1.0)
