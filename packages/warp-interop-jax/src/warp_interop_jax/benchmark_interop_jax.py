"""What it costs to call a kernel inside JAX: `python -m warp.examples.benchmarks.benchmark_interop_jax`.

Prints microseconds for one call inside a jitted `jax.lax.scan`, beside an operation of JAX itself, `jax.pure_callback`
and `warp.jax_callable`; for one call from Python; and for conversions of arrays.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import warp as wp

_REPEATS = 5


@wp.kernel
def halve(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:  # type: ignore[valid-type]  # an annotation of kernels
    """Halve numbers."""
    i = wp.tid()
    y[i] = 0.5 * x[i]


def halve_all(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:  # type: ignore[valid-type]  # as above
    """Halve numbers, by a launch."""
    wp.launch(halve, dim=x.shape, inputs=[x], outputs=[y])


def seconds(function: Callable[[], Any], count: int = 1) -> float:
    """Return the time of `count` calls, the shortest of several attempts."""
    jax.block_until_ready(function())
    best = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        for _ in range(count):
            found = function()
        jax.block_until_ready(found)
        best = min(best, time.perf_counter() - start)
    return best


def ways() -> dict[str, Callable[[Any], Any]]:
    """Return functions of an array that halve it."""
    kernel, function = wp.jax_kernel(halve), wp.jax_callable(halve_all)

    def callback(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda x: np.float32(0.5) * np.asarray(x), shape, x)

    return {
        "jax.numpy": lambda x: 0.5 * x,
        "wp.jax_kernel": lambda x: kernel(x)[0],
        "wp.jax_callable": lambda x: function(x)[0],
        "jax.pure_callback": callback,
    }


def in_a_scan(way: Callable[[Any], Any], size: int, count: int) -> float:
    """Return microseconds for one call of `count` in a jitted scan."""
    x = jnp.ones(size, dtype=jnp.float32)
    loop = jax.jit(lambda x: jax.lax.scan(lambda carry, _: (way(carry), None), x, None, length=count)[0])
    return 1e6 / count * seconds(lambda: loop(x))


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="iterations of each measurement")
    parser.add_argument("--size", type=int, default=16, help="numbers in the array")
    options = parser.parse_args()
    x = jnp.ones(options.size, dtype=jnp.float32)
    print(f"one call inside a jitted scan, {options.size} numbers, on {x.devices()}:")
    for name, way in ways().items():
        print(f"{in_a_scan(way, options.size, options.count):10.2f} us  {name}")
    print("one call of a jitted function:")
    for name, way in ways().items():
        print(f"{1e6 / options.count * seconds(partial(jax.jit(way), x), options.count):10.2f} us  {name}")
    array = wp.zeros(options.size, dtype=float)
    print("one conversion:")
    for name, convert in {"from_jax": lambda: wp.from_jax(x), "to_jax": lambda: wp.to_jax(array)}.items():
        print(f"{1e6 / options.count * seconds(convert, options.count):10.2f} us  {name}")


if __name__ == "__main__":
    main()
