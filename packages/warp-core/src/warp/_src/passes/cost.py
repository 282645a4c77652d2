"""A rough estimate of the work of a kernel, to decide how a launch is shared among workers."""

from __future__ import annotations

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Const, Loop, ReverseLoop

# Iterations that a loop is taken to have when its trip count is not a constant.
_ASSUMED_TRIPS = 32


def operations_per_item(function: Function) -> int:
    """Estimate how many operations one work item executes."""
    constants = {op.result: op.value for op in function.walk() if isinstance(op, Const)}
    return max(1, _cost(function.body, constants))


def has_loops(function: Function) -> bool:
    """Tell whether a work item may run for long."""
    return any(isinstance(op, (Loop, ReverseLoop)) for op in function.walk())


def _cost(region: Region, constants: dict[Value, bool | int | float]) -> int:
    total = 0
    for op in region.ops:
        inner = sum(_cost(r, constants) for r in op.regions)
        if isinstance(op, Loop) and op.trip is not None and isinstance(trip := constants.get(op.trip), int):
            inner *= max(trip, 1)
        elif isinstance(op, (Loop, ReverseLoop)):
            inner *= _ASSUMED_TRIPS
        total += 1 + inner
    return total
