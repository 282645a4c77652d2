"""The bridge passes the tests that every bridge passes; gradients go through its operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import paddle

import warp as wp
from warp.testing import BridgeConformance, GradientConformance
from warp_interop_paddle import BRIDGE


def optimise(x: Any, kind: Any) -> None:
    """Let an optimiser take a step."""
    x.stop_gradient = False
    x.grad = paddle.ones_like(x)
    kind(learning_rate=0.1, parameters=[x]).step()
    x.stop_gradient = True


def sgd(x: Any, rate: float = 0.0) -> Any:
    return paddle.optimizer.SGD(learning_rate=rate, parameters=[x])


class TestPaddle(BridgeConformance):
    bridge = BRIDGE
    max_dimensions = 4
    writers: ClassVar[Any] = {
        "in place": lambda x: x.add_(paddle.ones_like(x)),
        "an element": lambda x: x.__setitem__(0, 7.0),
        "a view": lambda x: x[1:].zero_(),
        "a detached tensor": lambda x: x.detach().add_(paddle.ones_like(x)),
        "assign": lambda x: paddle.assign(x + 1, x),
        "set_value": lambda x: x.set_value(x + 1),
        "copy_": lambda x: x.copy_(x + 1, True),
        "SGD": lambda x: optimise(x, paddle.optimizer.SGD),
        "Adam": lambda x: optimise(x, paddle.optimizer.Adam),
    }
    layouts: ClassVar[Any] = {
        "transposed": (lambda x: x.t().contiguous().t(), lambda x: x),
        "turned": (lambda x: x.flip(0).t(), lambda x: x[::-1].T),
        "repeated": (lambda x: x[:1].expand([3, -1]), lambda x: np.repeat(x[:1], 3, axis=0)),
        "stacked": (lambda x: paddle.stack([x, -x], axis=-1)[..., 0], lambda x: x),
        "computed": (lambda x: paddle.tanh(2 * x), lambda x: np.tanh(2 * x)),
    }

    def make_tensor(self, values: Any) -> Any:
        array = np.array(values)
        if array.dtype.kind == "u" and array.dtype.itemsize > 1:
            return paddle.utils.dlpack.from_dlpack(array)
        return paddle.to_tensor(array, place=paddle.CPUPlace())

    def values_of(self, tensor: Any) -> Any:
        # `tensor.numpy()` copies; the array shows the memory itself.
        return wp.from_paddle(tensor.detach()).numpy()

    def view(self, tensor: Any, index: Any) -> Any:
        if tensor.dtype in (paddle.dtype.UINT16, paddle.dtype.UINT32, paddle.dtype.UINT64):
            return paddle.utils.dlpack.from_dlpack(self.values_of(tensor)[index])  # Paddle cannot slice these
        return tensor[index]

    def make_operator(self, function: Any, **options: Any) -> Any:
        return wp.paddle_op(function, **options)

    def differentiate(self, run: Callable[..., Any], inputs: Sequence[Any], adjoints: Sequence[Any]) -> Any:
        tensors = [self.make_tensor(values) for values in inputs]
        for tensor in tensors:
            tensor.stop_gradient = False
        results = run(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(y, self.make_tensor(g)) for y, g in zip(results, adjoints, strict=True) if g is not None]
        found = paddle.grad([y for y, _ in pairs], tensors, [g for _, g in pairs])
        return [self.values_of(gradient) for gradient in found]


class TestGradients(GradientConformance):
    bridge = BRIDGE
    clearers: ClassVar[Any] = {
        "to zero": lambda x: sgd(x).clear_grad(),
        "to none": lambda x: sgd(x).clear_grad(set_to_zero=False),
        "of the tensor": lambda x: x.clear_gradient(),
        "of the tensor, to none": lambda x: x.clear_gradient(set_to_zero=False),
        "assigned": lambda x: setattr(x, "grad", None),
    }
    make_tensor = TestPaddle.make_tensor
    values_of = TestPaddle.values_of

    def make_leaf(self, values: Any) -> Any:
        tensor = self.make_tensor(values)
        tensor.stop_gradient = False
        return tensor

    def without_differentiation(self) -> Any:
        return paddle.no_grad()

    def descend(self, tensor: Any, rate: float) -> None:
        sgd(tensor, rate).step()

    def backward(self, result: Any, gradient: Any) -> None:
        paddle.autograd.backward([result], [gradient])
