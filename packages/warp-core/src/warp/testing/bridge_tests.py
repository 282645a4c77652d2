"""What all tests of bridges know about the framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from warp.plugins import Bridge, derive


class BridgeTests(ABC):
    """Makes and reads tensors of a framework, and calls the functions that follow from its bridge."""

    bridge: ClassVar[Bridge]

    @abstractmethod
    def make_tensor(self, values: Any) -> Any:
        """Return a new tensor of the framework with the type, shape and values of a NumPy array."""

    @abstractmethod
    def values_of(self, tensor: Any) -> Any:
        """Return the values of a tensor as a NumPy array."""

    def view(self, tensor: Any, index: Any) -> Any:
        """Return a view of a tensor: what `tensor[index]` gives; override it where that makes a copy."""
        return tensor[index]

    def _call(self, prefix: str, *arguments: Any, **options: Any) -> Any:
        return derive(self.bridge)[f"{prefix}_{self.bridge.name}"](*arguments, **options)

    def _from(self, tensor: Any, **options: Any) -> Any:
        return self._call("from", tensor, **options)

    def _to(self, a: Any, **options: Any) -> Any:
        return self._call("to", a, **options)
