"""Writes that PyTorch does not count; `test_conformance.py` has what every bridge does."""

from __future__ import annotations

import torch

import warp as wp


@wp.kernel
def cube(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


def test_tensors_of_inference_mode_have_no_count():
    with torch.inference_mode():
        t = torch.tensor([0.75, 1.5], dtype=torch.float64)
    y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    x = wp.from_torch(t, requires_grad=False)
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
    tape.backward(grads={y: wp.ones(2, dtype=wp.float64)})
    assert y.numpy().tolist() == [0.75**3, 1.5**3]
