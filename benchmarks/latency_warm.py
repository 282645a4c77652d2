"""Run in a new process by `latency.py`: time launches of compiled kernels and tapes; print seconds as JSON."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections.abc import Callable

import warp as wp

wp.config.quiet = True
wp.init()

SAMPLES = 30
LAUNCHES = 200


@wp.kernel
def one(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = 1.0


@wp.kernel
def four(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float), d: wp.array(dtype=float)):
    i = wp.tid()
    d[i] = a[i] + b[i] + c[i]


@wp.kernel
def ten(
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    c: wp.array(dtype=float),
    d: wp.array(dtype=float),
    e: wp.array(dtype=float),
    f: wp.array(dtype=float),
    g: wp.array(dtype=float),
    h: wp.array(dtype=float),
    k: wp.array(dtype=float),
    m: wp.array(dtype=float),
):
    i = wp.tid()
    m[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + k[i]


@wp.kernel
def scale(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.5 * x[i]


def seconds_per_launch(run: Callable[[], None]) -> float:
    """Return the median time of a launch over samples of many launches."""
    run()
    samples = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            run()
        samples.append((time.perf_counter() - start) / LAUNCHES)
    return statistics.median(samples)


def launch_times() -> dict[str, float]:
    """Time launches of one work item with 1, 4 and 10 arrays."""
    arrays = [wp.zeros(1, dtype=float, device="cpu") for _ in range(10)]
    times = {}
    for kernel, count in ((one, 1), (four, 4), (ten, 10)):
        inputs = arrays[:count]
        name = f"launch, {count} array{'s' if count > 1 else ''}"
        times[name] = seconds_per_launch(lambda k=kernel, v=inputs: wp.launch(k, dim=1, inputs=v, device="cpu"))
    return times


def tape_times() -> dict[str, float]:
    """Time recording and the backward pass of a chain of launches, per launch."""
    chain = [wp.zeros(1, dtype=float, device="cpu", requires_grad=True) for _ in range(LAUNCHES + 1)]
    recording, backward = [], []
    for sample in range(SAMPLES + 1):
        start = time.perf_counter()
        tape = wp.Tape()
        with tape:
            for source, result in itertools.pairwise(chain):
                wp.launch(scale, dim=1, inputs=[source], outputs=[result], device="cpu")
        recorded = time.perf_counter()
        tape.backward(chain[-1])
        finished = time.perf_counter()
        tape.zero()
        if sample:  # the first one compiles
            recording.append((recorded - start) / LAUNCHES)
            backward.append((finished - recorded) / LAUNCHES)
    return {
        "tape, record a launch": statistics.median(recording),
        "tape, backward of a launch": statistics.median(backward),
    }


if __name__ == "__main__":
    print(json.dumps(launch_times() | tape_times()))
