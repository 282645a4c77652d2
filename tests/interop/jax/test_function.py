"""`jax_callable` and `register_ffi_callback`: functions of several launches, their derivatives and their errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError, AutogradError
from warp.jax_experimental.ffi import jax_callable, register_ffi_callback


@wp.kernel
def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    n = x.shape[0]
    y[i] = wp.sin(x[(i + 1) % n]) + x[i] * x[i]


@wp.kernel
def add_to(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] += 2.0 * x[i]


@wp.kernel
def generic_twice(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] + x[i]


def smooth_twice(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    between = wp.zeros_like(x)
    wp.launch(smooth, dim=x.shape, inputs=[x], outputs=[between])
    wp.launch(smooth, dim=x.shape, inputs=[between], outputs=[y])


def change(x: wp.array(dtype=float), y: wp.array(dtype=float), count: int) -> None:
    for _ in range(count):
        wp.launch(add_to, dim=x.shape, inputs=[x], outputs=[y])


def fail(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    raise RuntimeError(f"no answer for {x.shape[0]} numbers: \N{GREEK SMALL LETTER ALPHA}")


def write_input(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    wp.launch(smooth, dim=x.shape, inputs=[y], outputs=[x])


def twice(x: wp.array(dtype=Any), y: wp.array(dtype=Any)) -> None:
    wp.launch(generic_twice, dim=x.shape, inputs=[x], outputs=[y])


def unknown_annotation(x: Missing, y: wp.array(dtype=float)) -> None: ...  # noqa: F821


def unannotated(x, y: wp.array(dtype=float)) -> None: ...


def reference(x: Any) -> Any:
    once = jnp.sin(jnp.roll(x, -1)) + x * x
    return jnp.sin(jnp.roll(once, -1)) + once * once


TYPES = "bool int8 uint8 int16 uint16 int32 uint32 float16 float32 bfloat16 complex64".split()
x = jnp.asarray([0.1, 0.7, -0.4])
jax_smooth = jax_callable(smooth_twice)


def test_it_is_the_same_object_under_every_name() -> None:
    assert wp.jax_callable is jax_callable
    assert wp.jax_kernel is wp.jax_experimental.ffi.jax_kernel


def test_several_launches() -> None:
    for run in (jax_smooth, jax.jit(jax_smooth)):
        found = run(x)
        assert type(found) is list
        np.testing.assert_allclose(found[0], reference(x), rtol=1e-6)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all", "legacy_vectorized"])
def test_batches(method: str) -> None:
    operation = jax_callable(smooth_twice, vmap_method=method)
    batch = jnp.stack([x, 2.0 * x, -x])
    np.testing.assert_allclose(jax.vmap(operation)(batch)[0], jax.vmap(reference)(batch), rtol=1e-5)
    found = jax.vmap(jax.vmap(operation, 1, 1))(jnp.stack([batch, batch + 1.0]).swapaxes(1, 2))[0]
    wanted = jax.vmap(jax.vmap(reference, 1, 1))(jnp.stack([batch, batch + 1.0]).swapaxes(1, 2))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_derivatives() -> None:
    def total(x: Any) -> Any:
        return (jax_smooth(x)[0] ** 2).sum()

    def wanted(x: Any) -> Any:
        return (reference(x) ** 2).sum()

    np.testing.assert_allclose(jax.grad(total)(x), jax.grad(wanted)(x), rtol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.grad(total))(x), jax.grad(wanted)(x), rtol=1e-4)
    for found, right in zip(jax.jvp(total, (x,), (-x,)), jax.jvp(wanted, (x,), (-x,)), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4)
    batch = jnp.stack([x, 2.0 * x])
    np.testing.assert_allclose(jax.vmap(jax.grad(total))(batch), jax.vmap(jax.grad(wanted))(batch), rtol=1e-4)
    np.testing.assert_allclose(
        jax.jacfwd(lambda x: jax_smooth(x)[0])(x), jax.jacrev(reference)(x), rtol=1e-4, atol=1e-6
    )
    with pytest.raises(AutogradError, match="jax_kernel"):
        jax.hessian(total)(x)


def test_changed_inputs_and_values() -> None:
    operation = jax_callable(change, num_outputs=1, in_out_argnames=["y"])
    y = jnp.ones(3)
    for run in (operation, jax.jit(operation, static_argnums=2)):
        np.testing.assert_allclose(run(x, y, 3)[0], 1.0 + 6.0 * np.asarray(x), rtol=1e-6)
    np.testing.assert_array_equal(y, np.ones(3))
    gradients = jax.grad(lambda x, y: operation(x, y, 3)[0].sum(), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(gradients, [[6.0] * 3, [1.0] * 3])
    moved = jax.jvp(lambda x, y: operation(x, y, 2)[0], (x, y), (y, x))[1]
    np.testing.assert_allclose(moved, 4.0 + np.asarray(x), rtol=1e-6)
    batch = jnp.stack([x, -x])
    np.testing.assert_allclose(
        jax.vmap(lambda x: operation(x, y, 1)[0])(batch), 1.0 + 2.0 * np.asarray(batch), rtol=1e-6
    )
    with pytest.raises(ArgumentError, match=r"'count'.*traced"):
        jax.jit(operation)(x, y, 3)


def test_generic_functions() -> None:
    for dtype in (jnp.float16, jnp.int32):
        (found,) = jax_callable(twice)(jnp.arange(3).astype(dtype))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, [0, 2, 4])


def test_local_functions_of_one_name_are_different() -> None:
    def made(factor: float) -> Any:
        def run(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
            wp.copy(y, wp.array(factor * x.numpy(), dtype=float))

        run.__annotations__ = {"x": wp.array(dtype=float), "y": wp.array(dtype=float)}
        return jax_callable(run)

    two, three = made(2.0), made(3.0)
    found = jax.jit(lambda x: (two(x)[0], three(x)[0]))(x)
    np.testing.assert_allclose(found, [2.0 * np.asarray(x), 3.0 * np.asarray(x)], rtol=1e-6)


def test_what_a_function_raises_is_an_error_of_the_computation() -> None:
    with pytest.raises(Exception, match=r"'warp_function'.*RuntimeError: no answer for 3 numbers: \u03b1"):
        jax.block_until_ready(jax.jit(jax_callable(fail))(x))
    np.testing.assert_allclose(jax_smooth(x)[0], reference(x), rtol=1e-6)


def test_inputs_are_read_only() -> None:
    with pytest.raises(Exception, match="read-only"):
        jax.block_until_ready(jax_callable(write_input)(x))
    np.testing.assert_array_equal(x, np.array([0.1, 0.7, -0.4], np.float32))


def test_errors_of_declarations() -> None:
    with pytest.raises(ArgumentError, match="jax_kernel"):
        jax_callable(smooth)
    with pytest.raises(ArgumentError, match="Missing"):
        jax_callable(unknown_annotation)
    with pytest.raises(ArgumentError, match=r"'x'.*annotated"):
        jax_callable(unannotated)


# ---------------------------------------------------------------------------------------------------- callbacks


def test_callbacks_get_buffers_and_attributes() -> None:
    seen: dict[str, Any] = {}

    def callback(inputs: Any, outputs: Any, attrs: Any, ctx: Any) -> None:
        seen.update(attrs, shape=inputs[0].shape, dtype=inputs[0].dtype, device=ctx.device, stream=ctx.stream)
        values = np.asarray(inputs[0])
        seen["writable"] = values.flags.writeable, np.asarray(outputs[0]).flags.writeable
        np.asarray(outputs[0])[...] = values.T

    register_ffi_callback("test_transpose", callback)
    call = jax.ffi.ffi_call("test_transpose", jax.ShapeDtypeStruct((3, 2), jnp.int16), vmap_method="sequential")
    given = {"s": "h\N{LATIN SMALL LETTER E WITH ACUTE}", "flag": True, "i": np.int64(-5), "f": np.float32(0.5)}
    values = jnp.arange(6, dtype=jnp.int16).reshape(2, 3)
    found = jax.jit(lambda x: call(x, **given, numbers=np.arange(3, dtype=np.int32)))(values)
    np.testing.assert_array_equal(found, np.arange(6).reshape(2, 3).T)
    np.testing.assert_array_equal(seen.pop("numbers"), [0, 1, 2])
    assert seen == {
        **given,
        "shape": (2, 3),
        "dtype": np.dtype(np.int16),
        "device": "cpu",
        "stream": None,
        "writable": (False, True),
    }


@pytest.mark.parametrize("dtype", TYPES)
def test_callbacks_of_every_type(dtype: str) -> None:
    def copy(inputs: Any, outputs: Any, attrs: Any, ctx: Any) -> None:
        assert inputs[0].dtype == dtype
        np.asarray(outputs[0])[...] = np.asarray(inputs[0])

    register_ffi_callback(f"test_copy_{dtype}", copy)
    values = jnp.asarray([0, 1, 1, 0]).astype(dtype)
    found = jax.ffi.ffi_call(f"test_copy_{dtype}", jax.ShapeDtypeStruct((4,), dtype))(values)
    np.testing.assert_array_equal(found, values)


def test_callbacks_take_kernels_of_bfloat16() -> None:
    def run(inputs: Any, outputs: Any, attrs: Any, ctx: Any) -> None:
        wp.launch(half_sum, dim=3, inputs=inputs, outputs=outputs)

    register_ffi_callback("test_bfloat16", run)
    values = jnp.asarray([1.0, 2.0, 3.0], jnp.bfloat16)
    found = jax.ffi.ffi_call("test_bfloat16", jax.ShapeDtypeStruct((3,), jnp.bfloat16))(values)
    np.testing.assert_array_equal(found.astype(jnp.float32), [2.0, 4.0, 6.0])


@wp.kernel
def half_sum(x: wp.array(dtype=wp.bfloat16), y: wp.array(dtype=wp.bfloat16)):
    i = wp.tid()
    y[i] = x[i] + x[i]


def test_names_of_callbacks_are_taken_once() -> None:
    register_ffi_callback("test_name", lambda inputs, outputs, attrs, ctx: None)
    with pytest.raises(ArgumentError, match="'test_name'"):
        register_ffi_callback("test_name", lambda inputs, outputs, attrs, ctx: None)
    with pytest.raises(ArgumentError, match="function"):
        register_ffi_callback("test_other", 3)


def test_a_tape_around_a_call_sees_nothing_of_it() -> None:
    with wp.Tape() as tape:
        jax.block_until_ready(jax_smooth(x))
    assert not tape.events
