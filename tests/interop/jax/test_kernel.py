"""`jax_kernel`: arguments, shapes, batches, memory and errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def scale(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = 2.0 * a[i] * a[i]


@wp.kernel
def rows(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float)):
    i = wp.tid()
    for j in range(a.shape[1]):
        b[i, j] = 3.0 * a[i, j]


@wp.kernel
def combine(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    i = wp.tid()
    c[i] = a[i] * 10.0 + b[i]


@wp.kernel
def update(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] * x[i]
    z[i] = y[i] + 1.0


@wp.kernel
def writes_input(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 1.0
    y[i] = x[i]


@wp.kernel
def generic(x: wp.array(dtype=Any), factor: Any, y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] * factor


@wp.kernel
def shift(x: wp.array(dtype=wp.vec3), by: wp.vec3, y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = x[i] + by


@wp.kernel
def count(x: wp.array(dtype=int), total: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(total, x[i], 1)


@wp.kernel
def grid(x: wp.array(dtype=float, ndim=4), y: wp.array(dtype=float, ndim=4)):
    i, j, k, l = wp.tid()
    y[i, j, k, l] = x[i, j, k, l] + float(i * 1000 + j * 100 + k * 10 + l)


@wp.struct
class Pair:
    a: float
    b: float


@wp.kernel
def takes_struct(x: wp.array(dtype=Pair), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i].a


x = jnp.arange(4, dtype=jnp.float32)


def test_results_are_a_list_eagerly_and_inside_jit() -> None:
    operation = wp.jax_kernel(scale)
    for run in (operation, jax.jit(operation)):
        found = run(x)
        assert type(found) is list
        np.testing.assert_array_equal(found[0], 2.0 * np.arange(4) ** 2)


def test_an_input_of_higher_rank_than_the_launch() -> None:
    X = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    np.testing.assert_array_equal(wp.jax_kernel(rows, launch_dims=2)(X)[0], 3.0 * np.arange(6).reshape(2, 3))


def test_four_dimensions() -> None:
    X = jnp.zeros((2, 3, 4, 5), dtype=jnp.float32)
    i, j, k, l = np.indices(X.shape)
    np.testing.assert_array_equal(wp.jax_kernel(grid)(X)[0], i * 1000 + j * 100 + k * 10 + l)


def test_outputs_begin_as_zeros() -> None:
    operation = jax.jit(wp.jax_kernel(count, output_dims=3))
    for _ in range(3):
        np.testing.assert_array_equal(operation(jnp.asarray([0, 2, 2, 0], jnp.int32))[0], [2, 0, 2])


def test_empty_arrays() -> None:
    assert wp.jax_kernel(scale)(x[:0])[0].shape == (0,)
    np.testing.assert_array_equal(wp.jax_kernel(count, output_dims=3)(jnp.zeros(0, jnp.int32))[0], [0, 0, 0])
    assert jax.vmap(wp.jax_kernel(scale))(jnp.zeros((0, 3)))[0].shape == (0, 3)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.int32, jnp.int16, jnp.uint8, jnp.uint32])
def test_generic_kernels_take_what_they_get(dtype: Any) -> None:
    values = jnp.arange(5).astype(dtype)
    (found,) = wp.jax_kernel(generic)(values, wp.dtype_from_jax(dtype)(3))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.arange(5) * 3)


def test_generic_kernels_take_vectors() -> None:
    (found,) = wp.jax_kernel(generic)(jnp.ones((4, 3)), 2.0)
    np.testing.assert_array_equal(found, np.full((4, 3), 2.0))


def test_values_are_vectors_and_numbers_of_numpy() -> None:
    operation = wp.jax_kernel(shift)
    points = jnp.zeros((2, 3))
    for by in (wp.vec3(1.0, 2.0, 3.0), (1.0, 2.0, 3.0), np.array([1.0, 2.0, 3.0], np.float32)):
        np.testing.assert_array_equal(operation(points, by)[0], np.tile([1.0, 2.0, 3.0], (2, 1)))
    # Equal in Python, but not as numbers of the kernel.
    (zero,) = wp.jax_kernel(generic)(jnp.ones(1), 0.0)
    (minus,) = wp.jax_kernel(generic)(jnp.ones(1), -0.0)
    assert (np.signbit(zero[0]), np.signbit(minus[0])) == (False, True)


def test_numpy_arrays_and_keywords() -> None:
    np.testing.assert_array_equal(wp.jax_kernel(scale)(np.arange(3, dtype=np.float32))[0], [0.0, 2.0, 8.0])
    operation = wp.jax_kernel(combine, output_dims=lambda a, b: b.shape, launch_dims=lambda a, b: 2)
    np.testing.assert_array_equal(operation(b=x, a=x)[0], [0.0, 11.0, 0.0, 0.0])
    with pytest.raises(ArgumentError, match=r"takes \(a, b\), but got 1 positional arguments and c"):
        operation(x, c=x)


# ---------------------------------------------------------------------------------------------------- vmap

METHODS = ["sequential", "expand_dims", "broadcast_all", "legacy_vectorized"]
if jax.__version_info__ >= (0, 6):
    METHODS.append("sequential_unrolled")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_vmap(method: str) -> None:
    operation = wp.jax_kernel(combine, vmap_method=method)
    a = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    wanted = 10.0 * np.arange(12).reshape(3, 4) + np.arange(4)
    np.testing.assert_array_equal(jax.vmap(operation, in_axes=(0, None))(a, x)[0], wanted)
    np.testing.assert_array_equal(jax.jit(jax.vmap(operation, in_axes=(1, None)))(a.T, x)[0], wanted)
    swapped = jax.vmap(operation, in_axes=(None, 0))(x, a)[0]
    np.testing.assert_array_equal(swapped, np.arange(12).reshape(3, 4) + 10.0 * np.arange(4))
    twice = jax.vmap(jax.vmap(operation, in_axes=(None, 0)), in_axes=(0, None))(a, a)[0]
    numbers = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(twice, 10.0 * numbers[:, None] + numbers[None])
    gradient = jax.grad(lambda a, b: (jax.vmap(operation, in_axes=(0, None))(a, b)[0] ** 2).sum(), argnums=(0, 1))
    found = gradient(a, x)
    np.testing.assert_allclose(found[0], 20.0 * wanted)
    np.testing.assert_allclose(found[1], 2.0 * wanted.sum(0))


@pytest.mark.parametrize("method", METHODS)
def test_changed_inputs_in_batches(method: str) -> None:
    operation = wp.jax_kernel(update, num_outputs=2, in_out_argnames=["y"], vmap_method=method)
    a = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    numbers, y = np.arange(12).reshape(3, 4), np.arange(4)
    for axes, arguments in (((0, None), (a, x)), ((None, 0), (x, a)), ((0, 0), (a, a))):
        found = jax.vmap(operation, in_axes=axes)(*arguments)
        product = numbers * (numbers if axes == (0, 0) else y)
        np.testing.assert_array_equal(found[0], product)
        np.testing.assert_array_equal(found[1], product + 1.0)
    np.testing.assert_array_equal(a, numbers)
    np.testing.assert_array_equal(x, y)


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(ValueError, match="sideways"):
        wp.jax_kernel(scale, vmap_method="sideways")(x)


# ---------------------------------------------------------------------------------------------------- memory


def test_changed_inputs_leave_the_caller_alone() -> None:
    operation = wp.jax_kernel(update, num_outputs=2, in_out_argnames=["y"])
    y = jnp.full(4, 2.0)
    for run in (operation, jax.jit(operation)):
        changed, z = run(x, y)
        np.testing.assert_array_equal(changed, 2.0 * np.arange(4))
        np.testing.assert_array_equal(z, 2.0 * np.arange(4) + 1.0)
        np.testing.assert_array_equal(y, np.full(4, 2.0))


def test_donated_memory_is_used_again() -> None:
    operation = jax.jit(wp.jax_kernel(update, num_outputs=2, in_out_argnames=["y"]), donate_argnums=1)
    y = jnp.full(1000, 2.0)
    address = y.unsafe_buffer_pointer()
    changed, _ = operation(jnp.ones(1000), y)
    assert y.is_deleted()
    assert changed.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(changed, np.full(1000, 2.0))
    with pytest.raises(ArgumentError, match="donated"):
        wp.from_jax(y)


def test_inside_scan_while_and_cond() -> None:
    operation = wp.jax_kernel(scale)
    start = jnp.full(3, 0.5)

    @jax.jit
    def loop(x):
        return jax.lax.scan(lambda carry, _: (operation(carry)[0], carry.sum()), x, None, length=3)

    last, sums = loop(start)
    np.testing.assert_array_equal(last, np.full(3, 0.5))
    np.testing.assert_array_equal(sums, np.full(3, 1.5))
    found = jax.jit(lambda x: jax.lax.while_loop(lambda y: y[0] < 50.0, lambda y: operation(y)[0], x))(2.0 * start)
    np.testing.assert_array_equal(found, np.full(3, 128.0))
    found = jax.jit(lambda p, x: jax.lax.cond(p, lambda x: operation(x)[0], lambda x: x, x))(True, 2.0 * start)
    np.testing.assert_array_equal(found, np.full(3, 2.0))


# ---------------------------------------------------------------------------------------------------- errors


def test_errors_name_the_parameter() -> None:
    operation = wp.jax_kernel(scale)
    with pytest.raises(ArgumentError, match=r"'a'.*float32.*int32"):
        operation(jnp.arange(3))
    with pytest.raises(ArgumentError, match=r"'a'.*1 dimensions.*\(2, 2\)"):
        operation(jnp.zeros((2, 2)))
    with pytest.raises(ArgumentError, match=r"takes \(a\), but got 2"):
        operation(x, x)
    with pytest.raises(ArgumentError, match=r"'a'.*None"):
        operation(None)
    with pytest.raises(ArgumentError, match=r"'x'.*last dimensions are \(3,\)"):
        wp.jax_kernel(shift)(jnp.zeros((2, 4)), wp.vec3())
    with pytest.raises(ArgumentError, match=r"'by'"):
        wp.jax_kernel(shift)(jnp.zeros((2, 3)), "text")


def test_errors_of_shapes_name_the_output() -> None:
    operation = wp.jax_kernel(scale)
    with pytest.raises(ArgumentError, match=r"'b'.*\(2, 2\)"):
        operation(x, output_dims=(2, 2))
    with pytest.raises(ArgumentError, match="no output 'c'"):
        operation(x, output_dims={"c": 1})
    with pytest.raises(ArgumentError, match=r"launch_dims.*-1"):
        operation(x, launch_dims=-1)
    with pytest.raises(ArgumentError, match=r"output_dims.*1\.5"):
        operation(x, output_dims=1.5)
    with pytest.raises(ArgumentError, match=r"'a'.*nothing tells its shape"):
        wp.jax_kernel(rows, num_outputs=2)(launch_dims=2)


def test_errors_of_declarations() -> None:
    with pytest.raises(ArgumentError, match="jax_callable"):
        wp.jax_kernel(lambda: None)
    with pytest.raises(ArgumentError, match="num_outputs"):
        wp.jax_kernel(scale, num_outputs=3)
    with pytest.raises(ArgumentError, match="no parameter 'q'"):
        wp.jax_kernel(scale, in_out_argnames=["q"])
    with pytest.raises(ArgumentError, match="Pair"):
        wp.jax_kernel(takes_struct)


def test_a_kernel_that_writes_an_input_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"'x'.*in_out_argnames"):
        wp.jax_kernel(writes_input)(x)
    np.testing.assert_array_equal(x, np.arange(4))


def test_64_bit_outputs_need_64_bit_numbers() -> None:
    with pytest.raises(ArgumentError, match=r"'y'.*jax_enable_x64"):
        wp.jax_kernel(wide)(x)


@wp.kernel
def wide(x: wp.array(dtype=float), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.float64(x[i])
