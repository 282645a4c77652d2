"""Loops whose condition works on memory, turned so that the condition is computed in the body.

The reverse sweep repeats bodies, and knows how often, but it has no place for what a condition read, or did to memory.
"""

from __future__ import annotations

from warp._src.ir.core import Region, Value
from warp._src.ir.ops import Atomic, Invoke, Load, Loop, Native, Op, Store, Yield
from warp._src.ir.traverse import clone_ops
from warp._src.types.scalars import bool_


def rotate_loops(region: Region) -> bool:
    """Rotate, in place, the loops without trip count whose condition cannot be repeated; tell if there are any.

    `while c(s): s = f(s)` becomes `go = c(s); while go: s = f(s); go = c(s)`: the same operations in the same order.
    """
    ops: list[Op] = []
    has_changed = False
    for op in region.ops:
        for inner in op.regions:
            has_changed |= rotate_loops(inner)
        if isinstance(op, Loop) and _is_bound_to_memory(op):
            ops += _rotated(op)
            has_changed = True
        else:
            ops.append(op)
    region.ops[:] = ops
    return has_changed


def _is_bound_to_memory(op: Loop) -> bool:
    return op.condition is not None and not op.has_trip and any(map(_works_on_memory, op.condition.walk()))


def _works_on_memory(op: Op) -> bool:
    if isinstance(op, Invoke):
        return any(map(_works_on_memory, op.function.walk()))
    return isinstance(op, (Store, Atomic, Native)) or (isinstance(op, Load) and bool(op.hazard))


def _rotated(op: Loop) -> list[Op]:
    assert op.condition is not None
    before, first = _tested(op.condition, op.inits)
    end = op.body.terminator
    again, following = _tested(op.condition, end.operands)
    going = Value(bool_, "going")
    body = Region(
        (*op.body.args, going),
        [*op.body.ops[:-1], *again, Yield(loc=end.loc, results=(), operands=(*end.operands, following), regions=())],
    )
    carried = tuple(Value(arg.type, arg.name) for arg in (*op.condition.args, going))
    condition = Region(carried, [Yield(loc=op.loc, results=(), operands=(carried[-1],), regions=())])
    results = (*op.results[:-1], Value(bool_, "going"), op.count)
    return [*before, op.rebuilt(results, (*op.operands, first), (condition, body))]


def _tested(condition: Region, values: tuple[Value, ...]) -> tuple[list[Op], Value]:
    """The operations of a condition on carried values, and its result."""
    mapping = dict(zip(condition.args, values, strict=True))
    ops = clone_ops(condition.ops, mapping)
    return ops[:-1], ops[-1].operands[0]
