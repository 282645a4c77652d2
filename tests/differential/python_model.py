"""A stand-in for the `warp` module that runs the generated programs as plain Python, thread by thread."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Vec3:
    """A vector with the semantics of a value: reading an element or passing it on makes a copy."""

    def __init__(self, *components: float) -> None:
        self.c = list(components) or [0.0, 0.0, 0.0]

    def __getitem__(self, index: int) -> float:
        return self.c[index]

    def __setitem__(self, index: int, value: float) -> None:
        self.c[index] = value

    def __add__(self, other: Vec3) -> Vec3:
        return self.combined(other, lambda a, b: a + b)

    def __sub__(self, other: Vec3) -> Vec3:
        return self.combined(other, lambda a, b: a - b)

    def __mul__(self, factor: float) -> Vec3:
        return Vec3(*(a * factor for a in self.c))

    __rmul__ = __mul__

    def combined(self, other: Vec3, function: Callable[[float, float], float]) -> Vec3:
        return Vec3(*(function(a, b) for a, b in zip(self.c, other.c, strict=True)))


class Body:
    """A struct with the semantics of a value."""

    def __init__(self, a: float = 0.0, v: Vec3 | None = None, k: int = 0) -> None:
        self.a, self.v, self.k = a, v or Vec3(), k


class Array:
    """An array over NumPy memory whose elements are numbers, or vectors if `is_vector`, or structs."""

    def __init__(self, memory: np.ndarray, is_vector: bool = False) -> None:
        self.memory, self.is_vector = memory, is_vector

    def __getitem__(self, index: Any) -> Any:
        found = self.memory[index]
        if self.memory.dtype.names is not None:
            return BodyInMemory(self.memory, index)
        if self.is_vector:
            return VectorInMemory(found)
        return Array(found) if isinstance(found, np.ndarray) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, (Body, BodyInMemory)):
            value = (value.a, tuple(value.v.c), value.k)
        self.memory[index] = value.c if isinstance(value, Vec3) else value


class VectorInMemory(Vec3):
    """A vector of an array; `a[i][c] = v` writes through."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory
        self.c = memory.tolist()

    def __setitem__(self, index: int, value: float) -> None:
        self.memory[index] = value


class BodyInMemory:
    """A struct of an array; its fields write through."""

    def __init__(self, memory: np.ndarray, index: int) -> None:
        self.__dict__.update(memory=memory, index=index)

    def __getattr__(self, name: str) -> Any:
        found = self.memory[name][self.index]
        return VectorInMemory(found) if name == "v" else found.item()

    def __setattr__(self, name: str, value: Any) -> None:
        self.memory[name][self.index] = value.c if isinstance(value, Vec3) else value


def copied(value: Any) -> Any:
    """Read a vector or struct of an array as a value of its own."""
    if isinstance(value, (Body, BodyInMemory)):
        return Body(value.a, Vec3(*value.v.c), value.k)
    return Vec3(*value.c)


def _atomic(combine: Callable[..., Any]) -> Callable[..., Any]:
    """Make an atomic from what it stores, given the old value and the further arguments; vectors by component."""

    def atomic(array: Array, *arguments: Any) -> Any:
        rank = array.memory.ndim - array.is_vector
        index, values = arguments[:rank], arguments[rank:]
        place = index if rank > 1 else index[0]
        old = array[place]
        if isinstance(old, Vec3):
            old = copied(old)
            array[place] = old.combined(values[0], combine)
        else:
            array[place] = combine(old, *values)
        return old

    return atomic


class Model:
    """The names that generated programs use of `warp`; `thread` is the running thread."""

    float64 = float
    int32 = int
    vec3d = Vec3
    sin = staticmethod(math.sin)
    tanh = staticmethod(math.tanh)
    max = staticmethod(max)
    atomic_add = staticmethod(_atomic(lambda old, value: old + value))
    atomic_sub = staticmethod(_atomic(lambda old, value: old - value))
    atomic_min = staticmethod(_atomic(min))
    atomic_max = staticmethod(_atomic(max))
    atomic_exch = staticmethod(_atomic(lambda old, value: value))
    atomic_cas = staticmethod(_atomic(lambda old, expected, value: value if old == expected else old))

    def __init__(self) -> None:
        self.thread: tuple[int, ...] = (0,)

    def tid(self) -> Any:
        return self.thread if len(self.thread) > 1 else self.thread[0]

    @staticmethod
    def array(**options: Any) -> type[Array]:
        return Array

    array2d = array

    @staticmethod
    def kernel(function: Callable[..., None]) -> Callable[..., None]:
        return function

    @staticmethod
    def func(function: Callable[..., Any]) -> Callable[..., Any]:
        """Pass structs by value where the callee returns them changed."""
        return lambda *args: function(*(copy.deepcopy(arg) for arg in args))

    @staticmethod
    def struct(declaration: type) -> type[Body]:
        return Body

    @staticmethod
    def where(condition: bool, a: Any, b: Any) -> Any:
        return a if condition else b

    @staticmethod
    def dot(a: Vec3, b: Vec3) -> float:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
