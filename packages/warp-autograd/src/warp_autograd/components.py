"""The floating-point numbers in an array, numbered element after element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import warp as wp
from warp.recording import RecordedArray

_NARROW_EPSILON = 2.0**-7
_NARROW_TINY = 2.0**-126


class Components:
    """Read and write the floating-point numbers of an array by number; fields of structs and tensors included."""

    def __init__(self, array: RecordedArray) -> None:
        self.shape = tuple(array.shape)
        self._array = array
        self._values = array.numpy()
        self._is_narrow = _is_narrow(array)
        # NumPy sees the bits of bfloat16: the numbers are held beside them.
        self._leaves = [_numbers(self._values)] if self._is_narrow else list(_float_leaves(self._values))
        ndim = len(self.shape)
        self._widths = [int(np.prod(leaf.shape[ndim:], dtype=int)) for leaf in self._leaves]
        self.per_element = sum(self._widths)
        self.count = int(np.prod(self.shape, dtype=int)) * self.per_element

    def values(self) -> NDArray[np.float64]:
        """Return all numbers as float64."""
        elements = int(np.prod(self.shape, dtype=int))
        parts = [
            leaf.astype(np.float64).reshape(elements, width)
            for leaf, width in zip(self._leaves, self._widths, strict=True)
        ]
        return np.concatenate(parts, axis=1).ravel() if parts else np.zeros(0)

    def get(self, number: int) -> float:
        """Return one number."""
        leaf, place = self._find(number)
        return float(leaf[place])

    def set(self, number: int, value: float) -> float:
        """Write one number and return what was stored, which is rounded to the array's type."""
        leaf, place = self._find(number)
        leaf[place] = value
        self._write_back()
        return float(leaf[place])

    def set_all(self, component: int, value: float) -> None:
        """Write the number at one place of every element."""
        for leaf, width in zip(self._leaves, self._widths, strict=True):
            if component < width:
                inner = np.unravel_index(component, leaf.shape[len(self.shape) :])
                place: Any = (..., *inner)
                leaf[place] = value
                self._write_back()
                return
            component -= width
        raise IndexError(component)

    def _write_back(self) -> None:
        if self._is_narrow:
            self._values[...] = wp.bfloat16.encode_array(self._leaves[0])
            self._leaves[0][...] = _numbers(self._values)  # rounded
        if not self._array.device.is_cpu:
            self._array.contents.replace(self._values)  # what NumPy sees is a copy

    def spacing(self, number: int) -> float:
        """Return the distance from one number to the next larger one of the array's type."""
        leaf, place = self._find(number)
        if self._is_narrow:
            return max(abs(float(leaf[place])), _NARROW_TINY) * _NARROW_EPSILON
        return float(abs(np.spacing(leaf[place])))

    def index(self, number: int) -> tuple[int, ...]:
        """Return the index of the element that a number is part of."""
        return self._index(number // max(self.per_element, 1))

    def component(self, number: int) -> int:
        """Return the place of a number within its element."""
        return number % max(self.per_element, 1)

    def describe(self, number: int) -> str:
        """Return index and, if elements have several numbers, component in words."""
        index = "[" + ", ".join(map(str, self.index(number))) + "]"
        return index if self.per_element == 1 else f"{index}, component {self.component(number)}"

    @property
    def epsilon(self) -> float:
        """Return the relative rounding error of the least precise number."""
        if self._is_narrow:
            return _NARROW_EPSILON
        return max((float(np.finfo(leaf.dtype).eps) for leaf in self._leaves), default=0.0)

    def _find(self, number: int) -> tuple[NDArray[Any], tuple[int, ...]]:
        element, place = divmod(number, self.per_element)
        for leaf, width in zip(self._leaves, self._widths, strict=True):
            if place < width:
                inner = tuple(int(i) for i in np.unravel_index(place, leaf.shape[len(self.shape) :]))
                return leaf, (*self._index(element), *inner)
            place -= width
        raise IndexError(number)

    def _index(self, element: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(element, self.shape))


def has_floats(array: RecordedArray) -> bool:
    """Say whether an array holds floating-point numbers."""
    return _is_narrow(array) or next(_float_leaves(np.empty(0, array.contents.dtype)), None) is not None


def _is_narrow(array: RecordedArray) -> bool:
    return getattr(array.dtype, "scalar", array.dtype) is wp.bfloat16


def _numbers(bits: NDArray[Any]) -> NDArray[Any]:
    return np.array(wp.bfloat16.decode_array(bits))


def _float_leaves(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    if values.dtype.names is not None:
        for name in values.dtype.names:
            yield from _float_leaves(values[name])
    elif values.dtype.kind == "f":
        yield values
