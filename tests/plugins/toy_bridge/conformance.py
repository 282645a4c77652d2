"""The bridge passes the tests of `warp.testing.BridgeConformance`; run `pytest conformance.py` with it installed."""

from __future__ import annotations

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
