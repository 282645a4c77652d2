"""A stand-in for the `warp` module that runs the generated programs as plain Python, thread by thread."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Vec3:
    """A vector, of 3 components if none are given, with the semantics of a value: reading or passing it on copies."""

    def __init__(self, *components: float) -> None:
        self.c = list(components) or [0.0, 0.0, 0.0]

    def __getitem__(self, index: Any) -> Any:
        return Vec3(*self.c[index]) if isinstance(index, slice) else self.c[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.c[index] = value.c if isinstance(index, slice) else value

    def __add__(self, other: Vec3) -> Vec3:
        return self.combined(other, lambda a, b: a + b)

    def __sub__(self, other: Vec3) -> Vec3:
        return self.combined(other, lambda a, b: a - b)

    def __mul__(self, factor: float) -> Vec3:
        return Vec3(*(a * factor for a in self.c))

    __rmul__ = __mul__

    def combined(self, other: Vec3, function: Callable[[float, float], float]) -> Vec3:
        return Vec3(*(function(a, b) for a, b in zip(self.c, other.c, strict=True)))


class Mat22:
    """A matrix with the semantics of a value."""

    def __init__(self, *numbers: float) -> None:
        self.rows = [Vec3(*numbers[:2]), Vec3(*numbers[2:])]

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, tuple):
            return Vec3(*self.rows[index].c)
        row, column = index
        return Vec3(*(part[column] for part in self.rows)) if isinstance(row, slice) else self.rows[row][column]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, tuple):
            self.rows[index[0]][index[1]] = value
        else:
            self.rows[index] = Vec3(*value.c)

    def __add__(self, other: Mat22) -> Mat22:
        return Mat22(*(number for a, b in zip(self.rows, other.rows, strict=True) for number in (a + b).c))

    def __mul__(self, factor: float) -> Mat22:
        return Mat22(*(number * factor for row in self.rows for number in row.c))

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Vec3):
            return Vec3(*(Model.dot(row, other) for row in self.rows))
        return Mat22(*(Model.dot(row, other[:, column]) for row in self.rows for column in range(2)))


class Whole(int):
    """An integer that wraps around."""

    bits: int
    is_signed: bool

    def __new__(cls, value: Any) -> Whole:
        wrapped = int(value) & ((1 << cls.bits) - 1)
        return super().__new__(cls, wrapped - (1 << cls.bits if cls.is_signed and wrapped >> (cls.bits - 1) else 0))


def _wrapping(name: str) -> Callable[..., Whole]:
    operation = getattr(int, name)
    return lambda self, *others: type(self)(operation(int(self), *map(int, others)))


for _name in "add sub mul mod and or xor lshift rshift neg invert".split():
    setattr(Whole, f"__{_name}__", _wrapping(f"__{_name}__"))


class UInt32(Whole):
    """Unsigned, 32 bits."""

    bits, is_signed = 32, False


class Int8(Whole):
    """Two's complement, 8 bits."""

    bits, is_signed = 8, True


class Body:
    """A struct with the semantics of a value."""

    def __init__(self, a: float = 0.0, v: Vec3 | None = None, k: int = 0) -> None:
        self.a, self.v, self.k = a, v or Vec3(), k


class Array:
    """An array over NumPy memory whose elements are numbers, or vectors if `is_vector`, or structs."""

    def __init__(self, memory: np.ndarray, is_vector: bool = False) -> None:
        self.memory, self.is_vector = memory, is_vector

    @property
    def shape(self) -> tuple[int, ...]:
        return self.memory.shape

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
    vec3d = vec2d = Vec3
    mat22d = Mat22
    uint32 = UInt32
    int8 = Int8
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

        def passed(arg: Any) -> Any:
            return arg if isinstance(arg, (Array, np.ndarray)) else copy.deepcopy(arg)

        return lambda *args, **named: function(*map(passed, args), **{name: passed(arg) for name, arg in named.items()})

    @staticmethod
    def zeros(shape: Any, dtype: Any) -> np.ndarray:
        return np.zeros(shape)

    @staticmethod
    def static(value: Any) -> Any:
        return value

    @staticmethod
    def determinant(m: Mat22) -> float:
        return m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]

    @staticmethod
    def trace(m: Mat22) -> float:
        return m[0, 0] + m[1, 1]

    @staticmethod
    def transpose(m: Mat22) -> Mat22:
        return Mat22(m[0, 0], m[1, 0], m[0, 1], m[1, 1])

    @staticmethod
    def struct(declaration: type) -> type[Body]:
        return Body

    @staticmethod
    def where(condition: bool, a: Any, b: Any) -> Any:
        return a if condition else b

    @staticmethod
    def dot(a: Vec3, b: Vec3) -> float:
        return sum(x * y for x, y in zip(a.c, b.c, strict=True))
