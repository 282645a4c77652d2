"""What an operator computes: outputs from inputs, and adjoints of inputs from adjoints of outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

import warp as wp
from warp.errors import ArgumentError, AutogradError
from warp.recording import current_recorder, recording
from warp_interop_torch.convert import device_from_torch, from_torch, from_torch_read_only
from warp_interop_torch.parameters import Parameter, element, is_concrete, torch_dtype
from warp_interop_torch.tensors import resolve

Dims = int | Sequence[int] | Callable[..., Any] | None


class Body:
    """A kernel, or a function of launches, that is run on tensors."""

    def __init__(
        self,
        function: Any,
        parameters: tuple[Parameter, ...],
        launch_dims: Dims,
        output_dims: Dims | Mapping[str, Dims],
    ) -> None:
        self.function = function
        self.name = str(getattr(function, "key", None) or function.__name__)
        self.inputs = tuple(parameter for parameter in parameters if parameter.is_input)
        self.outputs = tuple(parameter for parameter in parameters if parameter.is_output)
        self.changed = tuple(parameter for parameter in self.inputs if parameter.is_changed)
        self.results = self.changed + self.outputs
        self._array_places = tuple(place for place, parameter in enumerate(self.inputs) if parameter.is_array)
        self._first_place = self._array_places[0]
        self._launch_dims = launch_dims
        self._output_dims = output_dims
        self._is_kernel = isinstance(function, wp.Kernel)
        self._needs_tape = not self._is_kernel

    # ------------------------------------------------------------------ forward

    def run(self, *values: Any) -> Any:
        """Return the outputs, those in place of changed inputs first: one tensor, or a tuple of several."""
        made = self.allocate(values)
        changed = iter(made)
        arguments = [
            _wrap_writable(parameter, next(changed)) if parameter.is_changed else _wrap(parameter, value)
            for parameter, value in zip(self.inputs, values, strict=True)
        ]
        outputs = [
            from_torch(tensor, dtype=self._element_type(parameter, values), requires_grad=False)
            for parameter, tensor in zip(self.outputs, changed, strict=True)
        ]
        if current_recorder() is None:
            self._call(values, arguments, outputs)
        else:
            with recording(None):
                self._call(values, arguments, outputs)
        return made[0] if len(made) == 1 else tuple(made)

    def allocate(self, values: Sequence[Any]) -> list[Any]:
        """Return copies of the inputs that are changed, and zeros for the outputs; also for tensors without memory."""
        first = values[self._first_place]
        made = []
        for place in self._array_places:
            parameter, value = self.inputs[place], values[place]
            parameter.check(value)
            if value.device != first.device:
                raise ArgumentError(
                    f"{self.name}: parameter '{parameter.name}' is on device {value.device}, another on {first.device}"
                )
            if parameter.is_changed:
                made.append(value.detach().clone(memory_format=torch.contiguous_format))
        for parameter in self.outputs:
            inner, scalar = element(self._element_type(parameter, values))
            dims = self._dims_of_output(parameter, values)
            made.append(first.new_zeros((*dims, *inner), dtype=torch_dtype(scalar)))
        return made

    def allocate_results(self, *values: Any) -> Any:
        """Return what `run` would, with any contents."""
        made = self.allocate(values)
        return made[0] if len(made) == 1 else tuple(made)

    def _call(self, values: Sequence[Any], inputs: list[Any], outputs: list[Any]) -> None:
        device = device_from_torch(values[self._first_place].device)
        if self._is_kernel:
            wp.launch(self.function, self._dims_of_launch(values), inputs=inputs, outputs=outputs, device=device)
            return
        with wp.ScopedDevice(device):
            self.function(*inputs, *outputs)

    # ------------------------------------------------------------------ backward

    def run_adjoint(self, mask: int, *tensors: Any) -> Any:
        """Return the adjoints of the input arrays, of those whose bit in `mask` is not set something empty.

        `tensors` are the inputs, the outputs that `run` gave for them, and the adjoints of those.
        """
        count = len(self.inputs)
        values, rest = tensors[:count], tensors[count:]
        results, adjoints = rest[: len(self.results)], rest[len(self.results) :]
        found = self._zeros(mask, values)
        if not self._needs_tape:
            try:
                self._launch_adjoint(found, values, results, adjoints)
                return self._as_results(mask, values, found)
            except AutogradError:
                # The adjoint wants what only a tape keeps, or there is none: then the tape says why.
                self._needs_tape = True
                found = self._zeros(mask, values)
        self._replay(found, values, adjoints)
        return self._as_results(mask, values, found)

    def allocate_adjoints(self, mask: int, *tensors: Any) -> Any:
        """Return what `run_adjoint` would, with any contents."""
        values = tensors[: len(self.inputs)]
        return self._as_results(mask, values, self._zeros(mask, values))

    def _zeros(self, mask: int, values: Sequence[Any]) -> dict[str, Any]:
        """Return zeros for the adjoints of the inputs in a mask, by name."""
        return {
            self.inputs[place].name: value.new_zeros(value.shape)
            for place, value in self._differentiated(values)
            if mask >> place & 1
        }

    def _as_results(self, mask: int, values: Sequence[Any], found: Mapping[str, Any]) -> Any:
        results = [
            found[self.inputs[place].name] if mask >> place & 1 else values[place].new_empty(0)
            for place in self._array_places
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def mask_of(self, values: Sequence[Any], needed: Sequence[bool]) -> int:
        """Return the mask of the inputs that need an adjoint and can have one."""
        return sum(1 << place for place, _ in self._differentiated(values) if needed[place])

    def _differentiated(self, values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the place and value of the inputs that have adjoints."""
        for place in self._array_places:
            if values[place].is_floating_point():
                yield place, values[place]

    def _launch_adjoint(
        self, found: Mapping[str, Any], values: Sequence[Any], results: Sequence[Any], adjoints: Sequence[Any]
    ) -> None:
        """Run the kernel's adjoint on the results of the launch, adding to the adjoints in `found`."""
        inputs, gradients = [], []
        after = {parameter.name: pair for parameter, pair in zip(self.results, zip(results, adjoints), strict=True)}  # noqa: B905
        for parameter, value in zip(self.inputs, values, strict=True):
            gradient = found.get(parameter.name)
            if parameter.is_changed:
                value, adjoint = after[parameter.name]
                gradient = _seed(gradient, adjoint, value)
            wrap = _wrap_writable if parameter.is_changed else _wrap
            inputs.append(wrap(parameter, value))
            gradients.append(None if gradient is None else _wrap_writable(parameter, gradient))
        outputs, seeds = [], []
        for parameter in self.outputs:
            value, adjoint = after[parameter.name]
            dtype = self._element_type(parameter, values)
            outputs.append(_wrap_as(dtype, parameter, value))
            seeds.append(_wrap_as(dtype, parameter, adjoint) if value.is_floating_point() else None)
        wp.launch(
            self.function,
            self._dims_of_launch(values),
            inputs=inputs,
            outputs=outputs,
            adj_inputs=gradients,
            adj_outputs=seeds,
            adjoint=True,
            device=device_from_torch(values[self._first_place].device),
        )

    def _replay(self, found: Mapping[str, Any], values: Sequence[Any], adjoints: Sequence[Any]) -> None:
        """Run the function again on a tape, and the tape backward, adding to the adjoints in `found`."""
        seeds: dict[Any, Any] = {}
        with recording(None):
            tape = wp.Tape()
            with tape:
                inputs = []
                for parameter, value in zip(self.inputs, values, strict=True):
                    array = _wrap(parameter, value)
                    if parameter.name in found:
                        array.grad = _wrap_writable(parameter, found[parameter.name])
                    if parameter.is_changed:
                        array = wp.clone(array, requires_grad=value.is_floating_point())
                        seeds[array] = adjoints[len(seeds)]
                    inputs.append(array)
                outputs = []
                for parameter, adjoint in zip(self.outputs, adjoints[len(self.changed) :], strict=True):
                    dtype = self._element_type(parameter, values)
                    made = adjoint.new_zeros(adjoint.shape, dtype=torch_dtype(element(dtype)[1]))
                    outputs.append(from_torch(made, dtype=dtype, requires_grad=made.is_floating_point()))
                    seeds[outputs[-1]] = adjoint
                self._call(values, inputs, outputs)
            grads = {
                array: from_torch(resolve(adjoint, array.ndim), dtype=array.dtype, requires_grad=False)
                for array, adjoint in seeds.items()
                if array.requires_grad
            }
            tape.backward(grads=grads)

    # ------------------------------------------------------------------ types and shapes

    def _element_type(self, parameter: Parameter, values: Sequence[Any]) -> Any:
        """Return the element type of an output; where it is generic, that of the first input array."""
        if is_concrete(parameter.type.dtype):
            return parameter.type.dtype
        return self.inputs[self._first_place].element_type(values[self._first_place])

    def _dims_of_launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        if self._launch_dims is None:
            return tuple(values[self._first_place].shape[: self.inputs[self._first_place].type.ndim])
        return _dims(self._launch_dims, values, "launch_dims")

    def _dims_of_output(self, parameter: Parameter, values: Sequence[Any]) -> tuple[Any, ...]:
        given: Any = self._output_dims
        if isinstance(given, Mapping):
            given = given.get(parameter.name)
        dims = self._dims_of_launch(values) if given is None else _dims(given, values, "output_dims")
        if len(dims) != parameter.type.ndim:
            raise ArgumentError(
                f"{self.name}: output '{parameter.name}' is {parameter.type!r}, but would get the shape {tuple(dims)}; "
                "give output_dims"
            )
        return dims


def _wrap(parameter: Parameter, value: Any) -> Any:
    """Return an argument as the kernel takes it: tensors as arrays that it may not write."""
    if not parameter.is_array:
        return parameter.to_warp(value)
    tensor = resolve(value, parameter.type.ndim)
    return from_torch_read_only(tensor, dtype=parameter.element_type(tensor), requires_grad=False)


def _wrap_writable(parameter: Parameter, value: Any) -> Any:
    return _wrap_as(parameter.element_type(value), parameter, value)


def _wrap_as(dtype: Any, parameter: Parameter, value: Any) -> Any:
    return from_torch(resolve(value, parameter.type.ndim), dtype=dtype, requires_grad=False)


def _seed(gradient: Any, adjoint: Any, value: Any) -> Any:
    """Return the gradient of a changed input before its adjoint runs: that of its value after the launch."""
    if gradient is not None:
        return gradient.copy_(adjoint)
    return adjoint.clone(memory_format=torch.contiguous_format) if value.is_floating_point() else None


def _dims(given: Any, values: Sequence[Any], name: str) -> tuple[Any, ...]:
    found = given(*values) if callable(given) else given
    if isinstance(found, (tuple, list)):
        return tuple(found)
    if isinstance(found, (int, torch.SymInt)):
        return (found,)
    raise ArgumentError(f"{name} must be an int, a sequence of ints or a function that returns one, got {found!r}")
