"""Timed by jax_calls.py: microseconds for one call of a kernel inside a jitted `jax.lax.scan`, as JSON."""

from __future__ import annotations

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import warp as wp

COUNT = int(sys.argv[1])


@wp.kernel
def halve(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.5 * x[i]


def callback(x):
    return jax.pure_callback(lambda x: np.float32(0.5) * np.asarray(x), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def measure(way):
    x = jnp.ones(16, dtype=jnp.float32)
    loop = jax.jit(lambda x: jax.lax.scan(lambda carry, _: (way(carry), None), x, None, length=COUNT)[0])
    loop(x).block_until_ready()
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        loop(x).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / COUNT


operation = wp.jax_kernel(halve)
print(json.dumps({"wp.jax_kernel": measure(lambda x: operation(x)[0]), "jax.pure_callback": measure(callback)}))
