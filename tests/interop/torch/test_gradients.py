"""Gradients with strides, which PyTorch alone shares; `test_conformance.py` has what every bridge does."""

from __future__ import annotations

import torch

import warp as wp


@wp.kernel
def dot_sum(x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.dot(x[i], x[i]))


def test_a_strided_leaf_has_a_gradient_of_its_shape() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4).t().requires_grad_()
    array = wp.from_torch(x)
    assert array.grad.shape == (4, 3)
    x.grad[1, 2] = 7.0
    assert array.grad.numpy()[1, 2] == 7.0


def test_a_gradient_of_other_strides_is_shared() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(4, 3).requires_grad_()
    x.grad = gradient = torch.ones(3, 4).t()
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        vectors = wp.from_torch(x, dtype=wp.vec3, grad=gradient.contiguous())
        wp.launch(dot_sum, dim=4, inputs=[vectors], outputs=[loss])
    tape.backward(loss)
    assert gradient.tolist() == [[1.0] * 3] * 4
    flat = wp.from_torch(x)
    flat.grad.numpy()[1, 2] = 7.0
    assert x.grad[1, 2] == 7.0
    assert x.grad is gradient
