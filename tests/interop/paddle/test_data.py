"""Paddle's tensors as data of arrays and as values."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def keep(number: float, count: int, vector: wp.vec3, y: wp.array(dtype=float)):
    y[0] = number
    y[1] = float(count)
    y[2] = vector[0] + 10.0 * vector[1] + 100.0 * vector[2]


def test_numbers_are_not_cut_off() -> None:
    y = paddle.zeros([3])
    wp.launch(keep, 1, [paddle.to_tensor(2.5), paddle.to_tensor(3), paddle.to_tensor([1.0, 2.0, 3.0]), y])
    assert y.tolist() == [2.5, 3.0, 321.0]
    with pytest.raises(ArgumentError, match=r"(?s)'count'.*cast it explicitly"):
        wp.launch(keep, 1, [2.5, paddle.to_tensor(3.5), (1.0, 2.0, 3.0), y])


def test_arrays_share_or_convert() -> None:
    tensor = paddle.arange(3, dtype="float32")
    wp.array(tensor, copy=False).fill_(9.0)
    assert tensor.tolist() == [9.0, 9.0, 9.0]
    tensor.stop_gradient = False
    assert wp.array(tensor, dtype=wp.float64).numpy().tolist() == [9.0, 9.0, 9.0]
    assert tensor.grad is None
    bfloat = paddle.to_tensor([1.5, 2.5]).astype("bfloat16")
    np.testing.assert_array_equal(wp.array(bfloat, dtype=float).numpy(), [1.5, 2.5])
    target = wp.zeros(2)
    target.assign(bfloat)
    np.testing.assert_array_equal(target.numpy(), [1.5, 2.5])
