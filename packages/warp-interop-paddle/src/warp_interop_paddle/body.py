"""What an operator computes: outputs from inputs, and adjoints of inputs from adjoints of outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import warp as wp
from warp.errors import ArgumentError, AutogradError
from warp.recording import recording
from warp_interop_paddle.convert import from_paddle, from_paddle_read_only
from warp_interop_paddle.parameters import Parameter, element, is_concrete

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
        self.inputs = tuple(parameter for parameter in parameters if not parameter.is_output)
        self.outputs = tuple(parameter for parameter in parameters if parameter.is_output)
        self.array_places = tuple(place for place, parameter in enumerate(self.inputs) if parameter.is_array)
        self.changed_places = tuple(place for place in self.array_places if self.inputs[place].is_changed)
        self._launch_dims = launch_dims
        self._output_dims = output_dims
        self._is_kernel = isinstance(function, wp.Kernel)
        self.needs_tape = not self._is_kernel

    def check(self, values: Sequence[Any]) -> None:
        """Raise ArgumentError, which names the parameter, for arguments that do not fit."""
        places = set()
        try:
            for parameter, value in zip(self.inputs, values, strict=True):
                parameter.check(value)
                if parameter.is_array:
                    places.add(str(value.place))
        except ArgumentError as error:
            raise ArgumentError(f"{self.name}: {error}") from None
        if len(places) > 1:
            raise ArgumentError(f"{self.name}: the tensors are on several devices: {', '.join(sorted(places))}")

    def wrap(self, values: Sequence[Any]) -> list[Any]:
        """Return arguments as kernels take them: tensors as arrays, which only those to be changed may write."""
        return [
            _wrap(parameter, value) if parameter.is_array else parameter.to_warp(value)
            for parameter, value in zip(self.inputs, values, strict=True)
        ]

    def call(self, values: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the function on arrays. `values` are the operator's arguments, which tell the dimensions."""
        device = inputs[self.array_places[0]].device
        if self._is_kernel:
            dims = self._dims_of_launch(values)
            wp.launch(self.function, dims, inputs=list(inputs), outputs=list(outputs), device=device)
            return
        with wp.ScopedDevice(device):
            self.function(*inputs, *outputs)

    def new_outputs(self, values: Sequence[Any], inputs: Sequence[Any], requires_grad: bool) -> list[Any]:
        """Return zeros for the outputs; those of floating point have a gradient if asked for."""
        first = inputs[self.array_places[0]]
        made = []
        for parameter in self.outputs:
            dtype = parameter.type.dtype if is_concrete(parameter.type.dtype) else first.dtype
            dims = self._dims_of_output(parameter, values)
            made.append(wp.zeros(dims, dtype, first.device, requires_grad and is_differentiable(dtype)))
        return made

    def launch_adjoint(
        self,
        values: Sequence[Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        gradients: Sequence[Any],
        seeds: Sequence[Any],
    ) -> None:
        """Run the kernel's adjoint: add to `gradients` of the inputs what the `seeds` of the outputs give."""
        wp.launch(
            self.function,
            self._dims_of_launch(values),
            inputs=list(inputs),
            outputs=list(outputs),
            adj_inputs=list(gradients),
            adj_outputs=list(seeds),
            adjoint=True,
            device=inputs[self.array_places[0]].device,
        )

    def _dims_of_launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        if self._launch_dims is None:
            place = self.array_places[0]
            return tuple(values[place].shape[: self.inputs[place].type.ndim])
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


class Run:
    """One call of an operator, and what its adjoint needs."""

    def __init__(self, body: Body, values: Sequence[Any]) -> None:
        self._body = body
        self._values = values
        self._inputs = body.wrap(values)
        self._versions = [values[place].inplace_version for place in body.array_places]
        with recording(None):
            self._after = list(self._inputs)
            for place in body.changed_places:
                self._after[place] = wp.clone(self._inputs[place], requires_grad=False)
            self._outputs = body.new_outputs(values, self._inputs, requires_grad=False)
            body.call(values, self._after, self._outputs)
        self.results = [self._after[place] for place in body.changed_places] + self._outputs
        """The arrays of the inputs that were changed, then of the outputs."""

    def adjoints(self, needed: Sequence[bool], given: Sequence[Any]) -> list[Any]:
        """Return arrays of the adjoints of the input arrays, None where none is needed.

        `given` are tensors of the adjoints of the results. Raises AutogradError if an input was written meanwhile.
        """
        self._check_versions()
        with recording(None):
            seeds = [
                _copy(result, adjoint) if is_differentiable(result.dtype) else None
                for result, adjoint in zip(self.results, given, strict=True)
            ]
            if not self._body.needs_tape:
                try:
                    return self._launch_adjoint(needed, seeds)
                except AutogradError:
                    # The adjoint wants what only a tape keeps, or there is none: then the tape says why.
                    self._body.needs_tape = True
                    seeds = [
                        None if seed is None else _copy(seed, adjoint)
                        for seed, adjoint in zip(seeds, given, strict=True)
                    ]
            return self._replay(needed, seeds)

    def _check_versions(self) -> None:
        for place, version in zip(self._body.array_places, self._versions, strict=True):
            if self._values[place].inplace_version != version:
                raise AutogradError(
                    f"{self._body.name}: parameter '{self._body.inputs[place].name}' was modified by an inplace "
                    "operation after the operator had used it, and before its gradient was computed"
                )

    def _launch_adjoint(self, needed: Sequence[bool], seeds: Sequence[Any]) -> list[Any]:
        body = self._body
        gradients: list[Any] = [None] * len(body.inputs)
        for place, is_needed in zip(body.array_places, needed, strict=True):
            if is_needed:
                gradients[place] = wp.zeros_like(self._inputs[place], requires_grad=False)
        # Of an input that is changed it is the gradient of its value after the launch, before the adjoint runs.
        for place, seed in zip(body.changed_places, seeds, strict=False):
            gradients[place] = seed
        body.launch_adjoint(self._values, self._after, self._outputs, gradients, seeds[len(body.changed_places) :])
        return [
            gradients[place] if is_needed else None for place, is_needed in zip(body.array_places, needed, strict=True)
        ]

    def _replay(self, needed: Sequence[bool], seeds: Sequence[Any]) -> list[Any]:
        """Run the function again on a tape, and the tape backward."""
        body = self._body
        inputs = body.wrap(self._values)
        for place, is_needed in zip(body.array_places, needed, strict=True):
            inputs[place].requires_grad = is_needed
        tape = wp.Tape()
        with tape:
            after = list(inputs)
            for place in body.changed_places:
                after[place] = wp.clone(inputs[place], requires_grad=is_differentiable(inputs[place].dtype))
            outputs = body.new_outputs(self._values, inputs, requires_grad=True)
            body.call(self._values, after, outputs)
        results = [after[place] for place in body.changed_places] + outputs
        tape.backward(grads={result: seed for result, seed in zip(results, seeds, strict=True) if seed is not None})
        return [
            inputs[place].grad if is_needed else None
            for place, is_needed in zip(body.array_places, needed, strict=True)
        ]


def is_differentiable(dtype: Any) -> bool:
    """Tell whether arrays of an element type have gradients."""
    return getattr(element(dtype)[1], "kind", "") == "f" and element(dtype)[1] is not wp.bfloat16


def _packed(parameter: Parameter, tensor: Any) -> Any:
    """Return a tensor whose trailing dimensions, those of an element, have no gaps."""
    has_inner = tensor.ndim > parameter.type.ndim
    return tensor.contiguous() if has_inner and not tensor.is_contiguous() else tensor


def _wrap(parameter: Parameter, value: Any) -> Any:
    tensor = _packed(parameter, value.detach())
    return from_paddle_read_only(tensor, dtype=parameter.element_type(tensor), requires_grad=False)


def _copy(like: Any, tensor: Any) -> Any:
    """Return an array of the type of another, with a copy of a tensor's values."""
    contiguous = tensor.detach().contiguous()
    return wp.clone(from_paddle(contiguous, dtype=like.dtype, requires_grad=False), requires_grad=False)


def _dims(given: Any, values: Sequence[Any], name: str) -> tuple[Any, ...]:
    found = given(*values) if callable(given) else given
    if isinstance(found, int):
        return (found,)
    if isinstance(found, Sequence):
        return tuple(found)
    raise ArgumentError(f"{name} must be an int, a sequence of ints or a function that returns one, got {found!r}")
