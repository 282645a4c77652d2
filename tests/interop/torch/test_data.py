"""Tensors as data of arrays and as values: shared where that is asked for, and never half converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import warp as wp
from warp.errors import ArgumentError


def test_without_copy_the_memory_is_shared_and_writes_are_seen() -> None:
    tensor = torch.zeros(3)
    a = wp.array(tensor, copy=False)
    before = tensor._version
    a.fill_(2.0)
    assert tensor.tolist() == [2.0, 2.0, 2.0] and tensor._version > before
    before = tensor._version
    wp.array(a, copy=False).fill_(3.0)
    assert tensor.tolist() == [3.0, 3.0, 3.0] and tensor._version > before


def test_autograd_refuses_what_was_overwritten_through_an_array() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    wp.array(y.detach(), copy=False).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool]
)
@pytest.mark.parametrize("wanted", [wp.float32, wp.float64, wp.bfloat16])
def test_values_are_copied_and_converted(dtype: Any, wanted: Any) -> None:
    tensor = torch.tensor([[1.0, 0.0], [1.0, 1.0]]).to(dtype)
    for source in (tensor, tensor.t()):
        made = wp.array(source, dtype=wanted)
        assert np.array_equal(wp.to_torch(made).double().numpy(), source.double().numpy())
        target = wp.zeros((2, 2), dtype=wanted)
        target.assign(source)
        assert np.array_equal(wp.to_torch(target).double().numpy(), source.double().numpy())


def test_leaves_are_read_without_getting_a_gradient() -> None:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    assert wp.array(leaf).numpy().tolist() == [1.0, 2.0]
    wp.zeros(2).assign(leaf)
    assert leaf.grad is None


def test_tensors_are_values_of_vectors_and_numbers() -> None:
    y = torch.zeros(2)
    wp.launch(keep, 1, [torch.tensor(2.5), torch.tensor([1.0, 2.0, 3.0]), y])
    assert y.tolist() == [2.5, 321.0]
    with pytest.raises(ArgumentError, match=r"'vector' is vec3f.*requires grad"):
        wp.launch(keep, 1, [2.5, torch.ones(3, requires_grad=True), y])


@wp.kernel
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


def test_a_gradient_whose_elements_share_memory_is_not_added_to() -> None:
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    leaf.grad = torch.zeros(1).expand(3)
    x, y = wp.from_torch(leaf), wp.zeros(3, requires_grad=True)
    with pytest.raises(ArgumentError, match="has elements that share memory"), wp.Tape():
        wp.launch(cube, 3, inputs=[x], outputs=[y])
    assert leaf.grad.tolist() == [0.0, 0.0, 0.0]
    leaf.grad = leaf.grad.clone()
    with wp.Tape() as tape:
        wp.launch(cube, 3, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones(3)})
    assert leaf.grad.tolist() == [3.0, 12.0, 27.0]


@wp.kernel
def keep(number: float, vector: wp.vec3, y: wp.array(dtype=float)):
    y[0] = number
    y[1] = vector[0] + 10.0 * vector[1] + 100.0 * vector[2]
