"""A function of several launches as an operation of JAX: `python -m warp.examples.interop.example_jax_callable`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import warp as wp


@wp.kernel
def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    """Average each value with its neighbours."""
    i = wp.tid()
    n = x.shape[0]
    y[i] = (x[(i + n - 1) % n] + x[i] + x[(i + 1) % n]) / 3.0


def smooth_twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    """Launch a kernel two times, with an array of its own between."""
    between = wp.empty_like(x)
    wp.launch(smooth, dim=x.shape, inputs=[x], outputs=[between])
    wp.launch(smooth, dim=x.shape, inputs=[between], outputs=[y])


jax_smooth = wp.jax_callable(smooth_twice)


def main() -> None:
    """Run it inside jit, and differentiate it."""
    x = jnp.asarray([0.0, 0.0, 9.0, 0.0, 0.0])
    print("smoothed:", jax.jit(jax_smooth)(x)[0])
    print("gradient:", jax.grad(lambda x: jax_smooth(x)[0][0])(x))


if __name__ == "__main__":
    main()
