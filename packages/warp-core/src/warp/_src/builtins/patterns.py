"""Type patterns in which builtins are declared; they are ordinary annotations that type checkers understand.

`def dot(a: Vec[N, F], b: Vec[N, F]) -> F` matches two vectors of one length and one float type. A type
variable stands for one type (or one length) throughout a signature.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

from warp._src.ir.core import Type
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import (
    Scalar,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    is_scalar,
    uint8,
    uint16,
    uint32,
    uint64,
)
from warp._src.types.tensors import Tensor, matrix, quaternion, transformation, vector

# Kinds of scalars that a type variable may stand for.
F = TypeVar("F", float16, bfloat16, float32, float64)
D = TypeVar("D", float32, float64)
I = TypeVar("I", int8, int16, int32, int64, uint8, uint16, uint32, uint64)  # noqa: E741 - a kind, like its neighbours
S = TypeVar("S", float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64)
# Any scalar, bool included; any type at all.
B = TypeVar("B", bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64)
A = TypeVar("A", bool_, float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64)
T = TypeVar("T")
# Lengths.
N = TypeVar("N")
R = TypeVar("R")
C = TypeVar("C")
K = TypeVar("K")
Two = Literal[2]
Three = Literal[3]
Four = Literal[4]
Six = Literal[6]
# A length from 2 to 4.
L = TypeVar("L", Two, Three, Four)
# A tensor type as a whole.
X = TypeVar("X")


class Vec(Generic[N, T]):
    """Any vector of length N over the scalar type T."""


class Mat(Generic[R, C, T]):
    """Any R x C matrix over the scalar type T."""


class Quat(Generic[T]):
    """Any quaternion over the scalar type T."""


class Transf(Generic[T]):
    """Any transform over the scalar type T."""


class Ten(Generic[X, T]):
    """Any tensor type X (vector, matrix, quaternion or transform) over the scalar type T."""


Bindings = dict[TypeVar, Any]

_CATEGORIES = {Vec: "vector", Mat: "matrix", Quat: "quaternion", Transf: "transform"}


def match(pattern: Any, type: Type, bindings: Bindings) -> bool:
    """Match a concrete type against a pattern and extend `bindings`; on failure they are undefined."""
    if isinstance(pattern, TypeVar):
        if pattern in bindings:
            return bool(bindings[pattern] == type)
        if pattern.__constraints__ and not any(match(kind, type, bindings) for kind in pattern.__constraints__):
            return False
        bindings[pattern] = type
        return True
    origin = typing.get_origin(pattern)
    if origin is None:
        return bool(pattern == type)
    if origin is Literal:
        return type in typing.get_args(pattern)
    if not (isinstance(type, _CLASS) and issubclass(type, Tensor)):
        return False
    if origin is Ten:
        whole, scalar = typing.get_args(pattern)
        return match(whole, type, bindings) and match(scalar, type.scalar, bindings)
    if type.category != _CATEGORIES[origin]:
        return False
    sizes = type.shape if origin in (Vec, Mat) else ()
    return all(
        match(argument, part, bindings)
        for argument, part in zip(typing.get_args(pattern), (*sizes, type.scalar), strict=True)
    )


def substitute(pattern: Any, bindings: Mapping[TypeVar, Any]) -> Type:
    """Give the concrete type that a pattern stands for under `bindings`."""
    if isinstance(pattern, TypeVar):
        return bindings[pattern]
    origin = typing.get_origin(pattern)
    if origin is None:
        return pattern
    if origin is Literal:
        return typing.get_args(pattern)[0]
    arguments = [substitute(argument, bindings) for argument in typing.get_args(pattern)]
    if origin is Ten:
        return arguments[0]
    if origin is Vec:
        return vector(arguments[0], arguments[1])
    if origin is Mat:
        return matrix((arguments[0], arguments[1]), arguments[2])
    if origin is Quat:
        return quaternion(arguments[0])
    return transformation(arguments[0])


def accepts_scalar(pattern: Any, bindings: Bindings, kind: str, default: type[Scalar]) -> type[Scalar] | None:
    """Tell which scalar type an untyped literal of a kind ("i" or "f") takes under a pattern, if any.

    A literal adopts the type that the typed arguments gave to its type variable; it never turns an integer
    into a float or the other way round.
    """
    if isinstance(pattern, TypeVar):
        if pattern in bindings:
            candidate = bindings[pattern]
        elif pattern.__constraints__ and default not in pattern.__constraints__:
            return None
        else:
            candidate = default
    else:
        candidate = pattern
    if not is_scalar(candidate):
        return None
    kinds = ("i", "u") if kind == "i" else (kind,)
    if candidate.kind not in kinds:
        return None
    if isinstance(pattern, TypeVar):
        bindings[pattern] = candidate
    scalar: type[Scalar] = candidate
    return scalar


def pattern_name(pattern: Any) -> str:
    """Spell a pattern for messages and documentation: "vector(length=N, dtype=Float)"."""
    if isinstance(pattern, TypeVar):
        return {
            "F": "Float",
            "D": "float32 or float64",
            "I": "Int",
            "S": "Scalar",
            "A": "Scalar or bool",
            "B": "Int or bool",
        }.get(pattern.__name__, pattern.__name__)
    origin = typing.get_origin(pattern)
    if origin is None:
        return str(getattr(pattern, "name", pattern))
    if origin is Literal:
        return str(typing.get_args(pattern)[0])
    parts = [pattern_name(argument) for argument in typing.get_args(pattern)]
    if origin is Ten:
        return f"tensor(dtype={parts[1]})"
    if origin is Vec:
        return f"vector(length={parts[0]}, dtype={parts[1]})"
    if origin is Mat:
        return f"matrix(shape=({parts[0]}, {parts[1]}), dtype={parts[2]})"
    return f"{_CATEGORIES[origin]}(dtype={parts[0]})"


_CLASS = type
__all__ = [
    "A",
    "ArrayType",
    "B",
    "Bindings",
    "C",
    "D",
    "F",
    "Four",
    "I",
    "K",
    "L",
    "Mat",
    "N",
    "Quat",
    "R",
    "S",
    "Six",
    "T",
    "Ten",
    "Three",
    "Transf",
    "Two",
    "Vec",
    "X",
    "accepts_scalar",
    "match",
    "pattern_name",
    "substitute",
]
