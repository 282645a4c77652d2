"""Kernels of random signatures through jit, vmap and every derivative, against jax.numpy and central differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warp as wp

from .random_kernels import Signature, inputs_of, kernel_of, reference_of, signatures

STEP = 1e-6


@pytest.fixture(autouse=True)
def _numbers_of_64_bits() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def operation_of(signature: Signature, **options: Any) -> Callable[..., list[Any]]:
    changed = [f"x{len(signature.inputs) - 1}"] if signature.changes_last else []
    count = len(signature.outputs) + len(changed)
    operation = wp.jax_kernel(kernel_of(signature), num_outputs=count, in_out_argnames=changed, **options)
    scalars = [] if signature.scalar is None else [signature.scalar]
    return lambda *inputs: operation(*scalars, *inputs)


def assert_close(signature: Signature, found: Any, wanted: Any, scale: float = 1.0) -> None:
    tolerance = scale * (1e-9 if signature.dtype == "float64" else 2e-4)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert a.shape == b.shape
        assert a.dtype == signature.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1 + np.abs(b).max()))


def weighted(results: list[Any]) -> Any:
    return sum((jnp.cos(y) * (n + 1)).sum() for n, y in enumerate(results))


seeds = st.integers(0, 1000)
drawn = given(signature=signatures, seed=seeds)


def examples(share: int) -> settings:
    """Return settings for a part of the examples of the profile: each compiles a kernel."""
    count = max(2, settings.default.max_examples // share)
    return settings(max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture])


@examples(3)
@drawn
def test_results(signature: Signature, seed: int) -> None:
    inputs = inputs_of(signature, seed)
    wanted = reference_of(signature, np)(*inputs)
    assert_close(signature, operation_of(signature)(*inputs), wanted)
    assert_close(signature, jax.jit(operation_of(signature))(*inputs), wanted)


@examples(3)
@given(
    signature=signatures,
    seed=seeds,
    method=st.sampled_from(["sequential", "expand_dims", "broadcast_all"]),
    is_batched=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_batches(signature: Signature, seed: int, method: str, is_batched: list[bool]) -> None:
    axes = [0 if wanted else None for wanted in is_batched[: len(signature.inputs)]]
    axes[0] = 0
    inputs = [
        x if axis is None else b
        for x, b, axis in zip(inputs_of(signature, seed), inputs_of(signature, seed, (4,)), axes, strict=True)
    ]
    wanted = jax.vmap(reference_of(signature, jnp), in_axes=axes)(*inputs)
    assert_close(signature, jax.vmap(operation_of(signature, vmap_method=method), in_axes=axes)(*inputs), wanted)


@examples(10)
@drawn
def test_derivatives_are_those_of_the_reference(signature: Signature, seed: int) -> None:
    inputs = inputs_of(signature, seed)
    operation, reference = operation_of(signature), reference_of(signature, jnp)
    places = tuple(range(len(inputs)))

    def gradient(function: Callable[..., list[Any]]) -> Callable[..., Any]:
        return jax.grad(lambda *x: weighted(function(*x)), argnums=places)

    assert_close(signature, gradient(operation)(*inputs), gradient(reference)(*inputs), 10.0)
    assert_close(signature, jax.jit(gradient(operation))(*inputs), gradient(reference)(*inputs), 10.0)
    directions = tuple(inputs_of(signature, seed + 1))
    found = jax.jvp(operation, tuple(inputs), directions)
    assert_close(signature, found, jax.jvp(reference, tuple(inputs), directions), 10.0)
    batch = inputs_of(signature, seed, (2,))
    axes = [0] + [None] * (len(inputs) - 1)
    mixed = [batch[0], *inputs[1:]]
    found = jax.vmap(gradient(operation), in_axes=axes)(*mixed)
    assert_close(signature, found, jax.vmap(gradient(reference), in_axes=axes)(*mixed), 10.0)
    jacobians = jax.jacrev(operation, argnums=places)(*inputs), jax.jacfwd(operation, argnums=places)(*inputs)
    assert_close(signature, jacobians[0], jax.jacrev(reference, argnums=places)(*inputs), 10.0)
    assert_close(signature, jacobians[0], jacobians[1], 10.0)


@examples(4)
@drawn
def test_gradients_are_central_differences(signature: Signature, seed: int) -> None:
    inputs = inputs_of(signature, seed)
    reference = reference_of(signature, np)
    found = jax.grad(lambda *x: weighted(operation_of(signature)(*x)), argnums=tuple(range(len(inputs))))(*inputs)

    def loss(place: int, index: tuple[int, ...], step: float) -> float:
        moved = [x.astype(np.float64) for x in inputs]
        moved[place][index] += step
        return float(sum((np.cos(y) * (n + 1)).sum() for n, y in enumerate(reference(*moved))))

    for place, gradient in enumerate(found):
        wanted = np.zeros(gradient.shape)
        for index in np.ndindex(gradient.shape):
            wanted[index] = (loss(place, index, STEP) - loss(place, index, -STEP)) / (2 * STEP)
        tolerance = 1e-6 if signature.dtype == "float64" else 1e-3
        np.testing.assert_allclose(gradient, wanted, rtol=tolerance, atol=tolerance * (1 + np.abs(wanted).max()))
