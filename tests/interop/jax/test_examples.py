"""The programs of the interoperability page, completed where the page shows only a part, and run on the CPU."""

from __future__ import annotations

import math
import runpy
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import warp as wp
from warp.jax_experimental.ffi import jax_callable, jax_kernel, register_ffi_callback


@wp.kernel
def triple_kernel(input: wp.array(dtype=float), output: wp.array(dtype=float)):
    tid = wp.tid()
    output[tid] = 3.0 * input[tid]


@wp.kernel
def multiarg_kernel(
    # inputs
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    c: wp.array(dtype=float),
    # outputs
    ab: wp.array(dtype=float),
    bc: wp.array(dtype=float),
):
    tid = wp.tid()
    ab[tid] = a[tid] + b[tid]
    bc[tid] = b[tid] + c[tid]


@wp.kernel
def matmul_kernel(
    a: wp.array2d(dtype=float),  # NxK input
    b: wp.array2d(dtype=float),  # KxM input
    c: wp.array2d(dtype=float),  # NxM output
):
    # launch dims should be (N, M)
    i, j = wp.tid()
    N = a.shape[0]
    K = a.shape[1]
    M = b.shape[1]
    if i < N and j < M:
        s = wp.float32(0)
        for k in range(K):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@wp.kernel
def add_kernel(a: wp.array(dtype=int), b: wp.array(dtype=int), output: wp.array(dtype=int)):
    tid = wp.tid()
    output[tid] = a[tid] + b[tid]


@wp.kernel
def sincos_kernel(
    angle: wp.array(dtype=float),
    # outputs
    sin_out: wp.array(dtype=float),
    cos_out: wp.array(dtype=float),
):
    tid = wp.tid()
    sin_out[tid] = wp.sin(angle[tid])
    cos_out[tid] = wp.cos(angle[tid])


@wp.kernel
def diagonal_kernel(output: wp.array(dtype=wp.mat33)):
    tid = wp.tid()
    output[tid] = wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0)


@wp.kernel
def scale_kernel(a: wp.array(dtype=float), s: float, output: wp.array(dtype=float)):
    tid = wp.tid()
    output[tid] = a[tid] * s


@wp.kernel
def scale_vec_kernel(a: wp.array(dtype=wp.vec2), s: float, output: wp.array(dtype=wp.vec2)):
    tid = wp.tid()
    output[tid] = a[tid] * s


# The page leaves the bodies of these two out.
@wp.kernel
def funky_kernel(
    a: wp.array(dtype=float),
    # outputs
    b: wp.array(dtype=float),
    c: wp.array(dtype=float),
):
    tid = wp.tid()
    if tid < b.shape[0]:
        b[tid] = a[tid % a.shape[0]] + 1.0
    if tid < c.shape[0]:
        c[tid] = float(c.shape[0])


@wp.kernel
def vecmat_kernel(
    a: wp.array(dtype=float),
    b: wp.array(dtype=wp.vec3),
    c: wp.array(dtype=wp.mat22),
    # outputs
    d: wp.array(dtype=float),
    e: wp.array(dtype=wp.vec3),
    f: wp.array(dtype=wp.mat22),
):
    tid = wp.tid()
    d[tid] = a[tid] + b[tid][2]
    e[tid] = 2.0 * b[tid]
    f[tid] = c[tid] * c[tid]


def test_arrays_are_shared_without_a_copy() -> None:
    jax_array = jnp.arange(4, dtype=jnp.float32)
    warp_array = wp.from_jax(jax_array)
    assert warp_array.ptr == jax_array.unsafe_buffer_pointer()
    back = wp.to_jax(wp.array([1.0, 2.0], dtype=float))
    np.testing.assert_array_equal(back, [1.0, 2.0])


def test_devices_and_types() -> None:
    assert wp.device_from_jax(jax.devices("cpu")[0]) is wp.get_device("cpu")
    assert wp.device_to_jax("cpu") is jax.devices("cpu")[0]
    assert wp.device_to_jax(None).platform == "cpu"
    assert wp.dtype_from_jax(jnp.float32) is wp.float32
    assert wp.dtype_to_jax(wp.float32) is jnp.float32
    with pytest.raises(TypeError):
        wp.dtype_from_jax(jnp.complex64)
    with pytest.raises(RuntimeError):
        wp.device_from_jax("tpu")
    assert wp.get_jax_device() in jax.devices()


def test_old_jax_kernel() -> None:
    with pytest.warns(DeprecationWarning, match=r"warp\.jax_kernel"):
        jax_triple = wp.jax_experimental.jax_kernel(triple_kernel)

    @jax.jit
    def f():
        x = jnp.arange(0, 64, dtype=jnp.float32)
        return jax_triple(x)

    result = f()
    assert isinstance(result, list)
    np.testing.assert_array_equal(result[0], 3.0 * np.arange(64))


def test_old_jax_kernel_with_several_arguments() -> None:
    with pytest.warns(DeprecationWarning, match="jax_kernel"):
        jax_multiarg = wp.jax_experimental.jax_kernel(multiarg_kernel)

    @jax.jit
    def f():
        a = jnp.full(64, 1, dtype=jnp.float32)
        b = jnp.full(64, 2, dtype=jnp.float32)
        c = jnp.full(64, 3, dtype=jnp.float32)
        return jax_multiarg(a, b, c)

    x, y = f()
    np.testing.assert_array_equal(x, np.full(64, 3.0))
    np.testing.assert_array_equal(y, np.full(64, 5.0))


def test_old_jax_kernel_with_launch_dims() -> None:
    N, M, K = 3, 4, 2
    with pytest.warns(DeprecationWarning, match="jax_kernel"):
        jax_matmul = wp.jax_experimental.jax_kernel(matmul_kernel, launch_dims=(N, M))

    @jax.jit
    def f():
        a = jnp.full((N, K), 2, dtype=jnp.float32)
        b = jnp.full((K, M), 3, dtype=jnp.float32)
        # use default launch dims
        return jax_matmul(a, b)

    np.testing.assert_array_equal(f()[0], np.full((3, 4), 12.0))


def test_two_inputs_and_one_output() -> None:
    jax_add = jax_kernel(add_kernel)

    @jax.jit
    def f():
        n = 10
        a = jnp.arange(n, dtype=jnp.int32)
        b = jnp.ones(n, dtype=jnp.int32)
        return jax_add(a, b)

    (result,) = f()
    np.testing.assert_array_equal(result, np.arange(10) + 1)


def test_one_input_and_two_outputs() -> None:
    jax_sincos = jax_kernel(sincos_kernel, num_outputs=2)  # specify multiple outputs

    @jax.jit
    def f():
        a = jnp.linspace(0, 2 * math.pi, 32)
        return jax_sincos(a)

    s, c = f()
    angles = np.linspace(0, 2 * math.pi, 32)
    np.testing.assert_allclose(s, np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(c, np.cos(angles), atol=1e-6)


def test_no_inputs() -> None:
    jax_diagonal = jax_kernel(diagonal_kernel)

    @jax.jit
    def f():
        # launch dimensions determine the output shape
        return jax_diagonal(launch_dims=4)

    (result,) = f()
    np.testing.assert_array_equal(result, np.broadcast_to(np.diag([1.0, 2.0, 3.0]), (4, 3, 3)))


def test_constant_scalar() -> None:
    jax_scale = jax_kernel(scale_kernel)

    @jax.jit
    def f():
        a = jnp.arange(10, dtype=jnp.float32)
        return jax_scale(a, 2.0)  # ok: constant scalar argument

    np.testing.assert_array_equal(f()[0], 2.0 * np.arange(10))


def test_traced_scalar() -> None:
    jax_scale = jax_kernel(scale_kernel)

    @jax.jit
    def f(a, s):
        return jax_scale(a, s)  # ERROR: traced scalar argument

    a = jnp.arange(10, dtype=jnp.float32)
    with pytest.raises(TypeError, match=r"'s'.*traced.*static_argnames"):
        f(a, 2.0)


def test_static_scalar() -> None:
    jax_scale = jax_kernel(scale_kernel)

    # make scalar arguments static
    @partial(jax.jit, static_argnames=["s"])
    def f(a, s):
        return jax_scale(a, s)  # ok: static scalar argument

    a = jnp.arange(10, dtype=jnp.float32)
    np.testing.assert_array_equal(f(a, 2.0)[0], 2.0 * np.arange(10))
    np.testing.assert_array_equal(f(a, 3.0)[0], 3.0 * np.arange(10))


def test_launch_dims_of_a_call() -> None:
    # no need to specify launch dims here
    jax_matmul = jax_kernel(matmul_kernel)

    @jax.jit
    def f():
        N1, M1, K1 = 3, 4, 2
        a1 = jnp.full((N1, K1), 2, dtype=jnp.float32)
        b1 = jnp.full((K1, M1), 3, dtype=jnp.float32)

        # use custom launch dims
        result1 = jax_matmul(a1, b1, launch_dims=(N1, M1))

        N2, M2, K2 = 4, 3, 2
        a2 = jnp.full((N2, K2), 2, dtype=jnp.float32)
        b2 = jnp.full((K2, M2), 3, dtype=jnp.float32)

        # use custom launch dims
        result2 = jax_matmul(a2, b2, launch_dims=(N2, M2))

        return result1, result2

    r1, r2 = f()
    np.testing.assert_array_equal(r1[0], np.full((3, 4), 12.0))
    np.testing.assert_array_equal(r2[0], np.full((4, 3), 12.0))


def test_output_dims() -> None:
    jax_funky = jax_kernel(funky_kernel, num_outputs=2)
    a = jnp.arange(5, dtype=jnp.float32)
    n, m, k = 4, 3, 7

    b, c = jax_funky(a, output_dims=n)
    np.testing.assert_array_equal(b, np.arange(4) + 1.0)
    np.testing.assert_array_equal(c, np.full(4, 4.0))

    b, c = jax_funky(a, output_dims={"b": n, "c": m})
    assert (b.shape, c.shape) == ((4,), (3,))

    b, c = jax_funky(a, launch_dims=k, output_dims={"b": n, "c": m})
    np.testing.assert_array_equal(b, np.arange(4) + 1.0)
    np.testing.assert_array_equal(c, np.full(3, 3.0))

    # Both at construction.
    b, c = jax_kernel(funky_kernel, num_outputs=2, launch_dims=k, output_dims={"b": (k,), "c": [m]})(a)
    np.testing.assert_array_equal(b, np.arange(7) % 5 + 1.0)
    np.testing.assert_array_equal(c, np.full(3, 3.0))


def test_vectors_and_matrices() -> None:
    # The page calls vecmat_kernel itself where it means the operation.
    jax_vecmat = jax_kernel(vecmat_kernel, num_outputs=3)
    n = 10
    a = jnp.arange(n, dtype=jnp.float32)  # scalar array
    b = jnp.arange(3 * n, dtype=jnp.float32).reshape(n, 3)  # vec3 array
    c = jnp.arange(4 * n, dtype=jnp.float32).reshape(n, 2, 2)  # mat22 array
    wanted = np.asarray(a) + np.asarray(b)[:, 2], 2.0 * np.asarray(b), np.asarray(c) @ np.asarray(c)

    def check(results: Any) -> None:
        for found, expected in zip(results, wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)

    check(jax.jit(jax_vecmat)(a, b, c))
    check(jax_vecmat(a, b, c, output_dims=n))
    check(jax_vecmat(a, b, c, output_dims={"d": n, "e": n, "f": n}))
    check(jax_vecmat(a, b, c, output_dims={"d": n, "e": (n, 3), "f": (n, 2, 2)}))
    check(jax_vecmat(a, b, c, output_dims={"d": a.shape, "e": b.shape, "f": c.shape}))


def test_vmap_method() -> None:
    # set default vmap behavior
    jax_callback = jax_kernel(triple_kernel, vmap_method="sequential")

    @jax.jit
    def f(a):
        b = jax.vmap(jax_callback)(a)[0]  # uses "sequential"
        return jax.vmap(partial(jax_callback, vmap_method="expand_dims"))(b)[0]  # uses "expand_dims"

    a = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    np.testing.assert_array_equal(f(a), 9.0 * np.arange(6).reshape(2, 3))


# The Python function to call.
# Note the argument type annotations, just like Warp kernels.
def example_func(
    # inputs
    a: wp.array(dtype=float),
    b: wp.array(dtype=wp.vec2),
    s: float,
    # outputs
    c: wp.array(dtype=float),
    d: wp.array(dtype=wp.vec2),
):
    # launch multiple kernels
    wp.launch(scale_kernel, dim=a.shape, inputs=[a, s], outputs=[c])
    wp.launch(scale_vec_kernel, dim=b.shape, inputs=[b, s], outputs=[d])


def test_annotated_function() -> None:
    jax_func = jax_callable(example_func, num_outputs=2)

    @jax.jit
    def f():
        # inputs
        a = jnp.arange(10, dtype=jnp.float32)
        b = jnp.arange(10, dtype=jnp.float32).reshape((5, 2))  # wp.vec2
        s = 2.0

        # output shapes
        output_dims = {"c": a.shape, "d": b.shape}

        c, d = jax_func(a, b, s, output_dims=output_dims)

        return c, d

    r1, r2 = f()
    np.testing.assert_array_equal(r1, 2.0 * np.arange(10))
    np.testing.assert_array_equal(r2, 2.0 * np.arange(10).reshape(5, 2))
    with pytest.raises(TypeError, match="launch_dims"):
        jax_func(jnp.zeros(2), jnp.zeros((2, 2)), 1.0, launch_dims=2)


# the Python function to call
def warp_func(inputs, outputs, attrs, ctx):
    # input arrays
    a = inputs[0]
    b = inputs[1]

    # scalar attributes
    s = attrs["scale"]

    # output arrays
    c = outputs[0]
    d = outputs[1]

    device = wp.device_from_jax(wp.get_jax_device())
    stream = wp.Stream(device, cuda_stream=ctx.stream)

    with wp.ScopedStream(stream):
        # launch with arrays of scalars
        wp.launch(scale_kernel, dim=a.shape, inputs=[a, s], outputs=[c])

        # launch with arrays of vec2
        # NOTE: the input shapes are from JAX arrays, so we need to strip the inner dimension for vec2 arrays
        wp.launch(scale_vec_kernel, dim=b.shape[0], inputs=[b, s], outputs=[d])


def test_ffi_callback() -> None:
    register_ffi_callback("warp_func", warp_func)

    n = 10

    # inputs
    a = jnp.arange(n, dtype=jnp.float32)
    b = jnp.arange(n, dtype=jnp.float32).reshape((n // 2, 2))  # array of wp.vec2
    s = 2.0

    # set up the call
    out_types = [
        jax.ShapeDtypeStruct(a.shape, jnp.float32),
        jax.ShapeDtypeStruct(b.shape, jnp.float32),  # array of wp.vec2
    ]
    call = jax.ffi.ffi_call("warp_func", out_types)

    # call it
    c, d = call(a, b, scale=s)
    np.testing.assert_array_equal(c, 2.0 * np.arange(10))
    np.testing.assert_array_equal(d, 2.0 * np.arange(10).reshape(5, 2))


def test_dlpack_blocks() -> None:
    jax_array = jnp.arange(4, dtype=jnp.float32)
    np.testing.assert_array_equal(wp.from_dlpack(jax_array).numpy(), np.arange(4))
    warp_array = wp.array([1.0, 2.0], dtype=float)
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(warp_array), [1.0, 2.0])


@pytest.mark.parametrize("name", ["example_jax_kernel", "example_jax_callable", "example_jax_ffi_callback"])
def test_example_modules(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module(f"warp.examples.interop.{name}", run_name="__main__")
    assert "[" in capsys.readouterr().out
