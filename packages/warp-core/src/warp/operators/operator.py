"""A kernel as an operator on the tensors of a framework, to which only its differentiation must be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import warp as wp
from warp.errors import ArgumentError
from warp.operators.computation import Computation, Dims
from warp.operators.parameters import Parameter, is_differentiable, split_element
from warp.operators.tensors import TensorAccess, Tensors


class Operator:
    """Tensors from tensors, and adjoints of inputs from adjoints of results. It keeps nothing between the two.

    Args:
        tensors: How the framework's tensors are handled.
        function: As for `Computation`, and so is the rest.
    """

    def __init__(
        self,
        tensors: Tensors,
        function: Any,
        num_outputs: int = 1,
        launch_dims: Dims = None,
        output_dims: Dims | Mapping[str, Dims] = None,
        in_out_argnames: Sequence[str] = (),
    ) -> None:
        self.computation = Computation(function, num_outputs, launch_dims, output_dims, in_out_argnames)
        self.name = self.computation.name
        self.inputs = self.computation.inputs
        self.results = self.computation.results
        self.array_places = self.computation.array_places
        """Which of the inputs are arrays."""
        if not self.array_places:
            raise ArgumentError("an operator needs at least one input that is an array")
        self._access = TensorAccess(tensors)
        self._names = [parameter.name for parameter in self.inputs]
        self._value_places = [place for place, parameter in enumerate(self.inputs) if not parameter.is_array]
        self._first = self.array_places[0]
        self._wanted = [self._plain_dtype(self.inputs[place]) for place in self.array_places]

    # ------------------------------------------------------------------ arguments

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Sequence[Any]:
        """Return the arguments of a call in the order of the inputs: tensors for arrays, anything else for values.

        Raises ArgumentError, which names the parameter, for one that does not fit.
        """
        values = self._in_order(args, keywords) if keywords or len(args) != len(self._names) else args
        types = self._access.types
        for place in self.array_places:
            if not isinstance(values[place], types):
                raise ArgumentError(
                    f"{self._what(place)} is {self.inputs[place].type!r} and takes a tensor, "
                    f"got {type(values[place]).__qualname__}"
                )
        for place in self._value_places:
            if isinstance(values[place], types):
                raise ArgumentError(
                    f"{self._what(place)} is given by value, so no gradient could reach a tensor; pass a number"
                )
        return values

    def _in_order(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        values = dict(zip(self._names, args, strict=False))
        unknown = [name for name in keywords if name not in self._names]
        twice = [name for name in keywords if name in values]
        values.update(keywords)
        if unknown or twice or len(args) > len(self._names) or len(values) != len(self._names):
            given = f"{len(args)} positional arguments" + (f" and {', '.join(keywords)}" if keywords else "")
            raise ArgumentError(f"{self.name} takes ({', '.join(self._names)}), but got {given}")
        return [values[name] for name in self._names]

    def _what(self, place: int) -> str:
        return f"{self.name}: parameter '{self._names[place]}'"

    # ------------------------------------------------------------------ forward

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Return the result tensors for bound arguments: changed copies of inputs, then outputs.

        Raises ArgumentError, which names the parameter, for tensors that do not fit.
        """
        described = self._described(values)
        shape = self.computation.launch_shape(values, described[0][0])
        made = self._allocate(values, described)
        results = iter(made)
        inputs = [
            self._wrap_result(parameter, next(results)) if parameter.is_changed else self._wrap(parameter, value)
            for parameter, value in zip(self.inputs, values, strict=True)
        ]
        outputs = [
            self._access.wrap_writable(tensor, self._output_type(parameter, values))
            for parameter, tensor in zip(self.computation.outputs, results, strict=True)
        ]
        self.computation.run(shape, inputs, outputs)
        return made

    def allocate(self, values: Sequence[Any]) -> list[Any]:
        """Return what `run` starts with: copies of the inputs that are changed, and zeros for the outputs."""
        return self._allocate(values, self._described(values))

    def _described(self, values: Sequence[Any]) -> list[tuple[Sequence[Any], Any, Any]]:
        """Return shapes, data types and devices of the input tensors, which fit the parameters and one another."""
        described = [self._access.describe(values[place]) for place in self.array_places]
        first_device = described[0][2]
        for place, wanted, (shape, dtype, device) in zip(self.array_places, self._wanted, described, strict=True):
            parameter = self.inputs[place]
            # Vectors and matrices tell their sizes, generic parameters nothing before.
            if dtype is not wanted or len(shape) != parameter.type.ndim:
                self._check(parameter, shape, dtype)
            if device is not first_device and device != first_device:
                raise ArgumentError(
                    f"{self._what(place)} is on device {device}, '{self._names[self._first]}' on {first_device}"
                )
        return described

    def _allocate(self, values: Sequence[Any], described: Sequence[tuple[Sequence[Any], Any, Any]]) -> list[Any]:
        access = self._access
        made = [access.clone(values[place]) for place in self.array_places if self.inputs[place].is_changed]
        shapes = self.computation.output_shapes(values, described[0][0])
        for parameter, dims in zip(self.computation.outputs, shapes, strict=True):
            dtype = self._output_type(parameter, values)
            inner, scalar = split_element(dtype) if parameter.is_generic else parameter.element
            made.append(access.zeros(values[self._first], (*dims, *inner), access.to_dtype(scalar)))
        return made

    def _plain_dtype(self, parameter: Parameter) -> Any:
        """Return the data type of the tensors that an array parameter of plain scalars takes, None for others."""
        if parameter.is_generic:
            return None
        inner, scalar = parameter.element
        return None if inner else self._access.to_dtype(scalar)

    def _check(self, parameter: Parameter, shape: Sequence[Any], dtype: Any) -> None:
        try:
            if parameter.is_generic:
                self._access.from_dtype(dtype)
                return
            _, wanted = parameter.element
            if dtype != self._access.to_dtype(wanted) and self._access.from_dtype(dtype) is not wanted:
                raise ArgumentError(f"it takes a tensor of {self._access.to_dtype(wanted)}")
        except TypeError as error:
            raise ArgumentError(
                f"{self.name}: parameter '{parameter.name}' is {parameter.type!r}, got a tensor of {dtype}: {error}"
            ) from None
        try:
            parameter.check_shape(shape)
        except ArgumentError as error:
            raise ArgumentError(f"{self.name}: {error}") from None

    # ------------------------------------------------------------------ backward

    def is_differentiable(self, place: int, value: Any) -> bool:
        """Tell whether an input has an adjoint: it is an array of floating-point numbers."""
        return self.inputs[place].is_array and is_differentiable(
            self._access.from_dtype(self._access.describe(value)[1])
        )

    def run_adjoint(
        self, values: Sequence[Any], results: Sequence[Any], adjoints: Sequence[Any], needed: Sequence[bool]
    ) -> list[Any]:
        """Return the adjoints of the inputs as tensors, None for those that are not needed.

        Args:
            values: The arguments of `run`.
            results: What it returned, unchanged since.
            adjoints: Tensors of the adjoints of the results; those of integers are ignored. They are never written.
            needed: Whether each of the inputs, values included, needs one; only those that `is_differentiable`.

        Raises:
            AutogradError: The gradient would be wrong; names the line.
        """
        found = self.allocate_adjoints(values, needed)
        inputs = [self._wrap(parameter, value) for parameter, value in zip(self.inputs, values, strict=True)]
        gradients = [
            None if tensor is None else self._access.wrap_writable(tensor, array.dtype)
            for tensor, array in zip(found, inputs, strict=True)
        ]
        after, seeds = [], []
        for parameter, result, adjoint in zip(self.results, results, adjoints, strict=True):
            array = self._wrap_result(parameter, result, values)
            after.append(array)
            has_adjoint = is_differentiable(array.dtype)
            seeds.append(self._access.wrap(adjoint, array.ndim, array.dtype) if has_adjoint else None)
        self.computation.run_adjoint(self._launch_shape(values), inputs, after, seeds, gradients)
        return found

    def allocate_adjoints(self, values: Sequence[Any], needed: Sequence[bool]) -> list[Any]:
        """Return what `run_adjoint` adds to: zeros like the inputs that need an adjoint, None for the others."""
        found: list[Any] = []
        for value, is_needed in zip(values, needed, strict=True):
            if not is_needed:
                found.append(None)
                continue
            shape, dtype, _ = self._access.describe(value)
            found.append(self._access.zeros(value, shape, dtype))
        return found

    # ------------------------------------------------------------------ forward mode

    def run_tangent(self, values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Return derivatives of the results along a direction of the inputs, as tensors; zeros for integers.

        `tangents` holds a tensor for each of the arguments of `run`, None where the direction is zero.

        Raises:
            AutogradError: An operation has no forward mode; names the line.
        """
        made = self.allocate(values)
        inputs = [self._wrap(parameter, value) for parameter, value in zip(self.inputs, values, strict=True)]
        directions = self._directions(inputs, tangents)
        arrays = [
            self._wrap_result(parameter, tensor, values) for parameter, tensor in zip(self.results, made, strict=True)
        ]
        outputs = arrays[len(self.computation.changed) :]
        found = self.computation.run_tangent(self._launch_shape(values), inputs, outputs, directions)
        for array, tangent in zip(arrays, found, strict=True):
            if tangent is None:
                array.zero_()
            else:
                wp.copy(array, tangent)
        return made

    def run_adjoint_tangent(
        self, values: Sequence[Any], adjoints: Sequence[Any], tangents: Sequence[Any], needed: Sequence[bool]
    ) -> list[Any]:
        """Return derivatives of the inputs' adjoints along a direction of the inputs; None if not needed.

        They are products with second derivatives, from which frameworks make derivatives of `run_adjoint` and of
        `run_tangent`. `adjoints` are as there and stay the same along the direction, `tangents` and `needed` too.

        Raises:
            AutogradError: There is no second derivative; names the line.
        """
        found = self.allocate_adjoints(values, needed)
        inputs = [self._wrap(parameter, value) for parameter, value in zip(self.inputs, values, strict=True)]
        made = [
            self._wrap_result(parameter, tensor, values)
            for parameter, tensor in zip(self.results, self.allocate(values), strict=True)
        ]
        seeds = [
            self._access.wrap(adjoint, array.ndim, array.dtype) if is_differentiable(array.dtype) else None
            for array, adjoint in zip(made, adjoints, strict=True)
        ]
        outputs, directions = made[len(self.computation.changed) :], self._directions(inputs, tangents)
        shape = self._launch_shape(values)
        products = self.computation.run_adjoint_tangent(shape, inputs, outputs, seeds, directions)
        for tensor, array, product in zip(found, inputs, products, strict=True):
            if tensor is not None:
                wp.copy(self._access.wrap_writable(tensor, array.dtype), product)
        return found

    # ------------------------------------------------------------------ arrays

    def _directions(self, inputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        return [
            None if tangent is None else self._access.wrap(tangent, array.ndim, array.dtype)
            for tangent, array in zip(tangents, inputs, strict=True)
        ]

    def _wrap(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_array:
            return parameter.to_warp(value)
        return self._access.wrap(value, parameter.type.ndim, self._element_type(parameter, value))

    def _wrap_result(self, parameter: Parameter, tensor: Any, values: Sequence[Any] = ()) -> Any:
        dtype = self._output_type(parameter, values) if parameter.is_output else self._element_type(parameter, tensor)
        return self._access.wrap_writable(tensor, dtype)

    def _element_type(self, parameter: Parameter, value: Any) -> Any:
        if not parameter.is_generic:
            return parameter.type.dtype
        shape, dtype, _ = self._access.describe(value)
        return parameter.element_type(shape, self._access.from_dtype(dtype))

    def _output_type(self, parameter: Parameter, values: Sequence[Any]) -> Any:
        """Return the element type of an output; where it is generic, that of the first input array."""
        if not parameter.is_generic:
            return parameter.type.dtype
        return self._element_type(self.inputs[self._first], values[self._first])

    def _launch_shape(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return self.computation.launch_shape(values, self._access.describe(values[self._first])[0])
