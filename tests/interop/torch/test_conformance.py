"""The bridge passes the tests that every bridge passes; gradients go through its operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

import warp as wp
from warp.testing import BridgeConformance, GradientConformance
from warp_interop_torch import BRIDGE


def optimise(x: Any) -> None:
    """Let an optimiser take a step."""
    x.grad = torch.ones_like(x)
    torch.optim.SGD([x], lr=0.1).step()


class TestTorch(BridgeConformance):
    bridge = BRIDGE
    max_dimensions = 4
    writers: ClassVar[Any] = {
        "in place": lambda x: x.add_(1),
        "an element": lambda x: x.__setitem__(0, 7),
        "a view": lambda x: x[1:].zero_(),
        "an optimiser": optimise,
    }
    layouts: ClassVar[Any] = {
        "transposed": (lambda x: x.t().contiguous().t(), lambda x: x),
        "turned": (lambda x: x.flip(0).t(), lambda x: x[::-1].T),
        "repeated": (lambda x: x[:1].expand(3, -1), lambda x: np.repeat(x[:1], 3, axis=0)),
        "stacked": (lambda x: torch.stack([x, -x], dim=-1)[..., 0], lambda x: x),
        "computed": (lambda x: torch.tanh(2 * x), lambda x: np.tanh(2 * x)),
        "negated": (lambda x: -torch.complex(x, x).conj().imag, lambda x: x),
    }

    def make_tensor(self, values: Any) -> Any:
        return torch.from_numpy(np.array(values))

    def values_of(self, tensor: Any) -> Any:
        return tensor.numpy(force=True)

    def make_operator(self, function: Any, **options: Any) -> Any:
        return wp.torch_op(function, **options)

    def differentiate(self, run: Callable[..., Any], inputs: Sequence[Any], adjoints: Sequence[Any]) -> Any:
        tensors = [self.make_tensor(values).requires_grad_() for values in inputs]
        results = run(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(y, self.make_tensor(g)) for y, g in zip(results, adjoints, strict=True) if g is not None]
        found = torch.autograd.grad([y for y, _ in pairs], tensors, [g for _, g in pairs])
        return [self.values_of(gradient) for gradient in found]


class TestGradients(GradientConformance):
    bridge = BRIDGE
    clearers: ClassVar[Any] = {
        "to none": lambda x: torch.optim.SGD([x]).zero_grad(),
        "to zero": lambda x: torch.optim.SGD([x]).zero_grad(set_to_none=False),
        "assigned": lambda x: setattr(x, "grad", None),
    }
    make_tensor = TestTorch.make_tensor
    values_of = TestTorch.values_of

    def make_leaf(self, values: Any) -> Any:
        return self.make_tensor(values).requires_grad_()

    def without_differentiation(self) -> Any:
        return torch.no_grad()

    def descend(self, tensor: Any, rate: float) -> None:
        torch.optim.SGD([tensor], lr=rate).step()


class TestTransforms(TestTorch):
    """The same through `torch.func`."""

    def differentiate(self, run: Callable[..., Any], inputs: Sequence[Any], adjoints: Sequence[Any]) -> Any:
        def differentiable(*tensors: Any) -> Any:
            results = run(*tensors)
            results = results if isinstance(results, tuple) else (results,)
            return tuple(y for y, g in zip(results, adjoints, strict=True) if g is not None)

        _, pull_back = torch.func.vjp(differentiable, *map(self.make_tensor, inputs))
        found = pull_back(tuple(self.make_tensor(g) for g in adjoints if g is not None))
        return [self.values_of(gradient) for gradient in found]
