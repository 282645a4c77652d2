"""`wp.map`: apply a function to the elements of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warp._src.array.array import array
from warp._src.array.creation import empty
from warp._src.array.indexed import indexedarray
from warp._src.launch.bind import type_of
from warp._src.launch.launch import launch
from warp._src.launch.program import Function, Kernel, MappedCall, mapped_call
from warp._src.plugin_host import array_adapter
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import float32, int32, is_float, is_int
from warp._src.types.signature import is_differentiable, is_tensor, type_name
from warp._src.types.struct_type import Type
from warp.errors import ArgumentError

_MAX_DIMENSIONS = 4


def map(
    func: Function | Callable[..., Any],
    *inputs: Any,
    out: Any = None,
    return_kernel: bool = False,
    block_dim: int = 256,
    device: Any = None,
) -> Any:
    """Apply a function to the elements of arrays, of shapes that are broadcast as NumPy does.

    Args:
        func: A `@wp.func`, a builtin such as `wp.sin`, or a plain function or lambda that kernels could call.
        inputs: Arrays, and values that are the same for all elements. At least one is an array.
        out: Array or arrays that take the results; new ones if None. They need a gradient if an input has one.
        return_kernel: Give the kernel instead of launching it.
        block_dim: Threads per CUDA block.
        device: Where to run; the device of the first array by default.

    Returns:
        An array, a list of arrays if the function has several results, or a kernel.

    Raises:
        ArgumentError: Shapes cannot be broadcast, or an output does not fit; names the argument.
        KernelTypeError: The function does not take such elements, or returns nothing.
    """
    if not callable(func):
        raise ArgumentError(f"map: func must be a function, got {type(func).__qualname__}")
    values = [_array_or_value(value) for value in inputs]
    arrays = [value for value in values if _is_array(value)]
    if not arrays:
        raise ArgumentError("map: at least one of the inputs must be an array")
    shape = _broadcast([value.shape for value in arrays])
    call = _call(func, values, shape)
    kernel = _kernel(call)
    if return_kernel:
        return kernel
    place = arrays[0].device if device is None else device
    outputs = _outputs(call.results, out, shape, arrays, place)
    launch(kernel, shape, inputs=values, outputs=outputs, device=place, block_dim=block_dim)
    return outputs[0] if len(outputs) == 1 and not isinstance(out, (list, tuple)) else outputs


def _array_or_value(value: Any) -> Any:
    if _is_array(value):
        return value
    if isinstance(value, np.ndarray) and value.ndim:
        return array(value, copy=False)
    adapter = None if is_tensor(value.__class__) else array_adapter(value.__class__)
    return value if adapter is None else adapter(value)


def _is_array(value: Any) -> bool:
    return isinstance(value, (array, indexedarray))


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError as error:
        listed = ", ".join(str(shape) for shape in shapes)
        raise ArgumentError(f"map: the shapes {listed} cannot be broadcast to one shape") from error
    if len(shape) > _MAX_DIMENSIONS:
        raise ArgumentError(f"map: at most {_MAX_DIMENSIONS} dimensions, got shape {shape}")
    return tuple(int(extent) for extent in shape)


def _call(func: Any, values: Sequence[Any], shape: tuple[int, ...]) -> MappedCall:
    """Describe the kernel: for each input its type, and its index text if it is an array."""
    scalars = [_scalar(value.dtype) for value in values if _is_array(value)]
    parameters: list[tuple[Type, str | None]] = []
    for value in values:
        if _is_array(value):
            parameters.append((type_of(value), _index(value.shape, shape)))
        else:
            parameters.append((_value_type(value, scalars), None))
    return mapped_call(func, tuple(parameters), len(shape))


def _scalar(dtype: Any) -> Any:
    return dtype.scalar if is_tensor(dtype) else dtype


def _index(shape: tuple[int, ...], whole: tuple[int, ...]) -> str:
    """Spell the index of an element: dimensions that are broadcast stay at 0."""
    first = len(whole) - len(shape)
    axes = ((f"i{axis + first}", extent, whole[axis + first]) for axis, extent in enumerate(shape))
    return ", ".join("0" if extent == 1 and total != 1 else name for name, extent, total in axes)


def _value_type(value: Any, scalars: Sequence[Any]) -> Type:
    """Give the type of a value; a number of Python takes that of the first array of its kind."""
    if value.__class__ is float:
        return next((scalar for scalar in scalars if is_float(scalar)), float32)
    if value.__class__ is int:
        return next((scalar for scalar in scalars if is_int(scalar)), int32)
    return type_of(value)


def _kernel(call: MappedCall) -> Kernel:
    cache = call.function.mapped
    kernel = cache.get(call.key)
    if kernel is None:
        kernel = cache.setdefault(call.key, call.make())
    return kernel


def _outputs(
    results: Sequence[Type], out: Any, shape: tuple[int, ...], arrays: Sequence[Any], device: Any
) -> list[Any]:
    if out is None:
        has_gradient = any(getattr(value, "requires_grad", False) for value in arrays)
        return [
            empty(shape, dtype=result, device=device, requires_grad=has_gradient and is_differentiable(result))
            for result in results
        ]
    given = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(given) != len(results):
        raise ArgumentError(f"map: out must hold {len(results)} arrays, one for each result, got {len(given)}")
    for number, (target, result) in enumerate(zip(given, results, strict=True)):
        found = _array_or_value(target)
        if not _is_array(found) or found.dtype is not result or tuple(found.shape) != shape:
            what = (
                f"{type_name(ArrayType(found.dtype, found.ndim))} of shape {found.shape}"
                if isinstance(found, (array, indexedarray))
                else type(target).__qualname__
            )
            raise ArgumentError(
                f"map: output {number} must be {type_name(ArrayType(result, len(shape)))} of shape {shape}, got {what}"
            )
    return given


__all__ = ["map"]
