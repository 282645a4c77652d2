"""How long it takes to hand tensors to Warp: `python -m warp.examples.benchmarks.benchmark_interop_torch`.

Prints milliseconds for a number of iterations, each of which takes two tensors to a launch, and microseconds for
single conversions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

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
    x = torch.arange(size, dtype=torch.float32, device=wp.device_to_torch(device))
    y = torch.ones_like(x)
    arrays = [wp.from_torch(x), wp.from_torch(y)]

    def launch(convert: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: wp.launch(saxpy, dim=size, inputs=[convert(x), convert(y), 1.0], device=device)

    ways: dict[str, Callable[[], Any]] = {
        "from_torch(...)": launch(wp.from_torch),
        "from_torch(..., return_ctype=True)": launch(lambda tensor: wp.from_torch(tensor, return_ctype=True)),
        "direct from torch": launch(lambda tensor: tensor),
        "arrays converted once": lambda: wp.launch(saxpy, dim=size, inputs=[*arrays, 1.0], device=device),
    }
    return {name: 1e3 * seconds(way, count) for name, way in ways.items()}


def conversions(count: int, device: str) -> dict[str, float]:
    """Return microseconds for one conversion of each kind."""
    x = torch.ones(10, 3, device=wp.device_to_torch(device))
    leaf = torch.ones(10, 3, device=x.device, requires_grad=True)
    array = wp.zeros(10, dtype=wp.vec3, device=device)
    ways: dict[str, Callable[[], Any]] = {
        "from_torch": lambda: wp.from_torch(x),
        "from_torch, vectors": lambda: wp.from_torch(x, dtype=wp.vec3),
        "from_torch, with gradient": lambda: wp.from_torch(leaf),
        "from_torch, return_ctype": lambda: wp.from_torch(x, return_ctype=True),
        "to_torch": lambda: wp.to_torch(array),
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
