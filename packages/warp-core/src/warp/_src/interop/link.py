"""What keeps an array and a foreign tensor of the same memory in step."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from warp._src.array.array import array
from warp.plugins import Bridge


class Link:
    """Shares the gradient of a tensor with an array, whoever replaces it, and reports writes.

    Frameworks drop gradients to clear them (`zero_grad(set_to_none=True)`); the tensor then gets a new one of zeros as
    soon as the array's is used.
    """

    __slots__ = ("_bridge", "_convert", "_dtype", "_shares_gradient", "_source", "_tensor", "_wrapped")

    def __init__(
        self, bridge: Bridge, tensor: Any, convert: Callable[..., array], dtype: Any, shares_gradient: bool
    ) -> None:
        self._bridge = bridge
        self._tensor = weakref.ref(tensor)
        self._convert = convert
        self._dtype = dtype
        self._shares_gradient = shares_gradient
        self._wrapped: array | None = None
        self._source: object = None

    def covers(self, shares_gradient: bool) -> bool:
        """Tell whether the tensor is still there, and shares its gradient if that is asked for."""
        return self._tensor() is not None and (self._shares_gradient or not shares_gradient)

    def gradient(self) -> object:
        """Return the gradient that the tensor has now; None if the tensor is gone or shares no gradient."""
        gradients = self._bridge.gradients
        tensor = self._tensor() if self._shares_gradient else None
        if tensor is None or gradients is None:
            return None
        found: object = gradients.get(tensor)
        if found is None:
            gradients.attach(tensor, gradients.new(tensor))
            found = gradients.get(tensor)
        return found

    def wrap(self, gradient: Any) -> array:
        """Return the tensor's gradient as an array."""
        self._wrapped, self._source = self._convert(gradient, self._dtype, requires_grad=False), gradient
        return self._wrapped

    def adopt(self, gradient: array, source: object) -> None:
        """Take the array of a gradient that the tensor was just given."""
        self._wrapped, self._source = gradient, source

    def source_of(self, gradient: array) -> object:
        """Return the tensor's gradient if that is what was assigned as the array's; else share gradients no more."""
        self._shares_gradient = gradient is self._wrapped
        return self._source if self._shares_gradient else None

    def note_write(self) -> None:
        """Tell the framework that the tensor was written."""
        tensor = self._tensor() if self._bridge.on_write is not None else None
        if tensor is not None and self._bridge.on_write is not None:
            self._bridge.on_write(tensor)
