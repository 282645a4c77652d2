"""Run by .ci/run where warp-core and warp-autograd are installed: one gradient through a dynamic loop."""

from __future__ import annotations

import numpy as np

import warp as wp
import warp.autograd


@wp.kernel
def product(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    p = 1.0
    for i in range(n):
        p = p * x[i]
    y[0] = p


x = wp.array([1.0, 2.0, 4.0], dtype=float, requires_grad=True)
y = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(product, dim=1, inputs=[x, 3], outputs=[y])
tape.backward(loss=y)
assert np.array_equal(x.grad.numpy(), [8.0, 4.0, 2.0]), x.grad.numpy()
assert warp.autograd.Tape is wp.Tape
print("warp-autograd", warp.autograd.__version__, "works beside it")
