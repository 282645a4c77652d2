"""Building blocks of the reference implementations.

A reference takes NumPy scalars, arrays of a tensor's shape, or dual numbers and object arrays of them; it uses
operators and NumPy's ufuncs, which all of these understand. Sums run in the order of the C++ text, so that both
round alike. Whoever calls a reference silences NumPy's warnings about overflow and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

Number = Any  # NumPy scalar or dual number
Array = Any  # array of such


def pack(values: Iterable[Number], shape: tuple[int, ...] | None = None) -> Array:
    """Make an array of scalars of one type, without a change of type."""
    flat = list(values)
    dtype = flat[0].dtype if all(isinstance(value, np.generic) for value in flat) else object
    result = np.empty(len(flat), dtype=dtype)
    for index, value in enumerate(flat):
        result[index] = value
    return result if shape is None else result.reshape(shape)


def scalars(tensor: Array) -> list[Number]:
    """List the scalars of a tensor in row-major order."""
    return list(tensor.reshape(-1))


def componentwise(function: Callable[..., Number]) -> Callable[..., Array]:
    """Extend a function of scalars to tensors of one shape; a scalar argument meets every component."""

    def mapped(*args: Any) -> Array:
        tensors = [arg for arg in args if isinstance(arg, np.ndarray) and arg.ndim]
        size, shape = tensors[0].size, tensors[0].shape
        columns = [scalars(arg) if isinstance(arg, np.ndarray) and arg.ndim else [arg] * size for arg in args]
        return pack((function(*row) for row in zip(*columns, strict=True)), shape)

    return mapped


def is_integer(x: Number) -> bool:
    return isinstance(x, (np.integer, np.bool_))


def wrapped(value: int, like: Number) -> Number:
    """Wrap a Python integer around to the integer type of `like`."""
    dtype = like.dtype
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    if dtype.kind == "i" and value >> (bits - 1):
        value -= 1 << bits
    return dtype.type(value)


def constant(number: float, like: Number) -> Number:
    """Give a number as a scalar of the type of `like`; dual numbers take Python's."""
    return like.dtype.type(number) if isinstance(like, (np.generic, np.ndarray)) and like.dtype != object else number


def total(values: Sequence[Number]) -> Number:
    """Add from left to right."""
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def dot(a: Array, b: Array) -> Number:
    """Sum the products of the scalars in order."""
    return total([x * y for x, y in zip(scalars(a), scalars(b), strict=True)])


def choose(condition: Any, value_if_true: Any, value_if_false: Any) -> Any:
    return value_if_true if condition else value_if_false


__all__ = [
    "Array",
    "Number",
    "choose",
    "componentwise",
    "constant",
    "dot",
    "is_integer",
    "pack",
    "scalars",
    "total",
    "wrapped",
]
