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
    """Arrow's tensors."""

    bridge = BRIDGE

    def make_tensor(self, values: Any) -> Any:
        """Return the values as Arrow's."""
        return pa.Tensor.from_numpy(np.array(values))

    def values_of(self, tensor: Any) -> Any:
        """Return the values as NumPy's."""
        return tensor.to_numpy()

    def view(self, tensor: Any, index: Any) -> Any:
        """Return a part; Arrow's own slices have no steps."""
        return pa.Tensor.from_numpy(tensor.to_numpy()[index])


class TestArrays(BridgeConformance):
    """Arrow's arrays, which have one dimension."""

    bridge = BRIDGE
    is_writable = False
    max_dimensions: ClassVar[int] = 1

    def make_tensor(self, values: Any) -> Any:
        """Return the values as Arrow's."""
        return pa.array(values)

    def values_of(self, tensor: Any) -> Any:
        """Return the values as NumPy's."""
        return tensor.to_numpy()

    def view(self, tensor: Any, index: Any) -> Any:
        """Return a part; Arrow's own slices have no steps."""
        (part,) = index
        return tensor[part.start :] if part.step is None else pa.array(tensor.to_numpy()[index])


def test_slices_are_not_copied() -> None:
    """A slice of an array starts later in the same memory."""
    data = pa.array(np.arange(10.0))
    assert wp.from_pyarrow(data[3:]).ptr == wp.from_pyarrow(data).ptr + 24


def test_arrays_without_numbers_are_type_errors() -> None:
    """Nulls, text and packed booleans are refused."""
    for data in (pa.array([1.0, None]), pa.array(["text"]), pa.array([True])):
        with pytest.raises(TypeError):
            wp.from_pyarrow(data)
