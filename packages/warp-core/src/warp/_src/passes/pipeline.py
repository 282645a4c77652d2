"""The order of the passes: from the front end's kernel to what is emitted, forward and backward."""

from __future__ import annotations

from dataclasses import replace

from warp._src.ir.core import Function
from warp._src.ir.verify import verify
from warp._src.passes.access import AccessAnalysis, AccessSummary, mark_hazards
from warp._src.passes.adjoint import Adjoint, adjoint_of
from warp._src.passes.adjoint_context import Problem
from warp._src.passes.adjoint_finish import forget_checkpoints
from warp._src.passes.gradient_calls import expand_gradients
from warp._src.passes.induction import rewrite_induction
from warp._src.passes.inline import inline, inline_all, inline_forward
from warp._src.passes.races import find_races
from warp._src.passes.records import RecordLayout, plan_records, thread_positions, with_records
from warp._src.passes.repeated_loads import merge_repeated_loads
from warp._src.passes.rotate import rotate_loops
from warp._src.passes.simplify import simplify
from warp._src.passes.tangent import Tangent, tangent_of


def forward(function: Function) -> Function:
    """Prepare a kernel for emission."""
    verify(function, "front end")
    result = inline_forward(expand_gradients(function))
    verify(result, "inline")
    simplify(result.body)
    verify(result, "simplify")
    return result


def backward(function: Function, *, may_alias: bool, dimensions: frozenset[int]) -> Adjoint:
    """Build the adjoint of a kernel as the front end gave it.

    `may_alias`: arrays of different parameters may overlap in the launch. `dimensions`: the launch
    dimensions with more than one thread.
    """
    ids: frozenset[int] = frozenset()
    while True:
        primal = _prepared(function, may_alias, dimensions)
        layout, problems = plan_records(primal, ids)
        recorded = _recorded(primal, layout) if ids and not problems else None
        positions = thread_positions(primal, layout.stream)
        rewrite_induction(primal.body)
        verify(primal, "induction")
        adjoint = adjoint_of(primal, may_alias=may_alias, dimensions=dimensions, recalls={**layout.fixed, **positions})
        verify(adjoint.function, "adjoint")
        if problems or adjoint.unrecorded <= ids:
            break
        ids |= adjoint.unrecorded
    return replace(
        adjoint,
        problems=(*adjoint.problems, *problems),
        recorded=recorded,
        bytes_per_thread=layout.bytes_per_thread,
        has_stream=bool(layout.stream),
    )


def forward_mode(function: Function) -> Tangent:
    """Build the tangent of a kernel as the front end gave it, for products with its Jacobian."""
    primal = inline_all(expand_gradients(function))
    simplify(primal.body)
    return _finished(primal)


def forward_over_reverse(function: Function, *, may_alias: bool, dimensions: frozenset[int]) -> Tangent:
    """Build the tangent of a kernel's adjoint, for products with a Hessian."""
    adjoint = backward(function, may_alias=may_alias, dimensions=dimensions)
    made = _finished(inline_all(adjoint.function))
    return replace(made, problems=(*adjoint.problems, *made.problems))


def recording_forward_mode(function: Function, *, may_alias: bool, dimensions: frozenset[int]) -> Tangent | None:
    """Build the tangent that keeps values and their tangents for `forward_over_reverse`, or None if that needs none.

    It keeps twice as much as the kernel does for its adjoint.
    """
    recorded = backward(function, may_alias=may_alias, dimensions=dimensions).recorded
    return None if recorded is None else _finished(inline_all(recorded))


def _finished(primal: Function) -> Tangent:
    forget_checkpoints(primal.body)
    made = tangent_of(primal)
    verify(made.function, "tangent")
    simplify(made.function.body)
    verify(made.function, "simplify")
    return made


def _prepared(function: Function, may_alias: bool, dimensions: frozenset[int]) -> Function:
    """The kernel as the adjoint pass wants it, with hazards marked."""
    primal = inline(expand_gradients(function))
    simplify(primal.body)
    forget_checkpoints(primal.body)
    rewrite_induction(primal.body)
    merge_repeated_loads(primal.body)
    verify(primal, "inline")
    mark_hazards(primal, may_alias=may_alias, dimensions=dimensions)
    if rotate_loops(primal.body):
        verify(primal, "rotate")
        mark_hazards(primal, may_alias=may_alias, dimensions=dimensions)
    return primal


def _recorded(primal: Function, layout: RecordLayout) -> Function:
    """The forward kernel that keeps values for its adjoint."""
    result = inline_forward(with_records(primal, layout))
    simplify(result.body)
    verify(result, "records")
    return result


def accesses(function: Function, *, may_alias: bool = False) -> AccessSummary:
    """Summarise what an inlined kernel, forward or backward, does to its arrays."""
    return AccessAnalysis(function, may_alias).summary()


def races(
    function: Function, *, may_alias: bool, dimensions: frozenset[int], is_same: bool = False
) -> tuple[Problem, ...]:
    """Say what a gradient would have to flow through that only an ordered run of the work items has a value for."""
    return find_races(_prepared(function, may_alias, dimensions), may_alias, dimensions, is_same)
