"""The operations of the distributed program; modules are imported after JAX has connected the processes."""

from __future__ import annotations

import warp as wp


@wp.kernel
def multiply_by_two_kernel(
    a_in: wp.array(dtype=wp.float32),
    a_out: wp.array(dtype=wp.float32),
):
    index = wp.tid()
    a_out[index] = a_in[index] * 2.0


@wp.kernel
def weighted_square(x: wp.array(dtype=float), weight: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = weight[0] * weight[0] * x[i] * x[i]


jax_warp_multiply = wp.jax_kernel(multiply_by_two_kernel)
jax_warp_square = wp.jax_kernel(weighted_square)
