"""The bridge passes `warp.testing.BridgeConformance`, for both kinds of Arrow's data."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from warp_interop_pyarrow.bridge import BRIDGE

import warp as wp
from warp.testing import BridgeConformance


class TestTensors(BridgeConformance):
    bridge = BRIDGE

    def make_tensor(self, values: Any) -> Any:
        return pa.Tensor.from_numpy(np.array(values))

    def values_of(self, tensor: Any) -> Any:
        return tensor.to_numpy()

    def view(self, tensor: Any, index: Any) -> Any:
        return pa.Tensor.from_numpy(tensor.to_numpy()[index])


class TestArrays(BridgeConformance):
    bridge = BRIDGE
    is_writable = False
    max_dimensions: ClassVar[int] = 1

    def make_tensor(self, values: Any) -> Any:
        return pa.array(values)

    def values_of(self, tensor: Any) -> Any:
        return tensor.to_numpy()

    def view(self, tensor: Any, index: Any) -> Any:
        (part,) = index
        return tensor[part.start :] if part.step is None else pa.array(tensor.to_numpy()[index])


def test_slices_are_not_copied() -> None:
    data = pa.array(np.arange(10.0))
    assert wp.from_pyarrow(data[3:]).ptr == wp.from_pyarrow(data).ptr + 24


def test_arrays_without_numbers_are_type_errors() -> None:
    for data in (pa.array([1.0, None]), pa.array(["text"]), pa.array([True])):
        with pytest.raises(TypeError):
            wp.from_pyarrow(data)
