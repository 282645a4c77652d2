"""What operators do with the tensors of a framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import warp as wp
from warp.plugins import Bridge, TensorMemory, derive
from warp.recording import recording


@dataclass(frozen=True, eq=False)
class Tensors:
    """How operators describe, make and copy tensors. All but the bridge may be left out, and then follows from it.

    Frameworks that trace programs with tensors that have no memory give `describe`, `zeros` and `clone`; those that
    allocate better than Warp give the last two.
    """

    bridge: Bridge
    describe: Callable[[Any], tuple[Sequence[Any], Any, Any]] | None = None
    """Return shape, data type and device of a tensor, as `Bridge.read` does."""
    zeros: Callable[[Any, Sequence[Any], Any], Any] | None = None
    """Return a tensor of zeros on the device of another, as `zeros(other, shape, dtype)`."""
    clone: Callable[[Any], Any] | None = None
    """Return a copy of a tensor in memory of its own, row-major without gaps, which no differentiation knows of."""
    prepare: Callable[[Any, int], Any] | None = None
    """Return a tensor whose memory can be read, itself or a copy, as `prepare(tensor, ndim)`.

    The dimensions after the first `ndim`, which are those of one element, are to have no gaps.
    """


class TensorAccess:
    """Describes, makes and wraps tensors as `Tensors` says."""

    def __init__(self, tensors: Tensors) -> None:
        bridge = tensors.bridge
        self.bridge = bridge
        self.types = bridge.tensor_types
        self.describe = tensors.describe or self._described
        self.zeros = tensors.zeros or self._zeros
        self.clone = tensors.clone or self._clone
        self._prepare = tensors.prepare or self._prepared
        functions = derive(bridge)
        self.to_dtype = functions[f"dtype_to_{bridge.name}"]
        self.from_dtype = functions[f"dtype_from_{bridge.name}"]
        self._from_tensor = functions[f"from_{bridge.name}"]
        self._to_tensor = functions[f"to_{bridge.name}"]
        # Nobody else has seen what an operator allocates, and what it reads it does not write.
        private = replace(bridge, gradients=None, on_write=None, version=None)
        self._wrap = derive(private)[f"from_{bridge.name}"]
        self._wrap_read_only = derive(replace(private, read=self._read_only))[f"from_{bridge.name}"]

    def wrap(self, tensor: Any, ndim: int, dtype: Any) -> Any:
        """Return a tensor, or a copy of it, as an array of `ndim` dimensions that no kernel may write."""
        return self._wrap_read_only(self._prepare(tensor, ndim), dtype, False)

    def wrap_writable(self, tensor: Any, dtype: Any) -> Any:
        """Return an array of the memory of a tensor that was made by `zeros` or `clone`."""
        return self._wrap(tensor, dtype, False)

    def _read_only(self, tensor: Any) -> TensorMemory:
        pointer, shape, strides, dtype, device, _, owner = self.bridge.read(tensor)
        return TensorMemory(pointer, shape, strides, dtype, device, False, owner)

    def _described(self, tensor: Any) -> tuple[Sequence[Any], Any, Any]:
        memory = self.bridge.read(tensor)
        return memory.shape, memory.dtype, memory.device

    def _zeros(self, like: Any, shape: Sequence[Any], dtype: Any) -> Any:
        device = self._from_tensor(like, requires_grad=False).device
        return self._to_tensor(wp.zeros(tuple(shape), self.from_dtype(dtype), device), requires_grad=False)

    def _clone(self, tensor: Any) -> Any:
        array = self._from_tensor(tensor, requires_grad=False)
        with recording(None):
            return self._to_tensor(wp.clone(array, requires_grad=False), requires_grad=False)

    def _prepared(self, tensor: Any, ndim: int) -> Any:
        memory = self.bridge.read(tensor)
        step = 1
        for size, stride in zip(reversed(memory.shape[ndim:]), reversed(memory.strides or ()), strict=False):
            if size != 1 and stride != step:
                return self._clone(tensor)
            step *= size
        return tensor
