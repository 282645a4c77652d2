"""Tangents of builtins, from their adjoint rules.

An adjoint rule maps the adjoint of a result linearly to those of the arguments. Its transpose maps tangents of
arguments to that of the result: the rule is written out for a placeholder adjoint, and the code so made is
reversed by the same adjoint pass, with the tangents as seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

from warp._src.builtins.declare import NonDifferentiable
from warp._src.builtins.rules import INTERNAL
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Call
from warp._src.passes.access import AccessAnalysis
from warp._src.passes.adjoint_context import AdjointContext, Frame, Problem
from warp._src.passes.adjoint_rules import contributions, reverse_op
from warp._src.passes.inline import inline_all
from warp._src.types.scalars import is_scalar
from warp._src.types.signature import scalar_of


def call_tangents(
    builder: Builder,
    op: Call,
    operands: Sequence[Value],
    results: Sequence[Value],
    tangents: Sequence[Value | None],
    problems: dict[Problem, None],
) -> list[Value | None]:
    """Emit the tangents of a call's results; `operands` and `results` are its values, `tangents` those of operands."""
    record = op.builtin.builtin
    if isinstance(record.adjoint, NonDifferentiable):
        if record.adjoint is INTERNAL:
            problems[Problem(op.loc, f"'{op.builtin.label}' in line {op.loc.line} has no forward mode")] = None
        return [None] * len(results)
    # The rule as a function of primal values and of the placeholder adjoints.
    values = [Value(value.type) for value in (*operands, *results)]
    adjoints = [Value(result.type) for result in results]
    region = Region((*values, *adjoints))
    rule = Builder(region, op.loc)
    wanted = [n for n, tangent in enumerate(tangents) if tangent is not None]
    parts = contributions(rule, op, values[: len(operands)], values[len(operands) :], adjoints, wanted)
    rule.yield_([part for _, part in parts])
    function = inline_all(Function(record.name, region.args, tuple(part.type for _, part in parts), region, op.loc))
    return _transposed(
        builder, function, (*operands, *results), [tangents[n] for n, _ in parts], len(results), problems
    )


def _transposed(
    builder: Builder,
    function: Function,
    primals: Sequence[Value],
    seeds: Sequence[Value | None],
    count: int,
    problems: dict[Problem, None],
) -> list[Value | None]:
    """Reverse a linear rule with respect to its last `count` parameters."""
    context = AdjointContext(function, AccessAnalysis(function), is_local=True)
    context.builder = builder
    placeholders = function.body.args[len(primals) :]
    context.activity.restrict_to(function.body, placeholders)
    frame = Frame(dict(zip(function.body.args, primals, strict=False)))
    for placeholder in placeholders:
        frame.primal[placeholder] = _ones(builder, placeholder)
    for op in function.body.ops[:-1]:
        copies = tuple(Value(result.type) for result in op.results)
        builder.append(op.rebuilt(copies, tuple(frame.primal[v] for v in op.operands), ()))
        frame.primal.update(zip(op.results, copies, strict=True))
    for value, seed in zip(function.body.terminator.operands, seeds, strict=True):
        if seed is not None:
            context.accumulate(frame, value, seed)
    for op in reversed(function.body.ops[:-1]):
        reverse_op(context, frame, op)
    problems.update(context.problems)
    return [frame.adjoints.get(placeholder) for placeholder in placeholders[:count]]


def _ones(builder: Builder, value: Value) -> Value:
    """A value of no meaning that is not zero, so that the tests for the strong zero take the general branch."""
    if is_scalar(value.type):
        return builder.const(value.type, 1)
    one = builder.const(scalar_of(value.type), 1)
    return builder.construct(value.type, [one] * value.type.length)


__all__ = ["call_tangents"]
