"""Kernels of compiled functions on stand-in CUDA devices, through the native handler: results and derivatives."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import warp as wp
from warp.errors import AutogradError

from . import test_gradients as cpu
from .stand_in import StandInXla, stand_in_xla
from .test_gradients import PAIRS, SECOND, TRANSFORMS, assert_close

x, y = cpu.x, cpu.y


@wp.kernel
def positive(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    assert a[i] > 0.0
    b[i] = a[i]


@wp.kernel
def scaled(a: wp.array(dtype=float), factor: float, b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * factor


@wp.kernel
def ones(a: wp.array(dtype=wp.vec2)):
    a[wp.tid()] = wp.vec2(1.0, 1.0)


@pytest.fixture(autouse=True, scope="module")
def xla() -> Iterator[StandInXla]:
    """Compile for stand-in devices what JAX compiles for the CPU."""
    made = stand_in_xla()
    with made.in_front():
        yield made


@pytest.fixture(autouse=True, params=[0])
def _on(xla: StandInXla, request: pytest.FixtureRequest) -> Iterator[None]:
    """Run on a device. A test fails if no call has reached it, or if it has seen something wrong."""
    xla.graphs.clear()
    xla.ordinal = request.param
    yield
    assert xla.driver.violations == []
    assert xla.graphs


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", PAIRS)
def test_derivatives(kind: str, transform: str) -> None:
    operation, reference = PAIRS[kind]
    assert_close(TRANSFORMS[transform](operation), TRANSFORMS[transform](reference))


@pytest.mark.parametrize("transform", SECOND)
def test_second_derivatives(transform: str) -> None:
    found = SECOND[transform](lambda points, mass: cpu.jax_energy(points, mass)[0][0])
    assert_close(found, SECOND[transform](cpu.reference_energy))


compiled = jax.jit(lambda x, y: wp.jax_kernel(scaled)(cpu.jax_product(x, y)[0], 3.0)[0])


@pytest.mark.parametrize("_on", [0, 1], indirect=True)
def test_one_compiled_function_runs_on_every_device(xla: StandInXla) -> None:
    np.testing.assert_allclose(compiled(x, y), jnp.sin(x) * y * 3.0, rtol=1e-6)
    assert xla.graphs == [True, True]


def test_values_vectors_and_no_inputs() -> None:
    (found,) = wp.jax_kernel(scaled)(x, 3.0)
    np.testing.assert_allclose(found, 3.0 * x)
    (found,) = wp.jax_kernel(ones)(launch_dims=3)
    np.testing.assert_array_equal(found, np.ones((3, 2)))


def test_a_graph_may_capture_what_does_not_wait(xla: StandInXla) -> None:
    jax.grad(lambda x: cpu.jax_overwrite(x, y)[0].sum())(x)
    assert set(xla.graphs) == {True}
    xla.graphs.clear()
    jax.grad(lambda x: PAIRS["dynamic"][0](x, y).sum())(x)
    assert xla.graphs == [True, False]  # what loops keep is known when they have run


def test_gradients_that_depend_on_the_order_of_threads_are_refused() -> None:
    operation = wp.jax_kernel(cpu.prefix)
    jax.block_until_ready(operation(x))
    with pytest.raises(AutogradError, match=r"(?s)'prefix'.*test_gradients\.py"):
        jax.grad(lambda x: operation(x)[0].sum())(x)


def test_a_failed_assertion_is_an_error_of_a_later_call() -> None:
    operation = jax.jit(wp.jax_kernel(positive))
    np.testing.assert_array_equal(operation(x)[0], x)
    jax.block_until_ready(operation(-x))
    with pytest.raises(Exception, match=r"(?s)positive: assertion failed.*index \(0\).*a\[i\] > 0\.0"):
        jax.block_until_ready(operation(x))
    np.testing.assert_array_equal(operation(x)[0], x)


@wp.func_native(snippet="return (int)threadIdx.x;")
def place_in_block() -> wp.int32: ...


@wp.kernel
def places(a: wp.array(dtype=int), b: wp.array(dtype=int)):
    i = wp.tid()
    b[i] = a[i] + place_in_block()


def test_native_functions_that_are_for_cuda_only() -> None:
    values = jnp.arange(300, dtype=jnp.int32)
    np.testing.assert_array_equal(jax.jit(wp.jax_kernel(places))(values)[0], values + values % 256)
