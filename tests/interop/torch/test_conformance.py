"""The bridge passes the tests that every bridge passes; gradients go through an operator made of the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import warp as wp
from warp.testing import BridgeConformance
from warp_interop_torch import BRIDGE


class TestTorch(BridgeConformance):
    bridge = BRIDGE
    max_dimensions = 4

    def make_tensor(self, values: Any) -> Any:
        return torch.from_numpy(np.array(values))

    def values_of(self, tensor: Any) -> Any:
        return tensor.numpy(force=True)


class TestTorchOperators(BridgeConformance):
    bridge = BRIDGE
    make_tensor = TestTorch.make_tensor
    values_of = TestTorch.values_of

    def gradient(self, launch: Callable[[Any, Any], object], values: Any) -> Any:
        kind = wp.dtype_from_numpy(values.dtype)

        def run(x: wp.array(dtype=kind), y: wp.array(dtype=kind)) -> None:
            launch(x, y)

        run.__annotations__ = {"x": wp.array(dtype=kind), "y": wp.array(dtype=kind)}
        x = self.make_tensor(values).requires_grad_()
        wp.torch_op(run)(x).sum().backward()
        return self.values_of(x.grad)
