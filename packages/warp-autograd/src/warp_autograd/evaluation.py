"""Functions and kernels as things that can be run again and again from the same state."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

import warp as wp
from warp.errors import ArgumentError
from warp.recording import RecordedArray, recording
from warp_autograd.arguments import ArgumentCopies, arrays_in
from warp_autograd.components import Components, has_floats
from warp_autograd.metadata import FunctionMetadata, parameter_names
from warp_autograd.tape import Tape
from warp_autograd.variables import Mask, Variable, find_variables, select_pairs

Values = NDArray[np.float64]


class Evaluation(ABC):
    """Something with array inputs and array outputs; every run starts from the same values of all arguments."""

    label: str
    device: Any = None
    inputs: list[Variable]
    """Arrays of the arguments; valid from the start."""
    outputs: list[Variable]
    """Arrays of the results; valid after a run."""

    def run(self) -> None:
        """Run from the initial state."""
        self.run_with(None, 0, 0.0)

    def run_with(self, variable: Variable | None, number: int, value: float) -> float:
        """Run with one number of an input changed; return the number as it was stored."""
        self.restore()
        stored = 0.0 if variable is None else Components(variable.array).set(number, value)
        with recording(None):
            self.call()
        return stored

    def record(self) -> Tape:
        """Run from the initial state and return the tape."""
        self.restore()
        with recording(None):
            tape = Tape()
            with tape:
                self.call()
        return tape

    def pairs(self, mask: Mask | None) -> list[tuple[Variable, Variable]]:
        """Return the pairs of differentiable input and output that a mask selects, after a run.

        Raises ArgumentError if there are none.
        """
        inputs = [variable for variable in self.inputs if is_active(variable.array)]
        outputs = [variable for variable in self.outputs if is_active(variable.array)]
        for kind, found in (("input", inputs), ("output", outputs)):
            if not found:
                raise ArgumentError(
                    f"'{self.label}' has no {kind} that is a floating-point array with requires_grad=True"
                )
        return select_pairs(inputs, outputs, mask)

    def output_values(self, index: int) -> Values:
        """Return the numbers of an output after a run."""
        (found,) = (variable for variable in self.outputs if variable.index == index)
        return Components(found.array).values()

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Put everything back at the end that belongs to the caller."""
        yield

    @abstractmethod
    def describe(self) -> FunctionMetadata:
        """Return labels, strides and dtypes, after a run."""

    @abstractmethod
    def restore(self) -> None:
        """Return to the initial values of all arguments and to gradients of zero."""

    @abstractmethod
    def call(self) -> None:
        """Run on the arguments as they are."""


class KernelEvaluation(Evaluation):
    """Launches of a kernel on copies of its arguments."""

    def __init__(
        self,
        kernel: Any,
        dim: Any,
        arguments: Sequence[Any],
        input_positions: Sequence[int],
        output_positions: Sequence[int],
        device: Any = None,
        max_blocks: int = 0,
        block_dim: int = 256,
        all_gradients: bool = False,
    ) -> None:
        self.label = kernel.key
        self.device = device
        self._kernel = kernel
        self._dim = dim
        self._options: dict[str, Any] = {"max_blocks": max_blocks, "block_dim": block_dim}
        self._copies = ArgumentCopies(arguments, all_gradients)
        names = [name for name, _ in kernel.parameters]
        if len(arguments) != len(names):
            raise ArgumentError(
                f"kernel '{kernel.key}' has {len(names)} parameters ({', '.join(names)}), "
                f"but {len(arguments)} inputs and outputs were given"
            )
        self._names = [[names[position] for position in chosen] for chosen in (input_positions, output_positions)]
        copied = self._copies.arguments
        self._values = [[copied[position] for position in chosen] for chosen in (input_positions, output_positions)]
        self.inputs = find_variables(self._names[0], self._values[0])
        self.outputs = find_variables(self._names[1], self._values[1])

    def describe(self) -> FunctionMetadata:
        """Return labels, strides and dtypes, after a run."""
        made = FunctionMetadata(self.label)
        made.set_inputs(self._names[0], self._values[0])
        made.set_outputs(self._names[1], self._values[1])
        return made

    def restore(self) -> None:
        """Return to the initial values and to gradients of zero."""
        self._copies.restore()

    def call(self) -> None:
        """Run on the arguments as they are."""
        wp.launch(self._kernel, self._dim, inputs=self._copies.arguments, device=self.device, **self._options)


class FunctionEvaluation(Evaluation):
    """Calls of a Python function with the caller's own arrays, which get their values and gradients back."""

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Any] | None) -> None:
        self.label = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._arguments = list(inputs)
        self._given = None if outputs is None else list(outputs)
        self._names = parameter_names(function, len(inputs))
        self.inputs = find_variables(self._names, inputs)
        self.outputs = []
        self._results: list[Any] = []
        arrays = [array for value in (*inputs, *(outputs or ())) for array in arrays_in(value)]
        self._kept = [(array, array.contents.copy()) for array in arrays]
        self._gradients: dict[int, tuple[Any, Any]] = {}
        self._keep_gradients(arrays)

    def describe(self) -> FunctionMetadata:
        """Return labels, strides and dtypes, after a run."""
        made = FunctionMetadata(self.label)
        made.set_inputs(self._names, self._arguments)
        made.set_outputs(self._result_names(), self._results)
        return made

    def restore(self) -> None:
        """Return to the initial values and to gradients of zero."""
        for array, saved in self._kept:
            array.contents.replace(saved)
        for gradient, _ in self._gradients.values():
            gradient.contents.clear()

    def call(self) -> None:
        """Run on the arguments as they are."""
        found = self._function(*self._arguments)
        if found is None and self._given is not None:
            found = self._given
        self._results = list(found) if isinstance(found, (list, tuple)) else [found]
        for result in self._results:
            if not isinstance(result, RecordedArray):
                raise ArgumentError(
                    f"function '{self.label}' must return a warp.array or a sequence of them, "
                    f"got {type(result).__qualname__}; arrays that it only writes go into outputs"
                )
        self.outputs = find_variables(self._result_names(), self._results)

    def record(self) -> Tape:
        """Run from the initial state and return the tape."""
        tape = super().record()
        self._keep_gradients(tape.gradients)
        for gradient, _ in self._gradients.values():
            gradient.contents.clear()
        return tape

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Put values and gradients of the caller's arrays back at the end."""
        try:
            yield
        finally:
            for array, saved in (*self._kept, *self._gradients.values()):
                array.contents.replace(saved)

    def _result_names(self) -> list[str]:
        return [f"output_{number}" for number in range(len(self._results))]

    def _keep_gradients(self, arrays: Any) -> None:
        for array in arrays:
            if array.requires_grad and id(array) not in self._gradients:
                self._gradients[id(array)] = (array.grad, array.grad.contents.copy())


def is_active(array: Any) -> bool:
    """Say whether an array takes part in gradients."""
    return bool(array.requires_grad) and has_floats(array)


def make_evaluation(
    function: Any,
    dim: Any,
    inputs: Sequence[Any] | None,
    outputs: Sequence[Any] | None,
    device: Any,
    max_blocks: int,
    block_dim: int,
) -> Evaluation:
    """Return the evaluation of a kernel or function. ArgumentError names the argument that is missing."""
    if inputs is None:
        raise ArgumentError("inputs is required: the arguments of the kernel or function, in order")
    if not isinstance(function, wp.Kernel):
        if not callable(function):
            raise ArgumentError(f"function must be a kernel or a function, got {type(function).__qualname__}")
        return FunctionEvaluation(function, inputs, outputs)
    for name, value in (("dim", dim), ("outputs", outputs)):
        if value is None:
            raise ArgumentError(f"{name} is required for kernel '{function.key}'")
    arguments = [*inputs, *(outputs or ())]
    positions = range(len(arguments))
    count = len(inputs)
    return KernelEvaluation(
        function, dim, arguments, positions[:count], positions[count:], device, max_blocks, block_dim
    )


def renamed_argument(function: Any, kernel: Any, caller: str) -> Any:
    """Return `function`, or the value of its old name `kernel`, which is deprecated."""
    if kernel is None:
        if function is None:
            raise ArgumentError(f"{caller}: function is required")
        return function
    if function is not None:
        raise ArgumentError(f"{caller}: function and its old name kernel were both given")
    warnings.warn(f"{caller}: use function instead of kernel", DeprecationWarning, stacklevel=3)
    return kernel
