"""How the elements of an array lie in memory, and shapes."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from warp._src import plugin_host
from warp._src.types.arrays import MAX_DIMENSIONS
from warp._src.types.matrices import matrix
from warp._src.types.scalars import Scalar, is_scalar, scalar_from
from warp._src.types.signature import is_differentiable
from warp._src.types.struct_type import StructInstance, StructType
from warp._src.types.tensor_base import Tensor
from warp._src.types.vectors import vector
from warp.errors import ArgumentError


class ElementLayout(NamedTuple):
    """The type of an array's elements and what they are to NumPy."""

    dtype: Any
    """A scalar type, a tensor type or a struct type."""
    scalar: np.dtype[Any]
    """The NumPy dtype of the scalars, structured for structs."""
    shape: tuple[int, ...]
    """The dimensions that one element adds to a NumPy array."""
    size: int
    """Bytes of one element."""
    strides: tuple[int, ...]
    """Byte strides of the dimensions in `shape`."""
    is_differentiable: bool
    """Whether the scalars are floating-point numbers, or a struct may have some."""


def element_layout(dtype: Any) -> ElementLayout:
    """Return the layout of a type usable as the elements of an array; ArgumentError for anything else."""
    return _element_layout(dtype)


@lru_cache(maxsize=4096)
def _element_layout(dtype: Any) -> ElementLayout:
    scalar = scalar_from(dtype)
    if scalar is None and isinstance(dtype, type) and issubclass(dtype, Tensor):
        if dtype.generic:
            raise ArgumentError(f"dtype: {dtype.name} is generic; an array needs a concrete type")
        numpy_dtype = dtype.scalar.dtype
        strides = _contiguous_strides(dtype.shape, numpy_dtype.itemsize)
        return ElementLayout(dtype, numpy_dtype, dtype.shape, dtype.size, strides, is_differentiable(dtype))
    if isinstance(dtype, StructType):
        return ElementLayout(dtype, dtype.numpy_dtype(), (), dtype.size, (), True)
    if scalar is None:
        scalar = _foreign_scalar(dtype)
    return ElementLayout(scalar, scalar.dtype, (), scalar.size, (), is_differentiable(scalar))


def _foreign_scalar(dtype: object) -> type[Scalar]:
    found = plugin_host.dtype_alias(dtype)
    if is_scalar(found):
        return found
    raise ArgumentError(
        f"dtype: {getattr(dtype, '__name__', dtype)!r} is not the type of an array's elements; "
        "use a scalar, vector, matrix, quaternion, transform or struct type"
    )


@lru_cache(maxsize=4096)
def contiguous_strides(shape: tuple[int, ...], element_size: int) -> tuple[int, ...]:
    """Return the byte strides of a row-major array without gaps."""
    return _contiguous_strides(shape, element_size)


def _contiguous_strides(shape: tuple[int, ...], element_size: int) -> tuple[int, ...]:
    strides = []
    for size in reversed(shape):
        strides.append(element_size)
        element_size *= size
    return tuple(reversed(strides))


def normalise_shape(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """Return a shape given as an int or a sequence of ints as a tuple; ArgumentError names the argument."""
    try:
        result = tuple(map(operator.index, shape)) if isinstance(shape, (tuple, list)) else _other_shape(shape)
    except TypeError as error:
        raise ArgumentError(f"{name} must be an int or a sequence of ints, got {shape!r}") from error
    if len(result) > MAX_DIMENSIONS:
        raise ArgumentError(f"{name} has {len(result)} dimensions, an array has at most {MAX_DIMENSIONS}")
    if result and min(result) < 0:
        raise ArgumentError(f"{name} must not be negative, got {result}")
    return result


def _other_shape(shape: Any) -> tuple[int, ...]:
    if hasattr(shape, "__index__"):
        return (operator.index(shape),)
    return tuple(map(operator.index, shape))


def infer_element_layout(values: np.ndarray[Any, Any]) -> ElementLayout:
    """Return the layout of scalars of a NumPy array's own type; ArgumentError if there is no such type."""
    scalar = scalar_from(values.dtype)
    if scalar is None:
        raise ArgumentError(f"data: NumPy type {values.dtype} has no counterpart; give dtype")
    return element_layout(scalar)


def infer_tensor_dtype(values: np.ndarray[Any, Any]) -> Any:
    """Return scalar, vector or matrix type for a NumPy array of one, two or three dimensions, as `from_numpy` does."""
    scalar = infer_element_layout(values).dtype
    if values.ndim == 2:
        return vector(values.shape[1], scalar) if values.shape[1] else scalar
    if values.ndim == 3:
        return matrix((values.shape[1], values.shape[2]), scalar) if values.shape[1] * values.shape[2] else scalar
    return scalar


def host_element(layout: ElementLayout, value: Any) -> Any:
    """Return one element of a NumPy array as a Python number, tensor or struct instance."""
    dtype = layout.dtype
    if isinstance(dtype, StructType):
        return dtype.from_numpy_value(value)
    if layout.shape:
        return dtype.from_numbers(map(dtype.scalar.decode, np.asarray(value).ravel().tolist()))
    return dtype.decode(value.item())


def numpy_element(layout: ElementLayout, value: object, name: str) -> Any:
    """Return a host value as what NumPy assigns to one element; ArgumentError names the argument."""
    dtype = layout.dtype
    try:
        if isinstance(dtype, StructType):
            if isinstance(value, (int, float)) and value == 0:
                return np.zeros((), layout.scalar)[()]
            return dtype.to_numpy_value(value)
        if layout.shape:
            if isinstance(value, (int, float, Scalar, np.number)):
                return _scalar_value(dtype.scalar, value)
            tensor = dtype.coerce(np.asarray(value) if not isinstance(value, Tensor) else value)
            return np.frombuffer(tensor.to_bytes(), layout.scalar).reshape(layout.shape)
        return _scalar_value(dtype, value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}: {error}") from error


def _scalar_value(scalar: type[Scalar], value: object) -> Any:
    if scalar.kind != "f" and isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return scalar.encode(scalar.coerce(value))


def dtype_of_value(value: object) -> Any:
    """Return the type of a host value that an array is to be filled with."""
    if isinstance(value, StructInstance):
        return value._struct_type
    if isinstance(value, (Tensor, Scalar)):
        return type(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return infer_tensor_dtype(np.asarray(value)[None]) if np.ndim(value) else scalar_from(value.dtype)
    if isinstance(value, (bool, int, float)):
        return scalar_from(type(value))
    raise ArgumentError(f"dtype cannot be told from the value {value!r:.80}; give dtype")
