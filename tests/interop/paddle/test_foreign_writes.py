"""Writes that Paddle does not count; `test_conformance.py` has what every bridge does."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

import warp as wp
from warp.errors import AutogradError


@wp.kernel
def square(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@pytest.mark.parametrize("shape", [(3, 40), (1000,), (2, 3, 4, 5)])
def test_optimisers_are_noticed_in_tensors_of_every_layout(shape):
    t = paddle.full(list(shape), 0.5, dtype="float64")
    n = int(np.prod(shape))
    x = wp.from_paddle(t, requires_grad=True)
    y, z = (wp.zeros(n, dtype=wp.float64, requires_grad=True) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(square, n, inputs=[x.reshape(n), y])
        wp.launch(square, n, inputs=[y, z])
    t.stop_gradient = False
    (t * t).sum().backward()
    paddle.optimizer.Adam(learning_rate=0.1, parameters=[t]).step()
    with pytest.raises(AutogradError, match=r"stale|overwritten off the tape"):
        tape.backward(grads={z: wp.ones(n, dtype=wp.float64)})


def test_tensors_that_are_gone_or_empty_are_no_matter():
    y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    x = wp.from_paddle(paddle.to_tensor([0.75, 1.5], dtype="float64"), requires_grad=False)
    empty = wp.from_paddle(paddle.zeros([0], dtype="float64"), requires_grad=False)
    with wp.Tape() as tape:
        wp.launch(square, 0, inputs=[empty, empty])
        wp.launch(square, 2, inputs=[x, y])
    tape.backward(grads={y: wp.ones(2, dtype=wp.float64)})
    assert y.numpy().tolist() == [0.75**2, 1.5**2]
