"""Runs a kernel on dual numbers: the derivatives of all its outputs by all its inputs in one forward run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from warp._src.ir.core import Function, Type
from warp._src.ir.dual import Dual, as_dual
from warp._src.ir.interp import Interpreter
from warp._src.ir.memory import ArrayCell, as_argument
from warp._src.types.scalars import is_float, is_scalar
from warp._src.types.signature import is_array, is_tensor


def run_kernel_dual(
    function: Function,
    dim: int | Sequence[int],
    args: Sequence[Any],
    directions: Sequence[Any],
    *,
    order: str = "ascending",
    natives: Mapping[str, Callable[..., Any]] | None = None,
) -> list[Any]:
    """Run a kernel on duals over copies of `args`; gives the derivatives of every argument afterwards.

    A direction is None, or an array of shape (directions,) + the argument's shape (a dict of these for a
    struct, and for an array of structs). The results have this form too: None for arguments without floats.
    The primal values afterwards are those of `run_kernel`, up to rounding to float32. Arguments that alias keep
    doing so.
    """
    count = next((len(leaf) for leaf in _leaves(directions)), 0)
    lifter = _Lifter(count)
    pairs = zip(args, function.params, directions, strict=True)
    values = [lifter.lift(as_argument(arg, param.type), param.type, direction) for arg, param, direction in pairs]
    Interpreter(function, lift=as_dual, natives=natives).launch(dim, values, order)
    return [_derivatives(value, param.type, count) for value, param in zip(values, function.params, strict=True)]


class _Lifter:
    """Copies arguments into memory of duals; memory that is shared is copied once."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.copies: dict[int, tuple[Any, Any]] = {}

    def lift(self, value: Any, type: Type, direction: Any) -> Any:
        if is_array(type):
            return replace(value, primal=self.memory(value, direction), gradient=None)
        if is_scalar(type):
            return self.seeded(value, direction) if is_float(type) else value
        if is_tensor(type):
            return self.elements(value, direction) if is_float(type.scalar) else value
        parts = direction or {}
        return {name: self.lift(value[name], field, parts.get(name)) for name, field in type.fields.items()}

    def memory(self, cell: ArrayCell, direction: Any) -> Any:
        root = cell.primal
        while isinstance(root.base, np.ndarray):
            root = root.base
        if id(root) not in self.copies:
            self.copies[id(root)] = (root, self.copy(root, cell.dtype))
        view = _same_view(self.copies[id(root)][1], root, cell.primal)
        if isinstance(direction, Mapping):
            for position in np.ndindex(view.shape):
                at = (slice(None), *position)
                parts = {name: np.asarray(part)[at] for name, part in direction.items()}
                view[position] = self.lift(cell.primal[position], cell.dtype, parts)
        elif direction is not None:
            seeds = np.moveaxis(np.asarray(direction, dtype=np.float64), 0, -1)
            for position in np.ndindex(view.shape):
                view[position] = Dual(view[position].value, view[position].d + seeds[position])
        return view

    def copy(self, root: Any, dtype: Type) -> Any:
        if root.dtype == object:
            result = np.empty_like(root)
            for position in np.ndindex(root.shape):
                result[position] = self.lift(root[position], dtype, None)
            return result
        return self.elements(root, None) if root.dtype.kind == "f" else root.copy()

    def elements(self, value: Any, direction: Any) -> Any:
        result = np.empty(value.shape, dtype=object)
        seeds = None if direction is None else np.moveaxis(np.asarray(direction), 0, -1)
        for position in np.ndindex(value.shape):
            result[position] = self.seeded(value[position], None if seeds is None else seeds[position])
        return result

    def seeded(self, value: Any, direction: Any) -> Dual:
        return Dual(float(value), 0.0 if direction is None else np.asarray(direction, dtype=np.float64))


def _same_view(copy: Any, root: Any, view: Any) -> Any:
    """Give the view of `copy` that corresponds to `view` of the contiguous array `root`."""
    if view is root:
        return copy
    start = (view.__array_interface__["data"][0] - root.__array_interface__["data"][0]) // root.itemsize
    strides = [stride // root.itemsize * copy.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(copy.reshape(-1)[start:], view.shape, strides)


def _derivatives(value: Any, type: Type, count: int) -> Any:
    if is_array(type):
        return _of_array(value.primal, type.dtype, count)
    if is_scalar(type) or is_tensor(type):
        return _stacked(np.asarray(value, dtype=object), count) if is_float(_scalar(type)) else None
    return {name: _derivatives(value[name], field, count) for name, field in type.fields.items()}


def _of_array(memory: Any, dtype: Any, count: int) -> Any:
    """Derivatives of an array; of an array of structs, those of each field of floats."""
    if is_scalar(dtype) or is_tensor(dtype):
        return _stacked(memory, count)
    results = {}
    for name, field in dtype.fields.items():
        if (is_scalar(field) or is_tensor(field)) and is_float(_scalar(field)):
            shape = () if is_scalar(field) else field.shape
            elements = np.empty((*memory.shape, *shape), dtype=object)
            for position in np.ndindex(memory.shape):
                elements[position] = memory[position][name]
            results[name] = _stacked(elements, count)
    return results


def _scalar(type: Any) -> Any:
    return type.scalar if is_tensor(type) else type


def _stacked(memory: Any, count: int) -> Any:
    """Turn an object array of duals into an array of shape (count,) + shape; None for other arrays."""
    if memory.dtype != object or not all(isinstance(element, Dual) for element in memory.flat):
        return None
    result = np.zeros((*memory.shape, count))
    for position in np.ndindex(memory.shape):
        result[position] = memory[position].d
    return np.moveaxis(result, -1, 0)


def _leaves(directions: Any) -> list[Any]:
    if directions is None:
        return []
    if isinstance(directions, Mapping):
        directions = list(directions.values())
    if isinstance(directions, np.ndarray):
        return [directions]
    return [leaf for part in directions for leaf in _leaves(part)]


__all__ = ["run_kernel_dual"]
