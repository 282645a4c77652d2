"""Run in a new process by `latency.py`: import, initialise and launch one trivial kernel; print seconds as JSON."""

from __future__ import annotations

import json
import time

import numpy as np

started = time.perf_counter()

import warp as wp  # noqa: E402

wp.config.quiet = True
wp.init()
initialised = time.perf_counter()


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


x = wp.array(np.arange(8.0), dtype=float, device="cpu")
y = wp.zeros(8, dtype=float, device="cpu")
prepared = time.perf_counter()
wp.launch(double, dim=8, inputs=[x, y], device="cpu")
wp.synchronize()
launched = time.perf_counter()
if not np.array_equal(y.numpy(), 2.0 * np.arange(8.0)):
    raise SystemExit("the kernel did not double its input")
print(json.dumps({"import": initialised - started, "first launch": launched - prepared}))
