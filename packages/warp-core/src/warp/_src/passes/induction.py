"""Give counters that loops carry, such as `i += 2`, as closed forms of the iteration number.

The adjoint then need not keep them as state, and index analysis sees that they differ between iterations.
"""

from __future__ import annotations

from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Region, Value
from warp._src.ir.ops import Call, Const, Loop, Op
from warp._src.ir.traverse import replace_uses
from warp._src.types.scalars import is_int


def rewrite_induction(region: Region) -> None:
    """Rewrite the uses of counters inside all loop bodies of `region`, in place."""
    for op in region.ops:
        for inner in op.regions:
            rewrite_induction(inner)
        if isinstance(op, Loop):
            _rewrite_loop(op)


def _rewrite_loop(loop: Loop) -> None:
    body = loop.body
    for number, counter in enumerate(body.args[1:]):
        if is_int(counter.type):
            step = _step(loop, number)
            if step is not None:
                _rewrite_counter(loop, number, *step)


def _step(loop: Loop, number: int) -> tuple[str, Value | int | float] | None:
    """Find "add" or "sub" and the amount, a constant or a value from outside, by which a counter changes."""
    body = loop.body
    counter = body.args[1 + number]
    inside = {result: op for op in body.walk() for result in op.results}
    top_level = {result: op for op in body.ops for result in op.results}
    change = top_level.get(body.terminator.operands[number])
    if not isinstance(change, Call) or change.builtin.name not in ("add", "sub"):
        return None
    left, right = change.operands
    if left is not counter:
        left, right = right, left
        if left is not counter or change.builtin.name == "sub":
            return None
    definition = inside.get(right)
    if isinstance(definition, Const):
        return change.builtin.name, definition.value
    arguments = {arg for op in (loop, *body.walk()) for region in op.regions for arg in region.args}
    if definition is not None or right in arguments:
        return None
    return change.builtin.name, right


def _rewrite_counter(loop: Loop, number: int, name: str, amount: Value | int | float) -> None:
    body = loop.body
    counter = body.args[1 + number]
    type = counter.type
    head = Region()
    builder = Builder(head, loop.loc)
    step = amount if isinstance(amount, Value) else builder.const(type, amount)
    iteration = builder.cast(type, body.args[0])
    (offset,) = builder.call(resolve("mul", [type, type]), (iteration, step))
    (closed,) = builder.call(resolve(name, [type, type]), (loop.inits[number], offset))
    replace_uses(body, {counter: closed})
    end = body.ops.pop()
    builder.region = Region((), body.ops)
    (following,) = builder.call(resolve(name, [type, type]), (counter, step))
    operands = list(end.operands)
    operands[number] = following
    ops: list[Op] = [*head.ops, *builder.region.ops, end.rebuilt((), tuple(operands), ())]
    body.ops[:] = ops
