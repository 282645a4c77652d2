"""Overloads of every builtin at representative types, and arguments to call them with."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np

import warp._src.builtins  # noqa: F401 - fills the registry
from warp._src.builtins.declare import REGISTRY, Builtin, Overload, overload_of
from warp._src.builtins.patterns import Mat, Quat, Ten, Transf, Vec, substitute
from warp._src.types.scalars import SCALARS, bfloat16, float16, float32, float64, int32, is_scalar, uint8
from warp._src.types.tensors import matrix, quaternion, transformation, vector

SIZES = {"N": (3, 2, 5, 4), "R": (2, 3, 4), "C": (3, 4, 2), "K": (4, 2, 3), "L": (2, 3, 4)}


@dataclass(frozen=True)
class Pool:
    """Types to choose from: scalars of tensors, and tensors that are matched as a whole."""

    scalars: tuple[Any, ...]
    wholes: tuple[Any, ...]


SOME = Pool(
    (float32, float64, float16, int32, uint8, bfloat16),
    (
        vector(3, float32), vector(2, float64), vector(5, float16), vector(4, int32), vector(3, uint8),
        matrix((2, 3), float32), matrix((3, 3), float64), matrix((4, 4), int32),
        quaternion(float32), quaternion(float64), quaternion(float16),
        transformation(float32), transformation(float64),
        vector(3, bfloat16), matrix((2, 2), bfloat16), quaternion(bfloat16),
    ),
)  # fmt: skip
"""A mix in which every class meets every kind of type."""
EVERY = Pool(
    SCALARS,
    tuple(
        tensor
        for scalar in SCALARS
        for tensor in (
            *(vector(size, scalar) for size in (2, 3, 4)),
            *(matrix((size, size), scalar) for size in (2, 3, 4)),
            *((quaternion(scalar), transformation(scalar)) if scalar.kind == "f" else ()),
        )
    ),
)
"""Every scalar type, for tensors too."""
ANY_TYPE = (float64, float32, int32, vector(3, float32), matrix((2, 2), float64))


def records() -> list[Builtin]:
    """List every overload class that computes something with numbers."""
    every = [record for overloads in REGISTRY.values() for record in overloads]
    return [record for record in every if not record.has_effects and record.group != "Arrays"]


def instances(record: Builtin, pool: Pool = SOME) -> list[Overload]:
    """Instantiate an overload class: all scalar types for scalars, those of a pool and a mix of sizes for tensors."""
    found: dict[tuple[Any, ...], Overload] = {}
    for bindings in _bindings(record, pool):
        types = [substitute(pattern, bindings) for pattern in record.parameters.values()]
        overload = overload_of(record, types)
        assert overload is not None, f"{record.signature} does not take {types}"
        found[overload.param_types] = overload
    return list(found.values())


def _bindings(record: Builtin, pool: Pool) -> Iterator[dict[TypeVar, Any]]:
    patterns = [*record.parameters.values(), *record.results]
    variables = list(dict.fromkeys(variable for pattern in patterns for variable in _variables(pattern)))
    wholes = {v: s for p in patterns for v, s in _wholes(p)}
    if wholes:
        ((whole, scalar),) = wholes.items()
        yield from ({whole: type, scalar: type.scalar} for type in pool.wholes if _allows(scalar, type.scalar))
        return
    scalars = [v for v in variables if v.__name__ not in SIZES]
    sizes = [v for v in variables if v.__name__ in SIZES]
    is_tensor = any(typing.get_origin(pattern) in (Vec, Mat, Quat, Transf) for pattern in patterns)
    choices = [_choices(variable, pool.scalars if is_tensor else SCALARS) for variable in scalars]
    combinations = list(product(*choices))
    for index in range(max(len(combinations), 3 if sizes else 1)):
        bound = dict(zip(scalars, combinations[index % len(combinations)], strict=True))
        bound.update({v: SIZES[v.__name__][index % len(SIZES[v.__name__])] for v in sizes})
        yield bound


def _choices(variable: TypeVar, types: tuple[Any, ...]) -> tuple[Any, ...]:
    if variable.__name__ == "T":
        return ANY_TYPE
    return tuple(scalar for scalar in types if _allows(variable, scalar))


def _allows(variable: TypeVar, type: Any) -> bool:
    return not variable.__constraints__ or type in variable.__constraints__


def _variables(pattern: Any) -> Iterator[TypeVar]:
    if isinstance(pattern, TypeVar):
        yield pattern
    for argument in typing.get_args(pattern):
        if typing.get_origin(pattern) is not typing.Literal:
            yield from _variables(argument)


def _wholes(pattern: Any) -> Iterator[tuple[TypeVar, TypeVar]]:
    if typing.get_origin(pattern) is Ten:
        yield typing.get_args(pattern)


@dataclass
class Sampler:
    """Draws arguments of an overload from the ranges that its declaration gives."""

    overload: Overload
    random: np.random.Generator

    def draw(self) -> list[Any]:
        """Give one list of NumPy arguments that the declaration's condition accepts."""
        record = self.overload.builtin
        condition = record.sampling.condition
        for _ in range(1000):
            args = [self.argument(name, type) for name, type in self._parameters()]
            is_float = any(scalar_type(type).kind == "f" for type in self.overload.param_types)
            if condition is None or not is_float or condition(*args):
                return args
        raise AssertionError(f"no sample of {self.overload.label} meets its condition")

    def _parameters(self) -> list[tuple[str, Any]]:
        return list(zip(self.overload.builtin.parameters, self.overload.param_types, strict=True))

    def argument(self, name: str, type: Any) -> Any:
        """Draw one argument."""
        scalar, shape = scalar_type(type), () if is_scalar(type) else type.shape
        if scalar.kind == "f":
            low, high = self.overload.builtin.sampling.ranges.get(name, (-2.0, 2.0))
            value = rounded(scalar, self.random.uniform(low, high, shape))
        elif scalar.kind == "b":
            value = self.random.integers(0, 2, shape).astype(np.bool_)
        elif name in self.overload.builtin.sampling.ranges:
            low, high = self.overload.builtin.sampling.ranges[name]
            value = np.asarray(self.random.integers(int(low), int(high), shape)).astype(scalar.dtype)
        else:
            value = self._integers(scalar, shape)
        return value if shape else scalar.numeric.type(value)

    def _integers(self, scalar: Any, shape: tuple[int, ...]) -> Any:
        if self.random.random() < 0.6:
            lowest = -5 if scalar.kind == "i" else 0
            return np.asarray(self.random.integers(lowest, 6, shape)).astype(scalar.dtype)
        bounds = np.iinfo(scalar.dtype)
        return np.asarray(self.random.integers(bounds.min, bounds.max, shape, dtype=scalar.dtype, endpoint=True))


def scalar_type(type: Any) -> Any:
    """Give the scalar type of a scalar or tensor type."""
    return type if is_scalar(type) else type.scalar


def shaped(type: Any, value: Any) -> Any:
    """Bring a reference's result to the dtype and shape of its type."""
    return rounded(scalar_type(type), value).reshape(() if is_scalar(type) else type.shape)


def rounded(scalar: Any, value: Any) -> Any:
    """Bring NumPy numbers to a scalar type."""
    numbers = np.asarray(value, dtype=scalar.numeric)
    if scalar is not bfloat16:
        return numbers
    return bfloat16.decode_array(bfloat16.encode_array(value))
