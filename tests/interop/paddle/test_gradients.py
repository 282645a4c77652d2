"""Gradients where Paddle has its own ways; `test_conformance.py` has what every bridge does."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import paddle
import pytest

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def square_sum(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


def backward(x: Any) -> None:
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square_sum, dim=x.shape[0], inputs=[x], outputs=[loss])
    tape.backward(loss)


def leaf(values: Any) -> Any:
    tensor = values.detach() if isinstance(values, paddle.Tensor) else paddle.to_tensor(values, dtype="float32")
    tensor.stop_gradient = False
    return tensor


def test_a_strided_leaf_has_a_gradient_of_its_shape() -> None:
    x = leaf(paddle.arange(12, dtype="float32").reshape([3, 4]).t())
    array = wp.from_paddle(x)
    assert array.grad.shape == (4, 3)
    x.grad[1, 2] = 7.0
    assert array.grad.numpy()[1, 2] == 7.0
    (3 * x).sum().backward()
    assert x.grad.numpy()[1, 2] == array.grad.numpy()[1, 2] == 10.0


def test_an_assigned_gradient_is_the_arrays() -> None:
    x = leaf([1.0, 2.0])
    array = wp.from_paddle(x)
    x.grad = paddle.to_tensor([10.0, 20.0])
    backward(array)
    assert x.grad.tolist() == [12.0, 24.0]


def test_a_gradient_that_was_cleared_is_still_memory() -> None:
    x = leaf([1.0, 2.0])
    array = wp.from_paddle(x)
    backward(array)
    gradient = array.grad
    x.grad = None
    gc.collect()
    others = [paddle.full([2], 7.0) for _ in range(8)]
    assert gradient.numpy().tolist() == [2.0, 4.0]
    assert array.grad.numpy().tolist() == [0.0, 0.0]
    assert len(others) == 8


def test_a_gradient_that_paddle_cannot_share_is_refused() -> None:
    array = wp.zeros((3, 4), requires_grad=True).transpose()
    with pytest.raises(ArgumentError, match="row-major"):
        wp.to_paddle(array)
    assert wp.to_paddle(array, requires_grad=False).strides == [1, 4]


def test_empty_and_single_elements() -> None:
    for shape in ((0,), (2, 0), ()):
        array = wp.from_paddle(leaf(np.ones(shape)))
        assert array.grad.shape == array.shape == shape
        assert tuple(wp.to_paddle(wp.zeros(shape, requires_grad=True)).grad.shape) == shape
