"""What an operator computes: output arrays from inputs, and adjoints of inputs from adjoints of outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import warp as wp
from warp.errors import ArgumentError, AutogradError
from warp.operators.parameters import is_differentiable, parameters_of
from warp.recording import recording

Dims = int | Sequence[int] | Callable[..., Any] | None
"""Dimensions: an int, a sequence of ints, or a function of the operator's arguments that returns one of these."""


class Computation:
    """A kernel, or a function of launches, as a function from arrays to arrays that has an adjoint.

    Args:
        function: A kernel, or a Python function whose parameters are annotated as a kernel's are. The outputs come
            last among its parameters.
        num_outputs: Number of outputs, those in `in_out_argnames` included.
        launch_dims: Threads of the kernel; by default the shape of the first array.
        output_dims: Shape of the output arrays, or shapes by name of the output; by default `launch_dims`.
        in_out_argnames: Inputs that the function changes.

    Raises:
        ArgumentError: The function has parameters that no operator can have.
    """

    def __init__(
        self,
        function: Any,
        num_outputs: int = 1,
        launch_dims: Dims = None,
        output_dims: Dims | Mapping[str, Dims] = None,
        in_out_argnames: Sequence[str] = (),
    ) -> None:
        changed = [in_out_argnames] if isinstance(in_out_argnames, str) else list(in_out_argnames)
        parameters = parameters_of(function, num_outputs, changed)
        self.function = function
        self.name = str(getattr(function, "key", None) or function.__name__)
        self.inputs = tuple(parameter for parameter in parameters if not parameter.is_output)
        """The parameters that a caller passes, arrays and values, in order."""
        self.outputs = tuple(parameter for parameter in parameters if parameter.is_output)
        """The parameters that are allocated."""
        self.changed = tuple(parameter for parameter in self.inputs if parameter.is_changed)
        """The inputs that the function changes."""
        self.results = self.changed + self.outputs
        """The parameters that are returned."""
        self.array_places = tuple(place for place, parameter in enumerate(self.inputs) if parameter.is_array)
        """Which of the inputs are arrays."""
        self._changed_places = tuple(place for place in self.array_places if self.inputs[place].is_changed)
        if isinstance(output_dims, Mapping):
            self._check_names(output_dims)
        self._launch_dims = launch_dims
        self._output_dims = output_dims
        self._is_kernel = isinstance(function, wp.Kernel)
        self._needs_tape = not self._is_kernel

    def _check_names(self, output_dims: Mapping[str, Any]) -> None:
        names = [parameter.name for parameter in self.outputs]
        unknown = ", ".join(repr(name) for name in output_dims if name not in names)
        if unknown:
            raise ArgumentError(f"output_dims: {self.name} has no output {unknown}; there are {', '.join(names)}")

    # ------------------------------------------------------------------ shapes

    def launch_shape(self, values: Sequence[Any], first_shape: Sequence[Any]) -> tuple[Any, ...]:
        """Return the dimensions of the launch for arguments, the first array of which has a shape."""
        if self._launch_dims is None:
            return tuple(first_shape[: self.inputs[self.array_places[0]].type.ndim])
        return _dims(self._launch_dims, values, "launch_dims")

    def output_shapes(self, values: Sequence[Any], first_shape: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the shapes of the output arrays for arguments, the first array of which has a shape."""
        shapes = []
        for parameter in self.outputs:
            given: Any = self._output_dims
            if isinstance(given, Mapping):
                given = given.get(parameter.name)
            dims = self.launch_shape(values, first_shape) if given is None else _dims(given, values, "output_dims")
            if len(dims) != parameter.type.ndim:
                raise ArgumentError(
                    f"{self.name}: output '{parameter.name}' is {parameter.type!r}, but would get the shape "
                    f"{tuple(dims)}; give output_dims"
                )
            shapes.append(dims)
        return shapes

    # ------------------------------------------------------------------ forward and backward

    def run(self, shape: Sequence[int], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the function over a launch shape: it writes the output arrays, and those of the inputs that it changes.

        No tape outside records it.
        """
        if self._is_kernel:
            self._launch(shape, inputs, outputs)
            return
        with recording(None):
            self._call(shape, inputs, outputs)

    def run_adjoint(
        self,
        shape: Sequence[int],
        inputs: Sequence[Any],
        results: Sequence[Any],
        adjoints: Sequence[Any],
        gradients: Sequence[Any],
    ) -> None:
        """Add to gradients of the inputs what the adjoints of the results give.

        Args:
            shape: Dimensions of the launch.
            inputs: Arrays and values as they were before the function ran.
            results: The arrays that it gave: the inputs that it changed, then the outputs.
            adjoints: Those of the results, None for integers. They are read, never written.
            gradients: Arrays of zeros like the inputs, None for those that need no gradient.

        Raises:
            AutogradError: The gradient would be wrong; names the line.
        """
        with recording(None):
            if not self._needs_tape:
                try:
                    self._launch_adjoint(shape, inputs, results, adjoints, gradients)
                    return
                except AutogradError:
                    # The adjoint wants what only a tape keeps, or there is none: then the tape says why.
                    self._needs_tape = True
                    for gradient in gradients:
                        if gradient is not None:
                            gradient.zero_()
            self._replay(shape, inputs, results, adjoints, gradients)

    def run_tangent(
        self, shape: Sequence[int], inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
    ) -> list[Any]:
        """Return derivatives of the results along a direction of the inputs, as new arrays; None for integers.

        Args:
            shape: Dimensions of the launch.
            inputs: Arrays and values; those that the function changes are copied first.
            outputs: The output arrays, which are written.
            tangents: The direction of each input, None where that is zero.

        Raises:
            AutogradError: An operation has no forward mode; names the line.
        """
        results: list[Any] = []
        compute = self._keeping_inputs(shape, outputs, results)
        found = iter(wp.autograd.jvp(compute, inputs=self._apart(inputs), tangents=list(tangents)))
        return [next(found) if is_differentiable(array.dtype) else None for array in results]

    def run_adjoint_tangent(
        self,
        shape: Sequence[int],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        adjoints: Sequence[Any],
        tangents: Sequence[Any],
    ) -> list[Any]:
        """Return derivatives of the inputs' adjoints along a direction of the inputs, as new arrays; else None.

        Args:
            shape: Dimensions of the launch.
            inputs: Arrays and values; those that the function changes are copied first.
            outputs: The output arrays, which are written.
            adjoints: Those of the results, None for integers; they stay the same along the direction.
            tangents: The direction of each input, None where that is zero.

        Raises:
            AutogradError: There is no second derivative; names the line.
        """
        compute = self._keeping_inputs(shape, outputs, [])
        seeds = [adjoint for adjoint in adjoints if adjoint is not None]
        found: list[Any] = wp.autograd.hvp(compute, inputs=self._apart(inputs), tangents=list(tangents), adjoints=seeds)
        return found

    def _apart(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs without two arrays in the same memory, which has but one direction."""
        apart, taken = list(inputs), list[tuple[int, int]]()
        for place in self.array_places:
            low, high = inputs[place].bounds
            if any(low < end and begin < high for begin, end in taken):
                apart[place] = inputs[place].contents.copy()
            taken.append((low, high))
        return apart

    def _keeping_inputs(
        self, shape: Sequence[int], outputs: Sequence[Any], results: list[Any]
    ) -> Callable[..., list[Any]]:
        """Return the function with its results appended to a list, and those of floats as what it returns."""

        def compute(*arrays: Any) -> list[Any]:
            after = list(arrays)
            for place in self._changed_places:
                after[place] = wp.clone(after[place])
                results.append(after[place])
            self._call(shape, after, outputs)
            results.extend(outputs)
            return [array for array in results if is_differentiable(array.dtype)]

        return compute

    def _call(self, shape: Sequence[int], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the function; a tape that is current records it."""
        if self._is_kernel:
            self._launch(shape, inputs, outputs, record_tape=True)
            return
        with wp.ScopedDevice(self._device(inputs, outputs)):
            self.function(*inputs, *outputs)

    def _launch(
        self, shape: Sequence[int], inputs: Sequence[Any], outputs: Sequence[Any], record_tape: bool = False
    ) -> None:
        device = self._device(inputs, outputs)
        wp.launch(self.function, shape, inputs=inputs, outputs=outputs, device=device, record_tape=record_tape)

    def _device(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        return (inputs[self.array_places[0]] if self.array_places else outputs[0]).device

    def _launch_adjoint(
        self,
        shape: Sequence[int],
        inputs: Sequence[Any],
        results: Sequence[Any],
        adjoints: Sequence[Any],
        gradients: Sequence[Any],
    ) -> None:
        """Run the kernel's adjoint on the results of the launch."""
        count = len(self.changed)
        after, into = list(inputs), list(gradients)
        for place, result, adjoint in zip(self._changed_places, results, adjoints, strict=False):
            after[place] = result
            # The adjoint of a changed input is at first that of its value after the launch.
            if adjoint is None:
                continue
            if into[place] is None:
                into[place] = wp.clone(adjoint)
            else:
                wp.copy(into[place], adjoint)
        wp.launch(
            self.function,
            tuple(shape),
            inputs=after,
            outputs=list(results[count:]),
            adj_inputs=into,
            adj_outputs=list(adjoints[count:]),
            adjoint=True,
            device=inputs[self.array_places[0]].device,
        )

    def _replay(
        self,
        shape: Sequence[int],
        inputs: Sequence[Any],
        results: Sequence[Any],
        adjoints: Sequence[Any],
        gradients: Sequence[Any],
    ) -> None:
        """Run the function again on a tape, and the tape backward."""
        made: list[Any] = []
        tape = wp.Tape()
        with tape:
            again = list(inputs)
            for place, gradient in enumerate(gradients):
                if gradient is not None:
                    again[place].grad = gradient
            for place, adjoint in zip(self._changed_places, adjoints, strict=False):
                again[place] = wp.clone(again[place], requires_grad=adjoint is not None)
                made.append(again[place])
            count = len(made)
            for result, adjoint in zip(results[count:], adjoints[count:], strict=True):
                made.append(wp.zeros(result.shape, result.dtype, result.device, requires_grad=adjoint is not None))
            self._call(shape, again, made[count:])
        pairs = zip(made, adjoints, strict=True)
        tape.backward(grads={array: adjoint for array, adjoint in pairs if adjoint is not None})


def _dims(given: Any, values: Sequence[Any], name: str) -> tuple[Any, ...]:
    found = given(*values) if callable(given) else given
    if isinstance(found, (tuple, list)):
        return tuple(found)
    if hasattr(found, "__index__"):  # symbolic integers have it too
        return (found,)
    raise ArgumentError(f"{name} must be an int, a sequence of ints or a function that returns one, got {found!r}")
