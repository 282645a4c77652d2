"""The bridge passes the tests that every bridge passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

import warp as wp
from warp.testing import BridgeConformance
from warp_interop_paddle import BRIDGE


def tensor_of(values: Any) -> Any:
    array = np.array(values)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        return paddle.utils.dlpack.from_dlpack(array)
    return paddle.to_tensor(array, place=paddle.CPUPlace())


class TestPaddle(BridgeConformance):
    bridge = BRIDGE
    max_dimensions = 4

    def make_tensor(self, values: Any) -> Any:
        return tensor_of(values)

    def values_of(self, tensor: Any) -> Any:
        # `tensor.numpy()` copies; the array shows the memory itself.
        return wp.from_paddle(tensor.detach()).numpy()

    def view(self, tensor: Any, index: Any) -> Any:
        if tensor.dtype in (paddle.dtype.UINT16, paddle.dtype.UINT32, paddle.dtype.UINT64):
            return paddle.utils.dlpack.from_dlpack(self.values_of(tensor)[index])  # Paddle cannot slice these
        return tensor[index]


class TestPaddleOperators(BridgeConformance):
    bridge = BRIDGE
    max_dimensions = 4
    make_tensor = TestPaddle.make_tensor
    values_of = TestPaddle.values_of
    view = TestPaddle.view

    def gradient(self, launch: Callable[[Any, Any], object], values: Any) -> Any:
        kind = wp.dtype_from_numpy(values.dtype)

        def run(x: Any, y: Any) -> None:
            launch(x, y)

        run.__annotations__ = {"x": wp.array(dtype=kind), "y": wp.array(dtype=kind)}
        x = self.make_tensor(values)
        x.stop_gradient = False
        wp.paddle_op(run)(x).sum().backward()
        return self.values_of(x.grad)
