"""Seeing foreign scalars as elements of a type, in place."""

from __future__ import annotations

from typing import Any

from warp._src.array.array import array
from warp._src.array.convert import split_elements
from warp._src.array.elements import ElementLayout, contiguous_strides, element_layout
from warp._src.array.memory import Values, values_at
from warp._src.runtime.device import Device
from warp._src.types.arrays import MAX_DIMENSIONS
from warp.errors import ArgumentError


def element_for(function: str, dtype: Any, scalar: Any, name: object) -> ElementLayout:
    """Return the layout of `dtype`, or of `scalar` without one.

    `scalar` is the NumPy dtype of the source, called `name` in the ArgumentError. Integers, booleans and types that
    Warp does not have may be seen as integers of the same size.
    """
    element = element_layout(dtype)
    if element.scalar == scalar:
        return element
    kinds = {element.scalar.kind, scalar.kind}
    if element.scalar.names is None and element.scalar.itemsize == scalar.itemsize and kinds <= set("iubV"):
        return element
    raise ArgumentError(
        f"{function}: dtype={element.dtype.name} does not fit elements of type {name}, which would have to be converted"
    )


def array_at(
    function: str,
    element: ElementLayout,
    device: Device,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    owner: object,
    readonly: bool,
) -> array:
    """Return an array of scalars at an address, the trailing dimensions seen as elements.

    Strides are in scalars; None for row-major without gaps. The array keeps `owner` alive. ArgumentError, which starts
    with `function`, if the memory cannot be seen so.
    """
    if strides is not None:
        size = element.scalar.itemsize
        strides = tuple([size * stride for stride in strides])
    inner = len(element.shape)
    if inner or len(shape) > MAX_DIMENSIONS:
        if strides is None:
            strides = contiguous_strides(shape, element.scalar.itemsize)
        is_split = shape[-inner:] == element.shape and strides[-inner:] == element.strides
        if not is_split or len(shape) - inner > MAX_DIMENSIONS:
            values = as_elements(function, values_at(address, shape, strides, element.scalar, owner, readonly), element)
            made = array.wrap(values, element, device)
            made.owner = owner
            return made
        shape, strides = shape[:-inner], strides[:-inner]
    return array.at(address, shape, strides, element, device, owner, readonly)


def as_elements(function: str, values: Values, element: ElementLayout) -> Values:
    """Return scalars with an element's trailing dimensions, in the same memory; ArgumentError if that cannot be."""
    inner = len(element.shape)
    if inner and (values.shape[-inner:] != element.shape or values.strides[-inner:] != element.strides):
        values = _split(function, values, element)
    ndim = values.ndim - inner
    if ndim < 0 or ndim > MAX_DIMENSIONS:
        raise ArgumentError(f"{function}: there are {ndim} dimensions of {element.dtype.name}, at most 4 are allowed")
    return values


def _split(function: str, values: Values, element: ElementLayout) -> Values:
    try:
        return split_elements(values, element, None)
    except ArgumentError as error:
        raise ArgumentError(f"{function}: {error}") from None
