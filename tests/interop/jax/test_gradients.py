"""Derivatives of kernels through JAX, against jax.numpy: every mode, and compositions of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import warp as wp
from warp.errors import AutogradError


@wp.kernel
def product(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = wp.sin(a[i]) * b[i]


@wp.kernel
def overwrite(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    for k in range(4):
        y[i] = y[i] * wp.sin(y[i]) + x[i]


@wp.kernel
def overwrite_dynamically(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    for k in range(n[i]):
        y[i] = y[i] * wp.sin(y[i]) + x[i]


@wp.kernel
def energy(x: wp.array(dtype=wp.vec3), mass: wp.array(dtype=float), e: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(e, 0, 0.5 * mass[i] * wp.dot(x[i], x[i]))


@wp.kernel
def two_outputs(x: wp.array(dtype=float), square: wp.array(dtype=float), sign: wp.array(dtype=int)):
    i = wp.tid()
    square[i] = x[i] * x[i]
    sign[i] = 1
    if x[i] < 0.0:
        sign[i] = -1


@wp.kernel
def gather(x: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[index[i]]


@wp.kernel
def prefix(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if i > 0:
        y[i] = y[i - 1] * x[i]
    else:
        y[i] = x[i]


@wp.func_native(snippet="return x * x * x;", adj_snippet="adj_x += 3.0f * x * x * adj_ret;")
def native_cube(x: float) -> float: ...


@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = native_cube(x[i])


@wp.kernel(enable_backward=False)
def without_gradient(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def reference_overwrite(x: Any, y: Any) -> Any:
    for _ in range(4):
        y = y * jnp.sin(y) + x
    return y


def reference_energy(x: Any, mass: Any) -> Any:
    return (0.5 * mass * (x * x).sum(1)).sum()


jax_product = wp.jax_kernel(product)
jax_overwrite = wp.jax_kernel(overwrite, in_out_argnames=["y"])
jax_energy = wp.jax_kernel(energy, output_dims=1)
x, y = jnp.asarray([0.3, 0.5, 0.7]), jnp.asarray([1.0, 2.0, 0.4])
points, masses = jnp.arange(12.0).reshape(4, 3), jnp.arange(1.0, 5.0)

PAIRS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "product": (lambda x, y: jax_product(x, y)[0], lambda x, y: jnp.sin(x) * y),
    "overwrite": (lambda x, y: jax_overwrite(x, y)[0], reference_overwrite),
    "dynamic": (
        lambda x, y: wp.jax_kernel(overwrite_dynamically, in_out_argnames=["y"])(x, jnp.full(3, 4, jnp.int32), y)[0],
        reference_overwrite,
    ),
}


def assert_close(found: Any, wanted: Any) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


TRANSFORMS: dict[str, Callable[[Callable[[Any, Any], Any]], Any]] = {
    "grad": lambda f: jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(x, y),
    "grad of one": lambda f: jax.grad(lambda x: (f(x, y) ** 2).sum())(x),
    "grad inside jit": lambda f: jax.jit(jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1)))(x, y),
    "jit inside grad": lambda f: jax.grad(lambda x, y: jax.jit(f)(x, y).sum(), argnums=1)(x, y),
    "vjp": lambda f: jax.vjp(f, x, y)[1](jnp.asarray([1.0, -2.0, 3.0])),
    "jvp": lambda f: jax.jvp(f, (x, y), (y, x)),
    "jvp of one": lambda f: jax.jvp(lambda y: f(x, y), (y,), (x,)),
    "linearize": lambda f: jax.linearize(f, x, y)[1](y, x),
    "jacrev": lambda f: jax.jacrev(f, argnums=(0, 1))(x, y),
    "jacfwd": lambda f: jax.jacfwd(f, argnums=(0, 1))(x, y),
    "vmap of grad": lambda f: jax.vmap(jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1)), (0, None))(
        jnp.stack([x, 2.0 * x]), y
    ),
    "grad of vmap": lambda f: jax.grad(lambda x, y: (jax.vmap(f, (1, None), 1)(x, y) ** 2).sum(), argnums=(0, 1))(
        jnp.stack([x, 2.0 * x], axis=1), y
    ),
    "vmap of jvp": lambda f: jax.vmap(lambda x: jax.jvp(lambda y: f(x, y), (y,), (x,)))(jnp.stack([x, 2.0 * x])),
    "grad of scan": lambda f: jax.grad(
        lambda x: jax.lax.scan(lambda carry, _: (f(x, carry), carry.sum()), y, None, length=3)[0].sum()
    )(x),
    "jvp of scan": lambda f: jax.jvp(
        lambda x: jax.lax.scan(lambda carry, _: (f(x, carry), None), y, None, length=3)[0], (x,), (y,)
    ),
    "grad with checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x, y: f(x, y).sum()), argnums=(0, 1))(x, y),
    "jvp of vjp": lambda f: jax.jvp(lambda ct: jax.vjp(f, x, y)[1](ct), (x,), (y,)),
    "grad of vjp": lambda f: jax.grad(lambda ct: jax.vjp(f, x, y)[1](ct)[0].sum())(x),
    "vmap of vmap of grad": lambda f: jax.vmap(jax.vmap(jax.grad(lambda x, y: f(x, y).sum()), (None, 0)), (0, None))(
        jnp.stack([x, 2.0 * x]), jnp.stack([y, 0.5 * y])
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", PAIRS)
def test_derivatives(kind: str, transform: str) -> None:
    operation, reference = PAIRS[kind]
    assert_close(TRANSFORMS[transform](operation), TRANSFORMS[transform](reference))


SECOND: dict[str, Callable[[Any], Any]] = {
    "hessian": lambda f: jax.hessian(f, argnums=(0, 1))(points, masses),
    "jacfwd of grad inside jit": lambda f: jax.jit(jax.jacfwd(jax.grad(f)))(points, masses),
    "jvp of grad": lambda f: jax.jvp(jax.grad(f), (points, masses), (points, masses)),
    "vmap of hessian": lambda f: jax.vmap(jax.hessian(f), (0, None))(jnp.stack([points, -points]), masses),
}


@pytest.mark.parametrize("transform", SECOND)
def test_second_derivatives_are_forward_over_reverse(transform: str) -> None:
    found = SECOND[transform](lambda x, mass: jax_energy(x, mass)[0][0])
    assert_close(found, SECOND[transform](reference_energy))


def test_other_second_derivatives_are_refused() -> None:
    def total(x: Any) -> Any:
        return jax_energy(x, masses)[0][0]

    with pytest.raises(AutogradError, match=r"'energy'.*jax\.hessian"):
        jax.jacrev(jax.jacrev(total))(points)
    with pytest.raises(AutogradError, match=r"'energy'.*jax\.hessian"):
        jax.jacfwd(jax.jacfwd(total))(points)
    with pytest.raises(AutogradError, match="'overwrite'"):
        jax.hessian(lambda x: jax_overwrite(x, y)[0].sum())(x)


def test_integers_have_no_gradients() -> None:
    index = jnp.asarray([2, 0, 2, 1], jnp.int32)
    operation = wp.jax_kernel(gather)
    gradient = jax.grad(
        lambda x, index: operation(x, index, output_dims=4, launch_dims=4)[0].sum(), (0, 1), allow_int=True
    )
    found = gradient(x, index)
    np.testing.assert_array_equal(found[0], [3.0, 3.0, 6.0])
    assert found[1].dtype == jax.dtypes.float0
    wanted = np.zeros(4, jax.dtypes.float0)
    _, moved = jax.jvp(lambda x, i: operation(x, i, output_dims=4, launch_dims=4)[0], (x, index), (y, wanted))
    np.testing.assert_allclose(moved, 3.0 * np.asarray(y)[index])


def test_integer_outputs() -> None:
    operation = wp.jax_kernel(two_outputs, num_outputs=2)
    values = jnp.asarray([-1.0, 2.0])
    np.testing.assert_array_equal(jax.grad(lambda x: operation(x)[0].sum())(values), [-2.0, 4.0])
    (square, sign), (moved, none) = jax.jvp(operation, (values,), (jnp.ones(2),))
    np.testing.assert_array_equal(sign, [-1, 1])
    np.testing.assert_array_equal(square, [1.0, 4.0])
    np.testing.assert_array_equal(moved, [-2.0, 4.0])
    assert none.dtype == jax.dtypes.float0


def test_what_a_kernel_overwrites_has_the_gradient_zero() -> None:
    np.testing.assert_array_equal(jax.grad(lambda y: jax_product(x, y)[0].sum())(jnp.zeros(3)), np.sin(np.asarray(x)))
    operation = wp.jax_kernel(two_outputs, num_outputs=2, in_out_argnames=["square"])
    found = jax.grad(lambda square: operation(jnp.ones(2), square)[0].sum())(jnp.ones(2))
    np.testing.assert_array_equal(found, [0.0, 0.0])


@pytest.mark.cpu
def test_gradients_through_what_another_thread_has_written() -> None:
    # Threads run in order on the CPU, and the adjoint takes them backward.
    values = jnp.asarray([1.5, 2.0, 3.0])
    gradient = jax.grad(lambda x: wp.jax_kernel(prefix)(x)[0].sum())(values)
    np.testing.assert_allclose(gradient, jax.grad(lambda x: jnp.cumprod(x).sum())(values))


def test_native_functions() -> None:
    operation = wp.jax_kernel(cubes)
    np.testing.assert_allclose(jax.grad(lambda x: operation(x)[0].sum())(x), 3.0 * np.asarray(x) ** 2, rtol=1e-6)
    with pytest.raises(AutogradError, match=r"test_gradients\.py"):
        jax.jvp(operation, (x,), (x,))


def test_a_missing_gradient_is_an_error_only_when_it_is_asked_for() -> None:
    operation = wp.jax_kernel(without_gradient)
    np.testing.assert_allclose(jax.jit(operation)(x)[0], np.asarray(x) ** 2)
    np.testing.assert_allclose(jax.jvp(operation, (x,), (x,))[1][0], 2.0 * np.asarray(x) ** 2)
    with pytest.raises(AutogradError, match="enable_backward=False"):
        jax.grad(lambda x: operation(x)[0].sum())(x)
