"""Memory of arrays on the CPU, always seen through NumPy."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np

from warp._src.array.elements import ElementLayout, contiguous_strides
from warp.errors import ArgumentError

# Places of elements that are compared one by one to find out whether any two meet.
_COMPARED_ELEMENTS = 1 << 20
# What other frameworks want of memory that they share without a copy.
ALIGNMENT: Final = 64

Values: TypeAlias = "np.ndarray[Any, Any]"


class ForeignMemory:
    """Memory that somebody else allocated, kept alive by `owner`, given back through `deleter(address, size)`."""

    __slots__ = ("__array_interface__", "__weakref__", "owner")

    def __init__(
        self, address: int, size: int, owner: object, deleter: Callable[[int, int], object] | None, readonly: bool
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, readonly),
            "shape": (size,),
            "typestr": "|u1",
        }
        if deleter is not None:
            weakref.finalize(self, deleter, address, size)


class _Interface:
    """Something for NumPy to wrap, which keeps the memory's owner alive."""

    __slots__ = ("__array_interface__", "owner")
    __array_interface__: dict[str, object]
    owner: object


def values_at(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    scalar: np.dtype[Any],
    owner: object,
    readonly: bool = False,
) -> Values:
    """Return scalars at an address as a NumPy array that keeps `owner` alive; strides are in bytes."""
    if 0 in shape:
        values = np.empty(shape, scalar)
        values.flags.writeable = not readonly
        return values
    memory = _Interface()
    memory.owner = owner
    memory.__array_interface__ = {
        "version": 3,
        "data": (address, readonly),
        "shape": shape,
        "strides": strides,
        "typestr": scalar.str,
    }
    return np.asarray(memory)


def address_of(values: Values) -> int:
    """Return the address of a NumPy array's first element."""
    return int(values.__array_interface__["data"][0])


def allocate(shape: tuple[int, ...], element: ElementLayout, zeroed: bool) -> Values:
    """Return new memory of a shape, without gaps."""
    return allocate_scalars(shape + element.shape, element.scalar, zeroed)


def allocate_scalars(shape: tuple[int, ...], scalar: np.dtype[Any], zeroed: bool) -> Values:
    """Return new memory of a shape, without gaps, whose address is a multiple of `ALIGNMENT`."""
    make: Callable[..., Values] = np.zeros if zeroed else np.empty
    size = math.prod(shape) * scalar.itemsize
    memory = make(size + ALIGNMENT, np.uint8)
    start = -address_of(memory) % ALIGNMENT
    aligned: Values = memory[start : start + size].view(scalar).reshape(shape)
    return aligned


def copy_scalars(values: Values, scalar: np.dtype[Any]) -> Values:
    """Return a copy without gaps, converted to another type, in memory that is aligned likewise."""
    made = allocate_scalars(values.shape, scalar, False)
    np.copyto(made, values, casting="unsafe")
    return made


def allocate_strided(shape: tuple[int, ...], strides: tuple[int, ...], element: ElementLayout) -> Values:
    """Return new zeroed memory seen with the given byte strides."""
    return view_bytes(np.zeros(span(shape, strides, element.size), np.uint8), shape, strides, element)


def span(shape: tuple[int, ...], strides: tuple[int, ...], element_size: int) -> int:
    """Return the bytes from the first element to the end of the last one; ArgumentError for negative strides."""
    if len(strides) != len(shape):
        raise ArgumentError(f"strides: {len(strides)} given for {len(shape)} dimensions")
    if strides and min(strides) < 0:
        raise ArgumentError(f"strides must not be negative, got {strides}")
    if 0 in shape:
        return 0
    return element_size + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...], element_size: int
) -> tuple[int, ...] | None:
    """Return the byte strides of the same memory in another shape of as many elements; None if that needs a copy."""
    if 0 in shape:
        return contiguous_strides(wanted, element_size)
    # Runs of dimensions without gaps between them, innermost first: extent and stride of the last one.
    runs: list[list[int]] = []
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 1:
            continue
        if runs and stride == runs[-1][1] * runs[-1][0]:
            runs[-1][0] *= extent
        else:
            runs.append([extent, stride])
    found: list[int] = []
    for extent in reversed(wanted):
        while runs and runs[0][0] == 1:
            runs.pop(0)
        if extent == 1:
            found.append(runs[0][1] if runs else element_size)
            continue
        left, stride = runs[0]
        if left % extent:
            return None
        found.append(stride)
        runs[0] = [left // extent, stride * extent]
    return tuple(reversed(found))


def reach(shape: tuple[int, ...], strides: tuple[int, ...], element_size: int) -> tuple[int, int]:
    """Return where the elements begin and end, in bytes from the first one; it begins below 0 with negative strides."""
    if 0 in shape:
        return 0, 0
    extents = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(min(extent, 0) for extent in extents), element_size + sum(max(extent, 0) for extent in extents)


@lru_cache(maxsize=1024)
def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...], element_size: int) -> bool:
    """Tell whether two elements share memory; of layouts that are large and not nested, whether they could."""
    inside = element_size
    steps = sorted((abs(stride), extent) for extent, stride in zip(shape, strides, strict=True) if extent > 1)
    for stride, extent in steps:
        if stride < inside:
            return _any_meet(shape, strides, element_size)
        inside = stride * (extent - 1) + inside
    return False


def _any_meet(shape: tuple[int, ...], strides: tuple[int, ...], element_size: int) -> bool:
    """Compare the places of all elements, unless there are too many."""
    if int(np.prod(shape)) > _COMPARED_ELEMENTS:
        return True
    places = np.zeros(1, np.int64)
    for extent, stride in zip(shape, strides, strict=True):
        places = (places[:, None] + np.arange(extent) * stride).ravel()
    return bool((np.diff(np.sort(places)) < element_size).any())


def view_bytes(memory: Values, shape: tuple[int, ...], strides: tuple[int, ...], element: ElementLayout) -> Values:
    """Return elements of a type in a block of bytes."""
    full_strides = strides + element.strides
    try:
        seen: Values = np.ndarray(shape + element.shape, element.scalar, buffer=memory, strides=full_strides)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"shape {shape} with strides {strides} does not fit into {memory.nbytes} bytes of memory"
        ) from error
    return seen


def allocation_of(values: Values) -> tuple[int, int]:
    """Return the addresses of the block of memory that a NumPy array is a view of."""
    root = values
    while isinstance(root.base, np.ndarray):
        root = root.base
    low = high = address_of(root)
    if not root.size:
        return low, low
    for size, stride in zip(root.shape, root.strides, strict=True):
        extent = (size - 1) * stride
        low, high = (low + extent, high) if extent < 0 else (low, high + extent)
    return low, high + root.itemsize
