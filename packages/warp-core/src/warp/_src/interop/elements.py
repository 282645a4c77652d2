"""Seeing foreign scalars as elements of a type, in place."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from warp._src.array.array import array
from warp._src.array.convert import split_elements
from warp._src.array.elements import ElementLayout, contiguous_strides, element_layout
from warp._src.array.geometry import Geometry, geometry_of
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
    if strides is not None and strides.__class__ is not tuple:
        strides = tuple(strides)
    geometry = _geometry(shape, strides, element)
    if geometry is not None:
        return array.at(address, geometry, element, device, owner, readonly)
    steps = None if strides is None else tuple([element.scalar.itemsize * stride for stride in strides])
    values = values_at(address, shape, steps, element.scalar, owner, readonly)
    made = array.wrap(as_elements(function, values, element), element, device)
    made.owner = owner
    return made


@lru_cache(maxsize=1024)
def _geometry(shape: tuple[int, ...], strides: tuple[int, ...] | None, element: ElementLayout) -> Geometry | None:
    """Return how elements lie in memory, for the shape and strides of scalars; None where they must be regrouped."""
    size, inner = element.scalar.itemsize, len(element.shape)
    steps = contiguous_strides(shape, size) if strides is None else tuple([size * stride for stride in strides])
    if inner:
        if shape[-inner:] != element.shape or steps[-inner:] != element.strides:
            return None
        shape, steps = shape[:-inner], steps[:-inner]
    return geometry_of(shape, steps, element.size) if len(shape) <= MAX_DIMENSIONS else None


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
