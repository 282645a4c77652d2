"""Evaluates the adjoint rules of a builtin by the interpreter."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warp._src.builtins.declare import Overload
from warp._src.builtins.expression import Expr, guarded
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.interp import run_function
from warp._src.types.scalars import is_float, is_scalar


def adjoint_function(overload: Overload) -> tuple[Function, list[str]]:
    """Build the function of arguments and incoming adjoints that gives the contribution by each rule."""
    record = overload.builtin
    assert isinstance(record.adjoint, Mapping)
    parameters = zip(record.parameters, overload.param_types, strict=True)
    names = [name for name, type in parameters if is_differentiable(type) and name in record.adjoint]
    args = tuple(Value(type) for type in overload.param_types)
    incoming = tuple(Value(type) for type in overload.result_types)
    region = Region(args=(*args, *incoming))
    builder = Builder(region)
    known = {name: Expr(builder, value) for name, value in zip(record.parameters, args, strict=True)}
    numbers = [str(number) if len(incoming) > 1 else "" for number in range(len(incoming))]
    for number, result, value in zip(numbers, builder.call(overload, args), incoming, strict=True):
        known[f"ret{number}"] = Expr(builder, result)
        known[f"adj{number}"] = Expr(builder, value, is_adjoint=True, bounded=True)
    adjoint_values = [known[f"adj{number}"] for number in numbers]
    contributions = []
    for name in names:
        rule = record.adjoint[name]
        wanted = inspect.signature(rule).parameters
        contributions.append(guarded(adjoint_values, rule(*(known[key] for key in wanted))).value)
    builder.yield_(contributions)
    types = tuple(value.type for value in contributions)
    return Function("adjoint", region.args, types, region), names


def adjoints(overload: Overload, args: Sequence[Any], *incoming: Any) -> dict[str, Any]:
    """Give the adjoint of each differentiable parameter for the incoming adjoints, one for each result."""
    function, names = adjoint_function(overload)
    return dict(zip(names, run_function(function, [*args, *incoming]), strict=True))


def is_differentiable(type: Any) -> bool:
    return is_float(type if is_scalar(type) else type.scalar)


def central_differences(overload: Overload, args: Sequence[Any], *incoming: Any, step: float = 1e-5) -> dict[str, Any]:
    """Differentiate the float64 reference, contracted with the adjoints, by each float argument."""
    reference, is_single = overload.builtin.reference, len(overload.result_types) == 1

    def contracted(values: Sequence[Any]) -> float:
        with np.errstate(all="ignore"):
            found = reference(*values)
        results = (found,) if is_single else found
        return float(sum(np.sum(np.asarray(r, dtype=float) * adj) for r, adj in zip(results, incoming, strict=True)))

    result = {}
    for position, (name, type) in enumerate(zip(overload.builtin.parameters, overload.param_types, strict=True)):
        if not is_differentiable(type):
            continue
        gradient = np.zeros(np.shape(args[position]))
        for index in np.ndindex(gradient.shape):
            ends = []
            for sign in (step, -step):
                moved = np.array(args[position])
                moved[index] += sign
                values = list(args)
                values[position] = moved if moved.shape else np.float64(moved)
                ends.append(contracted(values))
            gradient[index] = (ends[0] - ends[1]) / (2 * step)
        result[name] = gradient
    return result
