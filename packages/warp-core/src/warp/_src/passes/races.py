"""Gradients that would have to flow through a race: on a GPU work items run in no order."""

from __future__ import annotations

from collections.abc import Iterator

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Atomic, Call, If, Load, Op, Record, Space, Store
from warp._src.passes.access import Access, AccessAnalysis
from warp._src.passes.adjoint_context import Problem
from warp._src.types.scalars import is_float
from warp._src.types.signature import component_type

_ADVICE = "on a CUDA device work items run in no order; launch the kernel on the CPU, or split it into several launches"


def find_races(
    function: Function, may_alias: bool, dimensions: frozenset[int], is_same: bool = False
) -> tuple[Problem, ...]:
    """Name the values of an inlined kernel that depend on the order of its work items and may carry a gradient.

    `is_same`: arrays of different parameters that overlap are one and the same.
    """
    if not dimensions:
        return ()
    analysis = AccessAnalysis(function, may_alias, dimensions)
    alone = set(_run_by_one(function.body, {}))
    found: dict[int, Problem] = {}
    for access in analysis.accesses:
        op = access.op
        if access.space is not Space.PRIMAL:
            continue
        reasons: Iterator[str] = iter(())
        if isinstance(op, (Load, Atomic)) and _is_used_float(op, function):
            reasons = _reasons(access, analysis, is_same, alone)
        elif type(op) is Store and _is_float(op):
            reasons = _mixed(access, analysis, is_same, alone)
        for text in reasons:
            found[op.loc.line] = Problem(op.loc, f"{text}: {_ADVICE}")
    return tuple(found.values())


def _reasons(access: Access, analysis: AccessAnalysis, is_same: bool, alone: set[Op]) -> Iterator[str]:
    line = access.op.loc.line
    if isinstance(access.op, Atomic):
        yield f"the atomic in line {line} returns what other work items have left"
        return
    for write in analysis.accesses:
        if not write.is_write or write.space is not Space.PRIMAL or {access.op, write.op} <= alone:
            continue
        if analysis.may_meet_others(access, write, is_same):
            yield f"line {line} reads what other work items may write in line {write.op.loc.line}"
            return


def _mixed(access: Access, analysis: AccessAnalysis, is_same: bool, alone: set[Op]) -> Iterator[str]:
    """Say whether what every work item stores at its own place may be stored before or after others add to it."""
    if not analysis.keeps_threads_apart(access):
        return
    for other in analysis.accesses:
        if not isinstance(other.op, Atomic) or other.space is not Space.PRIMAL or {access.op, other.op} <= alone:
            continue
        if analysis.may_meet_others(access, other, is_same):
            yield f"line {access.op.loc.line} stores where other work items may add in line {other.op.loc.line}"
            return


def _run_by_one(region: Region, definitions: dict[Value, Op], is_alone: bool = False) -> Iterator[Op]:
    """Yield the operations behind a comparison for equality, such as `if i == 0`, which one work item runs."""
    for op in region.ops:
        definitions.update((result, op) for result in op.results)
        if is_alone:
            yield op
        for number, inner in enumerate(op.regions):
            chosen = is_alone
            if isinstance(op, If) and number == 0:
                condition = definitions.get(op.condition)
                chosen = is_alone or (isinstance(condition, Call) and condition.builtin.name == "eq")
            yield from _run_by_one(inner, definitions, chosen)


def _is_used_float(op: Load | Atomic, function: Function) -> bool:
    if not op.results or not _is_float(op):
        return False
    return any(op.results[0] in user.operands for user in function.walk() if not isinstance(user, Record))


def _is_float(op: Load | Store) -> bool:
    kind = component_type(op.array.type.dtype, op.path)
    return bool(is_float(getattr(kind, "scalar", kind)))
