"""The adjoint of a kernel: an IR function that replays the body and then reverses it.

The algorithm is that of docs/internals/gradients.md. Which primal values are needed is not predicted: the
reverse sweep refers to whatever it needs of a full replay, and what it did not need is removed as dead code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Load, Native, Space
from warp._src.passes.access import AccessAnalysis, Root
from warp._src.passes.adjoint_context import AdjointContext, Frame, Problem
from warp._src.passes.adjoint_control import Reverser
from warp._src.passes.adjoint_finish import finish


@dataclass(frozen=True, eq=False)
class Adjoint:
    """The backward function of a kernel.

    `needed` names the arrays whose values after the launch it reads. If `problems` is not empty the function
    must not run. `unrecorded` holds the record ids of values that it needs but reads from memory that the kernel
    has overwritten. `recorded` is the forward kernel that keeps what the function recalls, if it does:
    `bytes_per_thread` in fixed places, and a stream if `has_stream`.
    """

    function: Function
    problems: tuple[Problem, ...]
    needed: frozenset[Root | None]
    unrecorded: frozenset[int] = frozenset()
    recorded: Function | None = None
    bytes_per_thread: int = 0
    has_stream: bool = False


def adjoint_of(
    function: Function,
    *,
    may_alias: bool = False,
    dimensions: frozenset[int] = frozenset({0}),
    recalls: Mapping[int, Value | int] | None = None,
) -> Adjoint:
    """Build the backward function of an inlined kernel on which `mark_hazards` has run.

    It has the kernel's parameters; gradients are read and written in the gradient space of its arrays. `recalls`
    says where recorded values are: at an offset, or at a position that is a value of the kernel.
    """
    analysis = AccessAnalysis(function, may_alias, dimensions)
    context = AdjointContext(function, analysis, recalls=recalls)
    params = tuple(Value(param.type, param.name) for param in function.params)
    body = Region(params)
    frame = Frame(dict(zip(function.body.args, params, strict=True)))
    reverser = Reverser(context)
    with context.builder.into(body):
        reverser.replay(function.body.ops, frame, expose=True)
        reverser.reverse(function.body.ops, frame)
        context.builder.yield_()
    finish(body, context)
    backward = replace(function, name=f"{function.name}_backward", params=params, body=body)
    unrecorded: set[int] = set()
    for op in body.walk():
        if isinstance(op, Load) and op.hazard:
            if op.record_id is None:
                context.fail(op, op.hazard)
            else:
                unrecorded.add(op.record_id)
        elif isinstance(op, Native) and op.record_id is not None:
            unrecorded.add(op.record_id)  # it must not run again
    reads = AccessAnalysis(backward, may_alias).summary().reads
    needed = frozenset(root for root, space in reads if space is Space.PRIMAL)
    return Adjoint(backward, tuple(context.problems), needed, frozenset(unrecorded))
