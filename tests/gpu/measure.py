"""Measures saxpy against a copy on the device, launches, graphs, and calls inside JAX. Prints a line of JSON."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.gpu.devices import use

import warp as wp
from warp._src.build import available_compilers

Floats = wp.array(dtype=float)
TURNS = 100


@wp.kernel
def saxpy(a: float, x: Floats, y: Floats):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def increment(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i] + 1.0


@wp.kernel
def touch(x: Floats):
    x[wp.tid()] = 1.0


@wp.kernel
def count_down(turns: wp.array(dtype=int)):
    turns[0] = turns[0] - 1


def milliseconds(run: Callable[[], object], repeats: int) -> float:
    """Return the time that the device takes for one of several runs."""
    run()
    start, end = wp.Event(enable_timing=True), wp.Event(enable_timing=True)
    wp.record_event(start)
    for _ in range(repeats):
        run()
    wp.record_event(end)
    return wp.get_event_elapsed_time(start, end) / repeats


def host_microseconds(run: Callable[[], object], repeats: int) -> float:
    """Return the time that the host takes to queue one of several runs."""
    run()
    wp.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    taken = time.perf_counter() - start
    wp.synchronize()
    return taken / repeats * 1e6


def loop_turn(repeats: int) -> float:
    """Return the microseconds that a turn of a loop with one small kernel takes in a graph."""
    turns = wp.zeros(1, dtype=int)
    with wp.ScopedCapture() as capture:
        turns.fill_(TURNS)
        wp.capture_while(turns, lambda: wp.launch(count_down, 1, inputs=[turns]))
    return milliseconds(lambda: wp.capture_launch(capture.graph), repeats) / TURNS * 1e3


def jax_microseconds(repeats: int) -> dict[str, str]:
    """Return the time of a call inside a compiled function of JAX, by JAX's name of where it ran, if there is JAX."""
    is_there = all(importlib.util.find_spec(name) for name in ("jax", "warp_interop_jax"))
    if not is_there or not available_compilers():
        return {}
    jax = importlib.import_module("jax")
    operation, calls = wp.jax_kernel(increment), 100

    def chain(x: Any) -> Any:
        for _ in range(calls):
            (x,) = operation(x)
        return x

    run, x = jax.jit(chain), jax.numpy.zeros(1)
    for _ in range(3):  # a graph is captured meanwhile
        run(x).block_until_ready()
    start = time.perf_counter()
    for _ in range(repeats):
        result = run(x)
    result.block_until_ready()
    taken = (time.perf_counter() - start) / (calls * repeats)
    return {f"call inside JAX on {jax.default_backend()}": f"{taken * 1e6:.2f} us"}


def main() -> None:
    """Measure everything on the device that the command names."""
    is_real = sys.argv[1] != "stand-in"
    use(sys.argv[1])
    size, repeats = (1 << 26, 20) if is_real else (1 << 12, 2)
    x = wp.full(size, 1.0, dtype=float, requires_grad=True)
    y = wp.full(size, 2.0, dtype=float, requires_grad=True)
    copy = milliseconds(lambda: wp.copy(y, x), repeats) / 2.0  # bytes read and written count alike
    forward = milliseconds(lambda: wp.launch(saxpy, size, inputs=[2.0, x, y]), repeats) / 3.0
    x.grad.zero_()
    adjoint = {"adj_inputs": [None, None], "adj_outputs": [None], "adjoint": True}
    backward = milliseconds(lambda: wp.launch(saxpy, size, inputs=[2.0, x], outputs=[y], **adjoint), repeats) / 3.0
    small = wp.zeros(1, dtype=float)
    launch = host_microseconds(lambda: wp.launch(touch, 1, inputs=[small]), 1000 if is_real else 10)
    command = wp.launch(touch, 1, inputs=[small], record_cmd=True)
    recorded = host_microseconds(command.launch, 1000 if is_real else 10)
    with wp.ScopedCapture() as capture:
        for _ in range(100):
            wp.launch(touch, 1, inputs=[small])
    replay = milliseconds(lambda: wp.capture_launch(capture.graph), repeats) * 10.0
    figures = {
        "copy": f"{4 * size / max(copy, 1e-9) / 1e6:.0f} GB/s",
        "saxpy forward": f"{copy / max(forward, 1e-9):.2f} of a copy",
        "backward": f"{copy / max(backward, 1e-9):.2f} of a copy",
        "launch": f"{launch:.1f} us",
        "recorded launch": f"{recorded:.1f} us",
        "launch in a graph": f"{replay:.2f} us",
        **jax_microseconds(repeats),
    }
    if wp.get_device().driver.driver_version() >= 12040:
        figures["turn of a loop in a graph"] = f"{loop_turn(repeats):.2f} us"
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
