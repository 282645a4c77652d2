"""Copies and walks that need to know nothing of what an operation means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Op

# From values of the original to values of the copy; a value that is missing stands for itself.
Substitution = dict[Value, Value]


def map_values(values: Iterable[Value], mapping: Mapping[Value, Value]) -> tuple[Value, ...]:
    """Replace the values that `mapping` names; the others stay."""
    return tuple(mapping.get(value, value) for value in values)


def map_operands(op: Op, mapping: Mapping[Value, Value]) -> Op:
    """Give `op` with its own operands replaced; results and regions are shared with the original."""
    operands = map_values(op.operands, mapping)
    return op if operands == op.operands else op.rebuilt(op.results, operands, op.regions)


def replace_uses(region: Region, mapping: Mapping[Value, Value]) -> None:
    """Replace every use of the values that `mapping` names inside `region`, in place."""
    for index, op in enumerate(region.ops):
        region.ops[index] = map_operands(op, mapping)
        for inner in op.regions:
            replace_uses(inner, mapping)


def clone_values(values: Iterable[Value], mapping: Substitution) -> tuple[Value, ...]:
    """Make fresh values of the same types and names and enter them in `mapping`."""
    copies = []
    for value in values:
        mapping[value] = copy = Value(value.type, value.name)
        copies.append(copy)
    return tuple(copies)


def clone_op(op: Op, mapping: Substitution) -> Op:
    """Copy an operation with its regions; `mapping` is read for its operands and extended by its results."""
    operands = map_values(op.operands, mapping)
    regions = tuple(clone_region(region, mapping) for region in op.regions)
    return op.rebuilt(clone_values(op.results, mapping), operands, regions)


def clone_ops(ops: Iterable[Op], mapping: Substitution) -> list[Op]:
    """Copy operations in order, as `clone_op` does."""
    return [clone_op(op, mapping) for op in ops]


def clone_region(region: Region, mapping: Substitution) -> Region:
    """Copy a region with fresh arguments and results; `mapping` is extended by all of them."""
    args = clone_values(region.args, mapping)
    return Region(args, clone_ops(region.ops, mapping))


def clone_function(function: Function, mapping: Substitution | None = None) -> Function:
    """Copy a function with fresh parameters; functions that it invokes, and its gradient, are shared."""
    mapping = {} if mapping is None else mapping
    body = clone_region(function.body, mapping)
    if function.body.args == function.params:
        params = body.args
    else:
        params = clone_values(function.params, mapping)
    return replace(function, params=params, body=body, options=dict(function.options))


def uses(function: Function | Region) -> Counter[Value]:
    """Count how often each value is an operand, terminators included."""
    return Counter(value for op in function.walk() for value in op.operands)


def captured(region: Region) -> tuple[Value, ...]:
    """Give the values that `region` uses but does not define, in the order of first use."""
    defined: set[Value] = set(region.args)
    for op in region.walk():
        defined.update(op.results)
        for inner in op.regions:
            defined.update(inner.args)
    used = dict.fromkeys(value for op in region.walk() for value in op.operands)
    return tuple(value for value in used if value not in defined)


def definitions(function: Function | Region) -> dict[Value, Op]:
    """Map every result to the operation that defines it; region arguments are not in it."""
    return {result: op for op in function.walk() for result in op.results}


def walk_with_parents(region: Region, parents: tuple[Op, ...] = ()) -> Iterator[tuple[Op, tuple[Op, ...]]]:
    """Yield every operation in program order with the operations around it, outermost first."""
    for op in region.ops:
        yield op, parents
        for inner in op.regions:
            yield from walk_with_parents(inner, (*parents, op))


__all__ = [
    "Substitution",
    "captured",
    "clone_function",
    "clone_op",
    "clone_ops",
    "clone_region",
    "clone_values",
    "definitions",
    "map_operands",
    "map_values",
    "replace_uses",
    "uses",
    "walk_with_parents",
]
