"""The bridge passes the tests of `warp.testing.BridgeConformance`; run `pytest conformance.py` with it installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import toy
from warp_interop_toy.bridge import BRIDGE

import warp as wp
from warp.testing import BridgeConformance


class TestToyBridge(BridgeConformance):
    bridge = BRIDGE

    def make_tensor(self, values: Any) -> toy.Tensor:
        dtype = wp.dtype_to_toy(wp.dtype_from_numpy(values.dtype))  # type: ignore[attr-defined]  # names of the plugin
        return toy.tensor(values.ravel().tolist(), values.shape, dtype)

    def values_of(self, tensor: toy.Tensor) -> Any:
        kind = wp.dtype_to_numpy(wp.dtype_from_toy(tensor.dtype))  # type: ignore[attr-defined]  # names of the plugin
        return np.array(tensor.elements(), kind).reshape(tensor.shape)

    def make_operator(self, function: Any, **options: Any) -> Callable[..., Any]:
        operator: Callable[..., Any] = wp.toy_op(function, **options)  # type: ignore[attr-defined]  # a name of the plugin
        return operator

    def differentiate(self, run: Callable[..., Any], inputs: Sequence[Any], adjoints: Sequence[Any]) -> list[Any]:
        tensors = [self.make_tensor(values) for values in inputs]
        results = run(*tensors)
        pairs = zip(results if isinstance(results, tuple) else (results,), adjoints, strict=True)
        kept = [(result, self.make_tensor(adjoint)) for result, adjoint in pairs if adjoint is not None]
        gradients = toy.differentiate([y for y, _ in kept], [g for _, g in kept], tensors)
        return [self.values_of(gradient) for gradient in gradients]
