"""How long it takes to hand a framework's tensors to Warp: what the benchmark of every bridge measures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import warp as wp

_REPEATS = 5
_SIZE = 10


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float) -> None:  # type: ignore[valid-type]  # of kernels
    """Add a multiple of x to y."""
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def run_bridge_benchmark(
    bridge: str,
    ones: Callable[[tuple[int, ...], Any], Any],
    require_gradient: Callable[[Any], Any],
    more: Mapping[str, Callable[[], Any]] | None = None,
) -> None:
    """Print how long launches and conversions take, as the command line asks.

    Args:
        bridge: The name of the bridge, as "torch".
        ones: Returns a float32 tensor of a shape on one of the framework's devices.
        require_gradient: Returns a tensor as a leaf that requires a gradient.
        more: Other things to measure, by name.
    """
    parser = argparse.ArgumentParser(description=f"Measure how long it takes to hand tensors of {bridge} to Warp.")
    parser.add_argument("--count", type=int, default=10_000, help="iterations of each measurement")
    parser.add_argument("--device", default=str(wp.get_device()), help="device of the tensors")
    options = parser.parse_args()
    place = getattr(wp, f"device_to_{bridge}")(options.device)

    def make(*shape: int) -> Any:
        return ones(shape, place)

    print(f"{options.count} launches on {options.device}:")
    for name, way in _launches(bridge, make, options.device).items():
        print(f"{1e3 * _seconds(way, options.count):10.1f} ms  {name}")
    print("one of each:")
    array = wp.zeros(_SIZE, dtype=wp.vec3, device=options.device)
    ways = {**_conversions(bridge, make(_SIZE, 3), require_gradient(make(_SIZE, 3)), array), **(more or {})}
    for name, way in ways.items():
        print(f"{1e6 / options.count * _seconds(way, options.count):10.2f} us  {name}")


def _launches(bridge: str, make: Callable[..., Any], device: str) -> dict[str, Callable[[], Any]]:
    """Return launches by how their two tensors get there."""
    x, y = make(_SIZE), make(_SIZE)
    convert = getattr(wp, f"from_{bridge}")
    arrays = [convert(x), convert(y)]

    def launch(convert: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: wp.launch(saxpy, dim=_SIZE, inputs=[convert(x), convert(y), 1.0], device=device)

    return {
        f"from_{bridge}(...)": launch(convert),
        f"from_{bridge}(..., return_ctype=True)": launch(lambda tensor: convert(tensor, return_ctype=True)),
        f"direct from {bridge}": launch(lambda tensor: tensor),
        "arrays converted once": lambda: wp.launch(saxpy, dim=_SIZE, inputs=[*arrays, 1.0], device=device),
    }


def _conversions(bridge: str, x: Any, leaf: Any, array: Any) -> dict[str, Callable[[], Any]]:
    convert, back = getattr(wp, f"from_{bridge}"), getattr(wp, f"to_{bridge}")
    return {
        f"from_{bridge}": lambda: convert(x),
        f"from_{bridge}, vectors": lambda: convert(x, dtype=wp.vec3),
        f"from_{bridge}, with gradient": lambda: convert(leaf),
        f"from_{bridge}, return_ctype": lambda: convert(x, return_ctype=True),
        f"to_{bridge}": lambda: back(array),
        "from_dlpack": lambda: wp.from_dlpack(x),
    }


def _seconds(function: Callable[[], Any], count: int) -> float:
    """Return the time of `count` calls, the shortest of several attempts."""
    function()
    best = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, time.perf_counter() - start)
    return best
