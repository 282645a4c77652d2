"""What the operators of PyTorch run: an operator of Warp, with arguments and results as their schemas want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from warp.operators import Operator, Parameter, Tensors
from warp_interop_torch.bridge import BRIDGE
from warp_interop_torch.tensors import resolve

_SCHEMA_OF_KIND: Final = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def _clone(tensor: Any) -> Any:
    return tensor.detach().resolve_neg().clone(memory_format=torch.contiguous_format)


TENSORS: Final = Tensors(
    BRIDGE,
    describe=lambda tensor: (tensor.shape, tensor.dtype, tensor.device),
    zeros=lambda like, shape, dtype: like.new_zeros(shape, dtype=dtype),
    clone=_clone,
    prepare=resolve,
)
"""Tensors as PyTorch makes them, also while it traces and they have no memory."""


class Body:
    """The implementations of two operators of PyTorch, forward and adjoint, with and without memory."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.inputs = operator.inputs
        self.results = operator.results
        self.array_places = operator.array_places
        self.schema = [f"{_schema(parameter)} x{place}" for place, parameter in enumerate(self.inputs)]
        """Declarations of the inputs."""
        self._has_tensor_values = any(declared.partition(" ")[0].endswith("[]") for declared in self.schema)

    def flatten(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return arguments as the schema declares them: vectors and matrices given by value as flat lists."""
        if not self._has_tensor_values:
            return values
        return [
            _flat(value) if getattr(parameter.type, "scalar", None) is not None and not parameter.is_array else value
            for parameter, value in zip(self.inputs, values, strict=True)
        ]

    def run(self, *values: Any) -> Any:
        """Return the results: one tensor, or a tuple of several."""
        return _unwrapped(self._operator.run(values))

    def allocate(self, *values: Any) -> Any:
        """Return what `run` would, with any contents; also for tensors without memory."""
        return _unwrapped(self._operator.allocate(values))

    def mask_of(self, values: Sequence[Any], needed: Sequence[bool]) -> int:
        """Return the mask of the inputs that need an adjoint and can have one."""
        return sum(1 << place for place in self.array_places if needed[place] and values[place].is_floating_point())

    def run_adjoint(self, mask: int, *tensors: Any) -> Any:
        """Return the adjoints of the input arrays, of those whose bit in `mask` is not set something empty.

        `tensors` are the inputs, the outputs that `run` gave for them, and the adjoints of those.
        """
        count, number = len(self.inputs), len(self.results)
        values, results, adjoints = tensors[:count], tensors[count : count + number], tensors[count + number :]
        return self._filled(values, self._operator.run_adjoint(values, results, adjoints, self._needed(mask)))

    def allocate_adjoints(self, mask: int, *tensors: Any) -> Any:
        """Return what `run_adjoint` would, with any contents; also for tensors without memory."""
        values = tensors[: len(self.inputs)]
        return self._filled(values, self._operator.allocate_adjoints(values, self._needed(mask)))

    def run_tangent(self, *tensors: Any) -> Any:
        """Return the derivatives of the results. `tensors` are the inputs, and the tangents of the input arrays."""
        count = len(self.inputs)
        values = tensors[:count]
        return _unwrapped(self._operator.run_tangent(values, self._followed(values, tensors[count:])))

    def allocate_tangents(self, *tensors: Any) -> Any:
        """Return what `run_tangent` would, with any contents; also for tensors without memory."""
        return self.allocate(*tensors[: len(self.inputs)])

    def run_adjoint_tangent(self, mask: int, *tensors: Any) -> Any:
        """Return derivatives of the input arrays' adjoints, of those whose bit in `mask` is not set something empty.

        `tensors` are the inputs, the adjoints of the results, and the tangents of the input arrays.
        """
        count, number = len(self.inputs), len(self.inputs) + len(self.results)
        values, adjoints, tangents = tensors[:count], tensors[count:number], tensors[number:]
        followed = self._followed(values, tangents)
        return self._filled(values, self._operator.run_adjoint_tangent(values, adjoints, followed, self._needed(mask)))

    def _followed(self, values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Return for each input its tangent, None for those that have none."""
        given = iter(tangents)
        of_inputs = [next(given) if parameter.is_array else None for parameter in self.inputs]
        return [
            tangent if tangent is not None and value.is_floating_point() else None
            for value, tangent in zip(values, of_inputs, strict=True)
        ]

    def _needed(self, mask: int) -> list[bool]:
        return [bool(mask >> place & 1) for place in range(len(self.inputs))]

    def _filled(self, values: Sequence[Any], found: Sequence[Any]) -> Any:
        return _unwrapped([values[at].new_empty(0) if found[at] is None else found[at] for at in self.array_places])


def _unwrapped(tensors: list[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _schema(parameter: Parameter) -> str:
    if parameter.is_array:
        return "Tensor"
    scalar = getattr(parameter.type, "scalar", None)
    kind = _SCHEMA_OF_KIND[(scalar or parameter.type).kind]
    return f"{kind}[]" if scalar is not None else kind


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "__len__"):
        return [number for part in value for number in _flat(part)]
    return [value]
