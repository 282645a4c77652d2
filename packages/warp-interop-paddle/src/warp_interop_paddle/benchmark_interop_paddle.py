"""How long it takes to hand tensors to Warp: `python -m warp.examples.benchmarks.benchmark_interop_paddle`.

Prints milliseconds for a number of iterations, each of which takes two tensors to a launch, and microseconds for
single conversions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import paddle

import warp as wp

_REPEATS = 5


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float) -> None:  # type: ignore[valid-type]  # an annotation of kernels
    """Add a multiple of x to y."""
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def seconds(function: Callable[[], Any], count: int) -> float:
    """Return the time of `count` calls, the shortest of several attempts."""
    function()
    best = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, time.perf_counter() - start)
    return best


def launches(count: int, device: str) -> dict[str, float]:
    """Return milliseconds for `count` launches by how their tensors get there."""
    size = 10
    x = paddle.arange(size, dtype=paddle.float32).to(device=wp.device_to_paddle(device))
    y = paddle.ones_like(x)
    arrays = [wp.from_paddle(x), wp.from_paddle(y)]

    def launch(convert: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: wp.launch(saxpy, dim=size, inputs=[convert(x), convert(y), 1.0], device=device)

    ways: dict[str, Callable[[], Any]] = {
        "from_paddle(...)": launch(wp.from_paddle),
        "from_paddle(..., return_ctype=True)": launch(lambda tensor: wp.from_paddle(tensor, return_ctype=True)),
        "direct from paddle": launch(lambda tensor: tensor),
        "arrays converted once": lambda: wp.launch(saxpy, dim=size, inputs=[*arrays, 1.0], device=device),
    }
    return {name: 1e3 * seconds(way, count) for name, way in ways.items()}


def conversions(count: int, device: str) -> dict[str, float]:
    """Return microseconds for one conversion of each kind."""
    x = paddle.ones([10, 3]).to(device=wp.device_to_paddle(device))
    leaf = paddle.ones_like(x)
    leaf.stop_gradient = False
    array = wp.zeros(10, dtype=wp.vec3, device=device)
    ways: dict[str, Callable[[], Any]] = {
        "from_paddle": lambda: wp.from_paddle(x),
        "from_paddle, vectors": lambda: wp.from_paddle(x, dtype=wp.vec3),
        "from_paddle, with gradient": lambda: wp.from_paddle(leaf),
        "from_paddle, return_ctype": lambda: wp.from_paddle(x, return_ctype=True),
        "to_paddle": lambda: wp.to_paddle(array),
    }
    return {name: 1e6 / count * seconds(way, count) for name, way in ways.items()}


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="iterations of each measurement")
    parser.add_argument("--device", default=str(wp.get_device()), help="device of the tensors")
    options = parser.parse_args()
    print(f"{options.count} launches on {options.device}:")
    for name, milliseconds in launches(options.count, options.device).items():
        print(f"{milliseconds:10.1f} ms  {name}")
    print("one conversion:")
    for name, microseconds in conversions(options.count, options.device).items():
        print(f"{microseconds:10.2f} us  {name}")


if __name__ == "__main__":
    main()
