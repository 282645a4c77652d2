"""What is done to an adjoint body when all of it has been emitted."""

from __future__ import annotations

from dataclasses import replace

from warp._src.ir.core import Region
from warp._src.ir.ops import Loop, ReverseLoop
from warp._src.passes.adjoint_context import AdjointContext
from warp._src.passes.simplify import simplify


def finish(body: Region, context: AdjointContext) -> None:
    """Remove what the reverse sweep did not need, then settle which loops keep checkpoints."""
    simplify(body)
    _link_checkpoints(body, context)


def forget_checkpoints(region: Region) -> None:
    """Let reverse loops recompute their states from the start, in place: the replay renumbers the other loops."""
    _relink(region, {})


def _link_checkpoints(region: Region, context: AdjointContext) -> None:
    """Let loops that run in the replay anyway keep the states that their reverse loops need."""
    loops = {op.site: op for op in region.walk() if isinstance(op, Loop) and op.site is not None}
    saved: dict[int, tuple[int, ...]] = {}
    for op in region.walk():
        if isinstance(op, ReverseLoop) and op.site in loops and op.site in context.saved_states:
            args = loops[op.site].body.args[1:]
            states = context.saved_states[op.site]
            if len(states) == op.states and all(state in args for state in states):
                saved[op.site] = tuple(args.index(state) for state in states)
    _relink(region, saved)


def _relink(region: Region, saved: dict[int, tuple[int, ...]]) -> None:
    for number, op in enumerate(region.ops):
        for inner in op.regions:
            _relink(inner, saved)
        if isinstance(op, Loop) and op.site is not None:
            is_linked = op.site in saved
            region.ops[number] = replace(op, site=op.site if is_linked else None, saved=saved.get(op.site, ()))
        elif isinstance(op, ReverseLoop) and op.site is not None:
            region.ops[number] = replace(op, is_saved=op.site in saved)
