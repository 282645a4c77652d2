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
        return Vec3(*(a + b for a, b in zip(self.c, other.c, strict=True)))

    def __sub__(self, other: Vec3) -> Vec3:
        return Vec3(*(a - b for a, b in zip(self.c, other.c, strict=True)))

    def __mul__(self, factor: float) -> Vec3:
        return Vec3(*(a * factor for a in self.c))

    __rmul__ = __mul__


class Array:
    """An array of floats, integers or vectors over NumPy memory; `a[i][c] = v` writes through."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    def __getitem__(self, index: int) -> Any:
        return Element(self.memory[index]) if self.memory.ndim == 2 else self.memory[index].item()

    def __setitem__(self, index: int, value: Any) -> None:
        self.memory[index] = value.c if isinstance(value, Vec3) else value


class Element(Vec3):
    """A vector in memory."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory
        self.c = memory.tolist()

    def __setitem__(self, index: int, value: float) -> None:
        self.memory[index] = value


class Model:
    """The names that generated programs use of `warp`; `thread` is the running thread."""

    float64 = float
    int32 = int
    vec3d = Vec3
    sin = staticmethod(math.sin)
    tanh = staticmethod(math.tanh)
    max = staticmethod(max)

    def __init__(self) -> None:
        self.thread = 0

    def tid(self) -> int:
        return self.thread

    @staticmethod
    def array(**options: Any) -> type[Array]:
        return Array

    @staticmethod
    def kernel(function: Callable[..., None]) -> Callable[..., None]:
        return function

    @staticmethod
    def func(function: Callable[..., Any]) -> Callable[..., Any]:
        """Pass structs by value where the callee returns them changed."""
        return lambda *args: function(*(copy.deepcopy(arg) for arg in args))

    @staticmethod
    def struct(declaration: type) -> Callable[[], Any]:
        def make() -> Any:
            instance = declaration()
            instance.a, instance.v = 0.0, Vec3()
            return instance

        return make

    @staticmethod
    def where(condition: bool, a: Any, b: Any) -> Any:
        return a if condition else b

    @staticmethod
    def dot(a: Vec3, b: Vec3) -> float:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]

    @staticmethod
    def atomic_add(array: Array, index: int, value: float) -> None:
        array[index] = array[index] + value
