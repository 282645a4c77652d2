"""Kernels as operations of JAX: `python -m warp.examples.interop.example_jax_kernel`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), scale: float, y: wp.array(dtype=float)):
    """Multiply squares by a number."""
    i = wp.tid()
    y[i] = scale * x[i] * x[i]


@wp.kernel
def rotate(angle: wp.array(dtype=float), point: wp.array(dtype=wp.vec2), turned: wp.array(dtype=wp.vec2)):
    """Rotate points of the plane."""
    i = wp.tid()
    s = wp.sin(angle[i])
    c = wp.cos(angle[i])
    p = point[i]
    turned[i] = wp.vec2(c * p[0] - s * p[1], s * p[0] + c * p[1])


@wp.kernel
def diagonal(output: wp.array(dtype=wp.mat22)):
    """Make diagonal matrices, from nothing."""
    output[wp.tid()] = wp.mat22(1.0, 0.0, 0.0, 2.0)


@wp.kernel
def accumulate(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    """Add to an array in place."""
    i = wp.tid()
    total[i] += x[i]


jax_square = wp.jax_kernel(square)
jax_rotate = wp.jax_kernel(rotate)
jax_diagonal = wp.jax_kernel(diagonal)
jax_accumulate = wp.jax_kernel(accumulate, in_out_argnames=["total"])


def main() -> None:
    """Run each of them inside jit, and differentiate."""
    x = jnp.arange(4, dtype=jnp.float32)
    print("squares:", jax.jit(lambda x: jax_square(x, 0.5)[0])(x))
    print("gradient:", jax.grad(lambda x: jax_square(x, 0.5)[0].sum())(x))
    points = jnp.stack([jnp.ones(4), jnp.zeros(4)], axis=1)
    print("rotated:", jax.jit(jax_rotate)(x, points)[0])
    print("matrices:", jax.jit(lambda: jax_diagonal(launch_dims=2))()[0])
    print("sums:", jax.jit(jax_accumulate)(x, jnp.ones(4))[0])
    print("batched:", jax.vmap(lambda x: jax_square(x, 1.0)[0])(jnp.stack([x, x + 1.0])))


if __name__ == "__main__":
    main()
