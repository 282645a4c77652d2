"""The parameters of a kernel or function as operators of Paddle see them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import paddle

import warp as wp
from warp.errors import ArgumentError
from warp_interop_paddle.bridge import DTYPES_FROM
from warp_interop_paddle.convert import dtype_to_paddle

_VALUE_KINDS = "fiub"


@dataclass(frozen=True)
class Parameter:
    """One parameter: an array or a value, read or written."""

    name: str
    type: Any
    is_array: bool
    is_output: bool
    is_changed: bool
    """Whether it is an input that the function changes, which is given back as an output."""

    def to_warp(self, value: Any) -> Any:
        """Return an argument for a value parameter as a kernel takes it."""
        return self.type(*value) if isinstance(value, (list, tuple)) else value

    def element_type(self, tensor: Any) -> Any:
        """Return the element type that a tensor has for this array parameter, told by its dimensions if generic."""
        if is_concrete(self.type.dtype):
            return self.type.dtype
        scalar = DTYPES_FROM.get(tensor.dtype)
        if scalar is None:
            raise ArgumentError(f"parameter '{self.name}': no kernel takes tensors of {tensor.dtype}")
        inner = tuple(tensor.shape[self.type.ndim :])
        if not inner:
            return scalar
        return wp.types.vector(inner[0], scalar) if len(inner) == 1 else wp.types.matrix((inner[0], inner[1]), scalar)

    def check(self, value: Any) -> None:
        """Raise ArgumentError for an argument that does not fit: arrays are tensors, values are none."""
        is_tensor = isinstance(value, paddle.Tensor)
        if not self.is_array:
            if is_tensor:
                raise ArgumentError(
                    f"parameter '{self.name}' is given by value, so no gradient could reach a tensor; pass a number"
                )
            return
        if not is_tensor:
            raise ArgumentError(
                f"parameter '{self.name}' is {self.type!r} and takes a tensor, got {type(value).__qualname__}"
            )
        if is_concrete(self.type.dtype):
            self._check_tensor(value)

    def _check_tensor(self, value: Any) -> None:
        inner, scalar = element(self.type.dtype)
        wanted = dtype_to_paddle(scalar)
        if value.dtype != wanted and DTYPES_FROM.get(value.dtype) is not scalar:
            raise ArgumentError(
                f"parameter '{self.name}' is {self.type!r} and takes a tensor of {wanted}, got {value.dtype}"
            )
        shape = tuple(value.shape)
        rank = self.type.ndim + len(inner)
        if len(shape) != rank or shape[self.type.ndim :] != inner:
            trailing = f" whose last dimensions are {inner}" if inner else ""
            raise ArgumentError(
                f"parameter '{self.name}' is {self.type!r} and takes a tensor of {rank} dimensions{trailing}, "
                f"got shape {shape}"
            )


def is_concrete(dtype: Any) -> bool:
    """Say whether an element type is no type variable and no Any."""
    return getattr(dtype, "size", None) is not None and not getattr(dtype, "generic", False)


def element(dtype: Any) -> tuple[tuple[int, ...], type]:
    """Return the dimensions that an element adds to a tensor, and its scalar type. Raises ArgumentError for structs."""
    scalar = getattr(dtype, "scalar", None)
    if scalar is not None:
        return tuple(dtype.shape), scalar
    if getattr(dtype, "kind", "") in tuple(_VALUE_KINDS):
        return (), dtype
    raise ArgumentError(f"Paddle has no tensors of {getattr(dtype, 'name', dtype)}")


def parameters_of(function: Any, num_outputs: int, changed: Sequence[str]) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel or annotated Python function.

    The last `num_outputs`, less those in `changed`, are outputs. Raises ArgumentError for what no operator can take.
    """
    named = list(_named_types(function))
    names = [name for name, _ in named]
    for name in changed:
        if name not in names:
            raise ArgumentError(f"in_out_argnames: there is no parameter '{name}'; there are {', '.join(names)}")
    fresh = num_outputs - len(changed)
    if num_outputs < 1 or fresh < 0 or fresh > len(named):
        raise ArgumentError(
            f"num_outputs counts the outputs, those in in_out_argnames included; got {num_outputs} for "
            f"{len(named)} parameters and in_out_argnames={list(changed)}"
        )
    first_output = len(named) - fresh
    found = tuple(
        _parameter(name, type, index >= first_output, name in changed) for index, (name, type) in enumerate(named)
    )
    if not any(parameter.is_array and not parameter.is_output for parameter in found):
        raise ArgumentError("an operator of Paddle needs at least one input that is an array")
    return found


def _named_types(function: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(function, wp.Kernel):
        yield from function.parameters
        return
    if not callable(function):
        raise ArgumentError(f"paddle_op takes a kernel or a function, got {type(function).__qualname__}")
    for name, parameter in _signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise ArgumentError(f"parameter '{name}' of {function.__qualname__} must be an ordinary parameter")
        annotation = parameter.annotation
        yield name, {float: wp.float32, int: wp.int32, bool: wp.bool}.get(annotation, annotation)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise ArgumentError(
            f"the annotations of {function.__qualname__} cannot be read: {error}; they must be known where the "
            "module was defined"
        ) from error


def _parameter(name: str, type: Any, is_output: bool, is_changed: bool) -> Parameter:
    is_array = isinstance(type, wp.types.ArrayType)
    if not is_array and (is_output or is_changed):
        raise ArgumentError(f"parameter '{name}' is an output and must be an array, got {_text(type)}")
    if is_array:
        if is_concrete(type.dtype):
            element(type.dtype)
    elif getattr(getattr(type, "scalar", type), "kind", "") not in tuple(_VALUE_KINDS):
        raise ArgumentError(
            f"parameter '{name}' of type {_text(type)} has no counterpart in Paddle; a parameter must be an array, a "
            "number, a vector or a matrix, and annotated so"
        )
    return Parameter(name, type, is_array, is_output, is_changed)


def _text(type: Any) -> str:
    if type is inspect.Parameter.empty:
        return "no annotation"
    return str(getattr(type, "name", None) or type)
