"""Run by .ci/run where only warp-core is installed: launch a kernel, and miss the plugins politely."""

from __future__ import annotations

import numpy as np

import warp as wp


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


x = np.arange(1000, dtype=np.float32)
y = wp.ones(1000, dtype=float)
wp.launch(saxpy, dim=1000, inputs=[2.0, wp.array(x, dtype=float)], outputs=[y])
assert np.array_equal(y.numpy(), 2.0 * x + 1.0)

assert not hasattr(wp, "Tape")
message = ""
try:
    import warp.autograd
except ImportError as error:
    message = str(error)
assert "pip install 'warp-core[autograd]'" in message, message
print("warp-core", wp.__version__, "works alone")
