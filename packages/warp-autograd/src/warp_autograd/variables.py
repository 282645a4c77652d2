"""The arrays that Jacobians are taken of, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warp.errors import ArgumentError
from warp_autograd.arguments import named_arrays

Mask = Sequence[tuple[str | int, str | int]]


@dataclass(frozen=True)
class Variable:
    """An array argument. `index` is its position among the inputs or outputs.

    Arrays in structs are numbered after the last argument, in the order of arguments and fields.
    """

    index: int
    label: str
    array: Any


def find_variables(labels: Sequence[str], values: Sequence[Any]) -> list[Variable]:
    """Return the arrays among arguments, those in structs included, in the order of their indices."""
    plain: list[Variable] = []
    members: list[tuple[str, Any]] = []
    for index, (label, value) in enumerate(zip(labels, values, strict=False)):
        found = list(named_arrays(value, label))
        if len(found) == 1 and found[0][0] == label:
            plain.append(Variable(index, label, found[0][1]))
        else:
            members.extend(found)
    return plain + [Variable(number, *member) for number, member in enumerate(members, len(values))]


def select_pairs(
    inputs: Sequence[Variable], outputs: Sequence[Variable], mask: Mask | None
) -> list[tuple[Variable, Variable]]:
    """Return the pairs of input and output to differentiate. ArgumentError for a name or index that is none."""
    if mask is None:
        return [(given, result) for given in inputs for result in outputs]
    pairs = []
    for entry in mask:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise ArgumentError(f"input_output_mask must hold pairs of an input and an output, got {entry!r}")
        pairs.append((_chosen(entry[0], inputs, "input"), _chosen(entry[1], outputs, "output")))
    return list({(given.index, result.index): (given, result) for given, result in pairs}.values())


def _chosen(key: str | int, variables: Sequence[Variable], kind: str) -> Variable:
    for variable in variables:
        if key in (variable.label, variable.index):
            return variable
    known = ", ".join(f"{variable.index} ('{variable.label}')" for variable in variables) or "none"
    raise ArgumentError(
        f"input_output_mask: {key!r} is no {kind} that has a gradient; those with requires_grad=True are {known}"
    )
