"""Turning what users give as data into NumPy arrays of an element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warp._src.array.elements import ElementLayout, element_layout, infer_element_layout
from warp._src.array.memory import Values, copy_scalars
from warp._src.types.arrays import MAX_DIMENSIONS
from warp._src.types.scalars import Scalar, bfloat16, int64, scalar_from, uint64
from warp._src.types.struct_type import StructInstance, StructType
from warp._src.types.tensor_base import Tensor
from warp.errors import ArgumentError


def as_values(data: Any, dtype: Any, shape: tuple[int, ...] | None, copy: bool) -> tuple[Values, ElementLayout, object]:
    """Return data as a NumPy array with trailing element dimensions, its element layout, and what to keep alive.

    `dtype` is typing.Any to keep the data's own type. With `copy=False` the result shares the memory of `data`, or
    ArgumentError says why it cannot.
    """
    source, inferred, keep, has_memory = _to_numpy(data, dtype, copy)
    if dtype is not Any:
        element = element_layout(dtype)
    elif inferred is not None:
        element = element_layout(inferred)
    else:
        element = infer_element_layout(source)
    values = _convert(source, element, copy or not has_memory)
    values = split_elements(values, element, shape)
    if shape is not None and values.shape != shape + element.shape:
        values = _reshape(values, shape + element.shape, copy, f"data of shape {source.shape}", shape)
    if values.ndim - len(element.shape) > MAX_DIMENSIONS:
        raise ArgumentError(f"data has {values.ndim - len(element.shape)} dimensions, at most {MAX_DIMENSIONS} allowed")
    return values, element, keep


def _to_numpy(data: Any, dtype: Any, copy: bool) -> tuple[Values, Any, object, bool]:
    """Return data as NumPy sees it, its type if NumPy has none for it, what to keep, and whether it has memory."""
    if isinstance(data, np.ndarray):
        if dtype in (Any, bfloat16) and scalar_from(data.dtype) is bfloat16:
            return data.view(np.uint16), bfloat16, None, True
        return data, None, None, True
    if isinstance(data, (bool, int, float, Scalar, np.generic)):
        return np.atleast_1d(np.asarray(data)), None, None, False
    if isinstance(data, (Tensor, StructInstance)):
        data = [data]
    if not isinstance(data, (list, tuple, str, bytes)):
        found = _seen_by_numpy(data, copy)
        if found is not None:
            return found, None, None, True
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return (*_from_sequence(data, dtype), False)
    if hasattr(data, "__cuda_array_interface__"):
        raise ArgumentError(f"data: the {type(data).__qualname__} is in the memory of a CUDA device, not of the host")
    raise ArgumentError(f"data must be a sequence, an array or a number, got {type(data).__qualname__}")


def _seen_by_numpy(data: Any, copy: bool) -> Values | None:
    """Return the memory of an object that shares it in any way; None if it has none.

    Raises ArgumentError if only `__array__` is left, which may give a copy, and that is not what is wanted.
    """
    if hasattr(data, "__cuda_array_interface__"):
        return None
    if hasattr(data, "__array_interface__"):
        return np.asarray(data)
    try:
        return np.asarray(memoryview(data))
    except TypeError:
        pass
    if hasattr(data, "__array__"):
        if not (copy or hasattr(data, "__dlpack__")):
            raise ArgumentError(
                f"copy: the {type(data).__qualname__} does not say that it shares its memory; use copy=True"
            )
        if copy:
            return np.asarray(data)
    return np.from_dlpack(data) if hasattr(data, "__dlpack__") else None


def _from_sequence(data: Sequence[Any], dtype: Any) -> tuple[Values, Any, object]:
    first: Any = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if isinstance(dtype, StructType) or isinstance(first, StructInstance):
        return _from_structs(data, dtype if isinstance(dtype, StructType) else first._struct_type)
    inferred = type(first) if isinstance(first, (Tensor, Scalar)) else None
    if isinstance(first, Tensor) and all(type(value) is inferred for value in data):
        flat = np.array([first.scalar.encode(n) for value in data for n in value.values], first.scalar.dtype)
        return flat.reshape(len(data), *first.shape), inferred, None
    if not isinstance(data, (list, tuple)):
        data = list(data)
    try:
        values = np.array(data)
        if values.dtype == np.float64 and scalar_from(getattr(dtype, "scalar", dtype)) in (int64, uint64):
            # NumPy makes floats of integers that no one of its types holds all of; they would lose digits.
            whole = np.array(data, object)
            values = values if any(isinstance(number, float) for number in whole.flat) else _integers(whole, dtype)
    except ValueError as error:
        raise ArgumentError(f"data: the nested sequences differ in length ({error})") from error
    if values.dtype.kind == "O":
        raise ArgumentError(f"data holds values that are no numbers: {first!r:.80}")
    if not values.size and dtype is Any and inferred is None:
        values = values.astype(np.float32)
    return values, inferred, None


def _integers(values: Values, dtype: Any) -> Values:
    scalar: Any = scalar_from(getattr(dtype, "scalar", dtype))
    numbers: Values = np.array([scalar.convert(int(number)) for number in values.flat], scalar.dtype)
    result: Values = numbers.reshape(values.shape)
    return result


def _from_structs(data: Sequence[Any], dtype: StructType) -> tuple[Values, Any, object]:
    try:
        values = np.zeros(len(data), dtype.numpy_dtype())
        for index, instance in enumerate(data):
            values[index] = dtype.to_numpy_value(instance)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"data: {error}") from error
    return values, dtype, [kept for instance in data for kept in _arrays_and_gradients(instance)]


def _arrays_and_gradients(instance: StructInstance) -> list[Any]:
    """Find what the descriptors inside a struct point to, which must live as long as they do."""
    found: list[Any] = []
    for value in instance._values.values():
        if isinstance(value, StructInstance):
            found += _arrays_and_gradients(value)
        elif hasattr(value, "descriptor"):
            found += [value, getattr(value, "data", value).grad]
    return found


def _convert(source: Values, element: ElementLayout, copy: bool) -> Values:
    scalar = getattr(element.dtype, "scalar", element.dtype)
    if scalar is bfloat16 and source.dtype != element.scalar:
        if not copy:
            raise ArgumentError(f"data: NumPy type {source.dtype} is not bfloat16, whose bits NumPy sees as uint16")
        return bfloat16.encode_array(source)
    if source.dtype == element.scalar:
        return copy_scalars(source, element.scalar) if copy else source
    if not copy:
        raise ArgumentError(
            f"data: NumPy type {source.dtype} is not {element.scalar}, so the memory cannot be shared; use copy=True"
        )
    if source.dtype.kind not in "biufV" or (element.scalar.names is not None) != (source.dtype.names is not None):
        raise ArgumentError(f"data of type {source.dtype} cannot be converted to {_name(element)}")
    with np.errstate(over="ignore", invalid="ignore"):
        return copy_scalars(source, element.scalar)


def split_elements(values: Values, element: ElementLayout, shape: tuple[int, ...] | None) -> Values:
    """Give `values` the trailing dimensions of an element."""
    inner = element.shape
    if not inner:
        return values
    if values.ndim >= len(inner) and values.shape[-len(inner) :] == inner and values.ndim > len(inner):
        _check_inner(values, element)
        return values
    length = element.size // element.scalar.itemsize
    if values.ndim > 1 and values.shape[-1] == length:
        _check_inner(values[..., :1] if length == 1 else values, element, dimensions=1)
        split: Values = values.reshape(values.shape[:-1] + inner)
        return split
    if values.ndim == 1 and values.size % length == 0:
        _check_inner(values, element, dimensions=1)
        return values.reshape((-1, *inner))
    if values.shape == inner:
        _check_inner(values, element)
        return values.reshape((1, *inner))
    if shape is not None and values.size == length * int(np.prod(shape)):
        return values.reshape(shape + inner)
    raise ArgumentError(f"data of shape {values.shape} does not split into elements of {_name(element)}")


def _check_inner(values: Values, element: ElementLayout, dimensions: int | None = None) -> None:
    wanted = element.strides if dimensions is None else (element.scalar.itemsize,)
    if values.size and values.strides[-len(wanted) :] != wanted:
        raise ArgumentError(
            f"data: the components of {_name(element)} are not next to each other in memory "
            f"(strides {values.strides}); use copy=True"
        )


def _reshape(values: Values, shape: tuple[int, ...], copy: bool, what: str, wanted: tuple[int, ...]) -> Values:
    try:
        result = values.reshape(shape)
    except ValueError as error:
        raise ArgumentError(f"shape: {what} does not fit into shape {wanted}") from error
    if not copy and result.size and not np.may_share_memory(result, values):
        raise ArgumentError(f"shape: {what} cannot be seen as {wanted} without a copy; use copy=True")
    return result


def _name(element: ElementLayout) -> str:
    return str(element.dtype.name)
