"""Typed values of the interpreter: every result is rounded or wrapped to its IR type, never left to NumPy.

Scalars are NumPy scalars of the type's dtype, tensors are ndarrays of the type's shape, structs are dicts of
their fields, arrays are `ArrayCell`s. Values are immutable: an update makes a copy. When duals are run, every
float is a `Dual` instead and float tensors are object arrays of them; nothing is rounded then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warp._src.ir.core import Type
from warp._src.ir.dual import Dual
from warp._src.ir.memory import ArrayCell
from warp._src.types.scalars import Scalar, is_float, is_scalar
from warp._src.types.signature import is_array, is_tensor, scalar_of
from warp.errors import InternalCompilerError

# Turns the float of a kernel into a Dual, and leaves a Dual alone.
Lift = Callable[[Any], Any]
Convert = Callable[[Any], Any]


def wrapper(type: Type, lift: Lift | None) -> Convert:
    """Make the function that brings any result to `type`."""
    if is_scalar(type):
        return _dual_scalar(lift) if lift and is_float(type) else _plain_scalar(type)
    if is_tensor(type):
        return _dual_tensor(type, lift) if lift and is_float(type.scalar) else _plain_tensor(type)
    return lambda value: value


def _plain_scalar(type: type[Scalar]) -> Convert:
    numpy_type, convert = type.numeric.type, type.convert
    is_rounded = type.numeric == type.dtype  # values that NumPy computes are those of the type

    def wrap(value: Any) -> Any:
        if is_rounded and value.__class__ is numpy_type:
            return value
        if isinstance(value, Scalar):
            value = value.value
        elif isinstance(value, (np.generic, np.ndarray)):
            value = value.item()
        return numpy_type(convert(value))

    return wrap


def _dual_scalar(lift: Lift) -> Convert:
    def wrap(value: Any) -> Any:
        if value.__class__ is Dual:
            return value
        if isinstance(value, np.ndarray):
            value = value.item()
        return lift(value.value if isinstance(value, Scalar) else value)

    return wrap


def _plain_tensor(type: Any) -> Convert:
    dtype, shape, wrap_scalar = type.scalar.numeric, type.shape, _plain_scalar(type.scalar)
    is_rounded = dtype == type.scalar.dtype

    def wrap(value: Any) -> Any:
        if is_rounded and value.__class__ is np.ndarray and value.dtype == dtype and value.shape == shape:
            return value
        source = np.asarray(value)
        result = np.empty(source.size, dtype=dtype)
        for index, element in enumerate(source.reshape(-1)):
            result[index] = wrap_scalar(element)
        return _shaped(result, type)

    return wrap


def _dual_tensor(type: Any, lift: Lift) -> Convert:
    shape, wrap_scalar = type.shape, _dual_scalar(lift)

    def wrap(value: Any) -> Any:
        source = value if value.__class__ is np.ndarray else _objects(value)
        result = np.empty(source.size, dtype=object)
        for index, element in enumerate(source.reshape(-1)):
            result[index] = wrap_scalar(element)
        return _shaped(result, type) if shape != result.shape else result

    return wrap


def _objects(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not any(isinstance(part, (list, tuple, np.ndarray)) for part in value):
        result = np.empty(len(value), dtype=object)
        result[:] = value
        return result
    return np.asarray(value, dtype=object)


def _shaped(flat: Any, type: Any) -> Any:
    if flat.size != type.length:
        raise InternalCompilerError(f"{type.name} was given {flat.size} scalars")
    return flat.reshape(type.shape)


# -- casts -----------------------------------------------------------------------------------------------


def caster(source: Type, target: Type, lift: Lift | None) -> Convert:
    """Make the conversion between two scalar types, or tensor types of one shape, of docs/semantics.md.

    A float to an integer is cut toward zero and saturates, nan gives 0; integers wrap around; bool is x != 0;
    floats are rounded to nearest even.
    """
    to = scalar_of(target)
    if lift and is_float(to):
        convert: Convert = lambda x: lift(x if x.__class__ is Dual else x.item())  # noqa: E731
    else:
        numpy_type, rounded = to.numeric.type, to.convert
        convert = lambda x: numpy_type(rounded(x.value if x.__class__ is Dual else x.item()))  # noqa: E731
    if is_scalar(source):
        return convert
    dtype = object if lift and is_float(to) else to.numeric

    def cast(value: Any) -> Any:
        result = np.empty(value.size, dtype=dtype)
        for index, element in enumerate(value.reshape(-1)):
            result[index] = convert(element)
        return result.reshape(value.shape)

    return cast


def pack(type: Any, value: Any) -> bytes:
    """Give the bytes of a scalar or tensor as kernels store them."""
    scalar = scalar_of(type)
    return bytes(np.array([scalar.encode(part) for part in np.asarray(value).ravel().tolist()], scalar.dtype).data)


def unpack(type: Any, data: bytes) -> Any:
    """Give the scalar or tensor that bytes stand for."""
    scalar = scalar_of(type)
    numbers = [scalar.decode(part) for part in np.frombuffer(data, scalar.dtype).tolist()]
    return scalar.numeric.type(numbers[0]) if is_scalar(type) else np.array(numbers, scalar.numeric).reshape(type.shape)


# -- aggregates ------------------------------------------------------------------------------------------


def zero(type: Type, lift: Lift | None) -> Any:
    """Give the zero value of any type; a null array for an array type."""
    if is_array(type):
        return ArrayCell.null(type)
    if is_scalar(type):
        return wrapper(type, lift)(type.numeric.type(0))
    if is_tensor(type):
        return wrapper(type, lift)(np.zeros(type.shape, dtype=type.scalar.numeric))
    return {name: zero(field, lift) for name, field in type.fields.items()}


def construct(type: Type, parts: Sequence[Any], lift: Lift | None) -> Any:
    """Make a tensor from its scalars in row-major order, or a struct from its fields."""
    if not is_tensor(type):
        return dict(zip(type.fields, parts, strict=True))
    result = np.empty(len(parts), dtype=object if lift and is_float(type.scalar) else type.scalar.numeric)
    for index, part in enumerate(parts):
        result[index] = part
    return _shaped(result, type)


__all__ = ["Convert", "Lift", "caster", "construct", "pack", "unpack", "wrapper", "zero"]
