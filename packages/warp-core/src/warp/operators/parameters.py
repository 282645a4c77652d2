"""The parameters of a kernel or function that is to be an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

import warp as wp
from warp.errors import ArgumentError

_VALUE_KINDS: Final = ("f", "i", "u", "b")
_OF_PYTHON: Final = {float: wp.float32, int: wp.int32, bool: wp.bool}


@dataclass(frozen=True)
class Parameter:
    """One parameter: an array or a value, read or written."""

    name: str
    type: Any
    is_array: bool
    is_output: bool
    """Whether the operator allocates and returns it, so that callers do not pass it."""
    is_changed: bool
    """Whether it is an input that the function changes; the changed copy is returned as an output."""

    @cached_property
    def is_generic(self) -> bool:
        """Say whether the arguments tell the type of this array's elements."""
        return not _is_concrete(self.type.dtype)

    @cached_property
    def element(self) -> tuple[tuple[int, ...], type]:
        """Return the dimensions that an element of this array adds to a tensor, and its scalar type."""
        return split_element(self.type.dtype)

    def to_warp(self, value: Any) -> Any:
        """Return the argument of a value parameter as a kernel takes it; sequences stand for vectors and matrices."""
        return self.type(*value) if isinstance(value, (list, tuple)) else value

    def element_type(self, shape: Sequence[Any], scalar: type) -> Any:
        """Return the element type of this array parameter for a tensor, told by its dimensions if generic."""
        if not self.is_generic:
            return self.type.dtype
        inner = [int(size) for size in shape[self.type.ndim :]]
        if not inner:
            return scalar
        if len(inner) > 2:
            raise ArgumentError(
                f"parameter '{self.name}' is {self.type!r} and takes a tensor of {self.type.ndim} dimensions, besides "
                f"one of vectors or two of matrices, got shape {tuple(shape)}"
            )
        return wp.types.vector(inner[0], scalar) if len(inner) == 1 else wp.types.matrix((inner[0], inner[1]), scalar)

    def check_shape(self, shape: Sequence[Any]) -> None:
        """Raise ArgumentError for the shape of a tensor that this array parameter cannot take."""
        if self.is_generic:
            return
        inner, _ = self.element
        rank = self.type.ndim + len(inner)
        if len(shape) != rank or (inner and any(map(_differs, shape[self.type.ndim :], inner))):
            trailing = f" whose last dimensions are {inner}" if inner else ""
            raise ArgumentError(
                f"parameter '{self.name}' is {self.type!r} and takes a tensor of {rank} dimensions{trailing}, "
                f"got shape {tuple(shape)}"
            )


def split_element(dtype: Any) -> tuple[tuple[int, ...], type]:
    """Return the dimensions that an element adds to a tensor, and its scalar type. Raises ArgumentError for structs."""
    scalar = getattr(dtype, "scalar", None)
    if scalar is not None:
        return tuple(dtype.shape), scalar
    if getattr(dtype, "kind", "") in _VALUE_KINDS:
        return (), dtype
    raise ArgumentError(f"operators have no tensors of {getattr(dtype, 'name', dtype)}")


def is_differentiable(dtype: Any) -> bool:
    """Tell whether arrays of an element type have gradients: its scalars are floating-point numbers."""
    return getattr(getattr(dtype, "scalar", dtype), "kind", "") == "f"


def parameters_of(
    function: Any, num_outputs: int, changed: Sequence[str], takes_generic_values: bool = False
) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel or annotated Python function.

    The last `num_outputs`, less those in `changed`, are outputs. Raises ArgumentError for what no operator can take,
    among them values of a generic type unless `takes_generic_values`.
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
    return tuple(
        _parameter(name, type, index >= first_output, name in changed, takes_generic_values)
        for index, (name, type) in enumerate(named)
    )


def _named_types(function: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(function, wp.Kernel):
        yield from function.parameters
        return
    if not callable(function):
        raise ArgumentError(f"an operator is made of a kernel or a function, got {type(function).__qualname__}")
    for name, parameter in _signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise ArgumentError(f"parameter '{name}' of {function.__qualname__} must be an ordinary parameter")
        yield name, _OF_PYTHON.get(parameter.annotation, parameter.annotation)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise ArgumentError(
            f"the annotations of {function.__qualname__} cannot be read: {error}; they must be known where the "
            "module was defined"
        ) from error


def _parameter(name: str, type: Any, is_output: bool, is_changed: bool, takes_generic_values: bool) -> Parameter:
    is_array = isinstance(type, wp.types.ArrayType)
    if not is_array and (is_output or is_changed):
        raise ArgumentError(f"parameter '{name}' is an output and must be an array, got {_text(type)}")
    if is_array:
        if _is_concrete(type.dtype):
            split_element(type.dtype)
    elif takes_generic_values and (type is Any or isinstance(type, TypeVar)):
        pass  # a call tells the type
    elif getattr(getattr(type, "scalar", type), "kind", None) not in _VALUE_KINDS:
        raise ArgumentError(
            f"parameter '{name}' of type {_text(type)} cannot be one of an operator; it must be an array, a number, a "
            "vector or a matrix, and annotated so"
        )
    return Parameter(name, type, is_array, is_output, is_changed)


def _is_concrete(dtype: Any) -> bool:
    return getattr(dtype, "size", None) is not None and not getattr(dtype, "generic", False)


def _differs(size: Any, wanted: int) -> bool:
    return bool(size != wanted)  # symbolic sizes are compared here


def _text(type: Any) -> str:
    if type is inspect.Parameter.empty:
        return "no annotation"
    return str(getattr(type, "name", None) or type)
