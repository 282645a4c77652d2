"""The order of the passes: from the front end's kernel to what is emitted, forward and backward."""

from __future__ import annotations

from warp._src.ir.core import Function
from warp._src.ir.verify import verify
from warp._src.passes.access import AccessAnalysis, AccessSummary, mark_hazards
from warp._src.passes.adjoint import Adjoint, adjoint_of
from warp._src.passes.induction import rewrite_induction
from warp._src.passes.inline import inline, inline_forward
from warp._src.passes.simplify import simplify


def forward(function: Function) -> Function:
    """Prepare a kernel for emission."""
    verify(function, "front end")
    result = inline_forward(function)
    verify(result, "inline")
    simplify(result.body)
    verify(result, "simplify")
    return result


def backward(function: Function, *, may_alias: bool, dimensions: frozenset[int]) -> Adjoint:
    """Build the adjoint of a kernel as the front end gave it.

    `may_alias`: arrays of different parameters may overlap in the launch. `dimensions`: the launch
    dimensions with more than one thread.
    """
    primal = inline(function)
    simplify(primal.body)
    rewrite_induction(primal.body)
    verify(primal, "induction")
    mark_hazards(primal, may_alias=may_alias, dimensions=dimensions)
    adjoint = adjoint_of(primal, may_alias=may_alias, dimensions=dimensions)
    verify(adjoint.function, "adjoint")
    return adjoint


def accesses(function: Function, *, may_alias: bool = False) -> AccessSummary:
    """Summarise what an inlined kernel, forward or backward, does to its arrays."""
    return AccessAnalysis(function, may_alias).summary()
