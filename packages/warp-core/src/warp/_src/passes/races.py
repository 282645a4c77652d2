"""Gradients that would have to flow through a race: on a GPU work items run in no order."""

from __future__ import annotations

from collections.abc import Iterator

from warp._src.ir.core import Function
from warp._src.ir.ops import Atomic, Load, Record, Space
from warp._src.passes.access import Access, AccessAnalysis
from warp._src.passes.adjoint_context import Problem
from warp._src.types.scalars import is_float
from warp._src.types.signature import component_type

_ADVICE = "on a CUDA device work items run in no order; launch the kernel on the CPU, or split it into several launches"


def find_races(function: Function, may_alias: bool, dimensions: frozenset[int]) -> tuple[Problem, ...]:
    """Name the values of an inlined kernel that depend on the order of its work items and may carry a gradient.

    Only what is certain is named: elements at unknown indices may be those of one work item each.
    """
    if not dimensions:
        return ()
    analysis = AccessAnalysis(function, may_alias, dimensions)
    used = {operand for op in function.walk() if not isinstance(op, Record) for operand in op.operands}
    found = {}
    for access in analysis.accesses:
        op = access.op
        if (
            access.space is not Space.PRIMAL
            or not isinstance(op, Load)
            or not _is_float(op)
            or op.results[0] not in used
        ):
            continue
        for text in _reasons(access, analysis):
            found[op.loc.line] = Problem(op.loc, f"{text}: {_ADVICE}")
    return tuple(found.values())


def _reasons(access: Access, analysis: AccessAnalysis) -> Iterator[str]:
    if isinstance(access.op, Atomic):
        yield f"the atomic in line {access.op.loc.line} returns what other work items have left"
        return
    for write in analysis.accesses:
        if write.is_write and write.space is Space.PRIMAL and analysis.is_met_by_others(access, write):
            yield f"line {access.op.loc.line} reads what other work items write in line {write.op.loc.line}"
            return


def _is_float(op: Load) -> bool:
    if not op.results:
        return False
    kind = component_type(op.array.type.dtype, op.path)
    return is_float(getattr(kind, "scalar", kind))
