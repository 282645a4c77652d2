"""What is known of a function's arguments without running it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from warp_autograd.variables import find_variables


@dataclass
class FunctionMetadata:
    """Labels, strides in bytes and dtypes of the inputs and outputs of a kernel or function.

    The lists are indexed as the keys of Jacobians are; strides and dtypes are None for what is no array.
    """

    key: str | None = None
    input_labels: list[str] = field(default_factory=list)
    output_labels: list[str] = field(default_factory=list)
    input_strides: list[tuple[int, ...] | None] = field(default_factory=list)
    output_strides: list[tuple[int, ...] | None] = field(default_factory=list)
    input_dtypes: list[Any] = field(default_factory=list)
    output_dtypes: list[Any] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Say whether there are no labels yet."""
        return not self.input_labels and not self.output_labels

    def input_is_array(self, index: int) -> bool:
        """Say whether an input is an array."""
        return self.input_dtypes[index] is not None

    def output_is_array(self, index: int) -> bool:
        """Say whether an output is an array."""
        return self.output_dtypes[index] is not None

    @staticmethod
    def from_kernel(kernel: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> FunctionMetadata:
        """Describe the arguments of a kernel; outputs follow the inputs in its parameters."""
        made = FunctionMetadata()
        made.update_from_kernel(kernel, inputs, outputs)
        return made

    @staticmethod
    def from_function(
        function: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Any] | None = None
    ) -> FunctionMetadata:
        """Describe arguments and results of a Python function."""
        made = FunctionMetadata()
        made.update_from_function(function, inputs, outputs)
        return made

    def update_from_kernel(self, kernel: Any, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> None:
        """Replace everything by the description of a kernel's arguments."""
        names = [name for name, _ in kernel.parameters]
        self.key = kernel.key
        self.set_inputs(names[: len(inputs)], inputs)
        self.set_outputs(names[len(inputs) :], outputs)

    def update_from_function(
        self, function: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Any] | None = None
    ) -> None:
        """Replace everything by the description of a Python function's arguments and results."""
        self.key = getattr(function, "__name__", type(function).__name__)
        self.set_inputs(parameter_names(function, len(inputs)), inputs)
        results = list(outputs or ())
        self.set_outputs([f"output_{number}" for number in range(len(results))], results)

    def set_inputs(self, labels: Sequence[str], inputs: Sequence[Any]) -> None:
        """Describe the inputs."""
        self.input_labels, self.input_strides, self.input_dtypes = _described(labels, inputs)

    def set_outputs(self, labels: Sequence[str], outputs: Sequence[Any]) -> None:
        """Describe the outputs."""
        self.output_labels, self.output_strides, self.output_dtypes = _described(labels, outputs)


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return names for the first `count` positional arguments of a function."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = {}.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in kinds][:count]
    return names + [f"input_{number}" for number in range(len(names), count)]


def _described(
    labels: Sequence[str], values: Sequence[Any]
) -> tuple[list[str], list[tuple[int, ...] | None], list[Any]]:
    variables = find_variables(labels, values)
    count = max([len(values), *(variable.index + 1 for variable in variables)])
    names = [*labels[: len(values)], *[""] * (count - len(values))]
    strides: list[tuple[int, ...] | None] = [None] * count
    dtypes: list[Any] = [None] * count
    for variable in variables:
        names[variable.index] = variable.label
        strides[variable.index] = tuple(variable.array.strides)
        dtypes[variable.index] = variable.array.dtype
    return names, strides, dtypes
