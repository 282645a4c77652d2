"""A check that fails in a kernel is an error of the computation, with the line; a later call runs as if nothing was."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import warp as wp
from warp_interop_jax import frame
from warp_interop_jax.callback import register_callback

wp.set_module_options({"mode": "debug"})


@wp.kernel
def pick(x: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[index[i]]


@wp.kernel
def divide(a: wp.array(dtype=int), b: wp.array(dtype=int), c: wp.array(dtype=int)):
    i = wp.tid()
    c[i] = a[i] // b[i]


x = jnp.arange(3, dtype=jnp.float32)
good, bad = jnp.asarray([2, 0, 1], jnp.int32), jnp.asarray([0, 1, 7], jnp.int32)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_index_out_of_bounds(is_compiled: bool) -> None:
    operation: Any = wp.jax_kernel(pick)
    run = jax.jit(operation) if is_compiled else operation
    for _ in range(2):
        message = r"(?s)INTERNAL.*pick: index 7 is out of bounds for array 'x', which has 3.*x\[index\[i\]\]"
        with pytest.raises(Exception, match=message):
            jax.block_until_ready(run(x, bad))
        np.testing.assert_array_equal(run(x, good)[0], [2.0, 0.0, 1.0])


def test_inside_vmap_and_the_adjoint() -> None:
    operation = wp.jax_kernel(pick)
    with pytest.raises(Exception, match="index 7"):
        jax.block_until_ready(jax.vmap(operation, in_axes=(None, 0))(x, jnp.stack([good, bad])))
    with pytest.raises(Exception, match="index 7"):
        jax.block_until_ready(jax.grad(lambda x: operation(x, bad)[0].sum())(x))


def test_a_division_by_zero_names_the_line() -> None:
    one = jnp.ones(2, jnp.int32)
    with pytest.raises(Exception, match=r"(?s)integer division by zero.*a\[i\] // b\[i\]"):
        jax.block_until_ready(wp.jax_kernel(divide)(one, one - one))


def test_a_refused_handler_is_an_error_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "INTERFACE_VERSION", (99, 0))
    with pytest.raises(wp.errors.WarpError, match="'test_refused'"):
        register_callback("test_refused", lambda *_: None, False)
    monkeypatch.undo()
    np.testing.assert_array_equal(jnp.arange(3) + 1, [1, 2, 3])
    # The name is free again.
    register_callback("test_refused", lambda *_: None, False)
