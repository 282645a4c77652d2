"""Run by .ci/run where warp-core and warp-interop-jax are installed with JAX, but not warp-autograd."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:
    wp.launch(square, dim=x.shape, inputs=[x], outputs=[y])


x = jnp.asarray([1.0, 2.0, 3.0])
assert jax.grad(lambda x: wp.jax_kernel(square)(x)[0].sum())(x).tolist() == [2.0, 4.0, 6.0]
assert wp.from_jax(x).numpy().tolist() == [1.0, 2.0, 3.0]
operation = wp.jax_callable(twice)
assert jax.jit(operation)(x)[0].tolist() == [1.0, 4.0, 9.0]
message = ""
try:
    jax.block_until_ready(jax.grad(lambda x: operation(x)[0].sum())(x))
except Exception as error:  # noqa: BLE001 - JAX has its own class for what a callback raises
    message = str(error)
assert "warp-core[autograd]" in message, message
print("warp-interop-jax works alone")
