"""Replace calls of user functions by their bodies, except where a call of its own is better."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from warp._src.ir.core import Function, Region
from warp._src.ir.ops import Invoke, Native, Op, has_effects
from warp._src.ir.traverse import Substitution, clone_function, clone_region, map_operands, map_values
from warp._src.types.signature import is_array
from warp._src.types.struct_type import StructType

# A function of more operations than this that is called several times keeps its own body and its own adjoint.
_LARGE = 64


def inline(function: Function) -> Function:
    """Give a copy of `function` with the calls left that the adjoint pass must see.

    These are calls of functions with a custom gradient or replay, each with a function of its own, so that passes
    may attach facts to one call, and calls of shared functions (`is_shared`).
    """
    return _inlined(function, keeps_custom=True)


def inline_forward(function: Function) -> Function:
    """Give a copy of `function` with only the calls of shared functions left."""
    return _inlined(function, keeps_custom=False)


def inline_all(function: Function) -> Function:
    """Give a copy of `function` without any call of a user function."""
    copy = clone_function(function)
    _Inliner(frozenset(), keeps_custom=False).region(copy.body)
    return copy


def has_custom_adjoint(function: Function) -> bool:
    """Tell whether the user gave the function a gradient or a replay of its own."""
    return function.custom_gradient is not None or function.custom_replay is not None


def _inlined(function: Function, keeps_custom: bool) -> Function:
    copy = clone_function(function)
    _Inliner(_shared_functions(function), keeps_custom).region(copy.body)
    return copy


def _shared_functions(function: Function) -> frozenset[Function]:
    """Functions worth a body of their own: large, called several times, and functions of their arguments alone.

    Functions that take arrays are always inlined, so that the access analysis sees what each call touches.
    """
    calls = Counter(op.function for op in function.walk() if isinstance(op, Invoke))
    return frozenset(callee for callee, count in calls.items() if count > 1 and _is_shareable(callee))


def _is_shareable(function: Function) -> bool:
    if has_custom_adjoint(function) or any(_holds_arrays(param.type) for param in function.params):
        return False
    flat = list(inline_all(function).walk())
    return len(flat) > _LARGE and not any(isinstance(op, Native) or has_effects(op) for op in flat)


def _holds_arrays(type: object) -> bool:
    if isinstance(type, StructType):
        return any(_holds_arrays(field) for field in type.fields.values())
    return is_array(type)


class _Inliner:
    """Inlines in place; `mapping` follows values from the original to their replacements."""

    def __init__(self, shared: frozenset[Function], keeps_custom: bool) -> None:
        self._shared = {function: inline_all(function) for function in shared}
        self._keeps_custom = keeps_custom
        self._mapping: Substitution = {}

    def region(self, region: Region) -> None:
        ops: list[Op] = []
        self._ops(region.ops, ops)
        region.ops[:] = ops

    def _ops(self, source: list[Op], ops: list[Op]) -> None:
        for original in source:
            op = map_operands(original, self._mapping)
            if isinstance(op, Invoke):
                if op.function in self._shared:
                    op = replace(op, function=self._shared[op.function])
                elif self._keeps_custom and has_custom_adjoint(op.function):
                    op = replace(op, function=_private_copy(op.function))
                else:
                    self._expand(op, ops)
                    continue
            for inner in op.regions:
                self.region(inner)
            ops.append(op)

    def _expand(self, op: Invoke, ops: list[Op]) -> None:
        body = clone_region(op.function.body, {})
        self._mapping.update(zip(body.args, op.operands, strict=True))
        self._ops(body.ops[:-1], ops)
        results = map_values(body.terminator.operands, self._mapping)
        self._mapping.update(zip(op.results, results, strict=True))


def _private_copy(function: Function) -> Function:
    gradient, replay = function.custom_gradient, function.custom_replay
    return replace(
        inline_all(function),
        custom_gradient=None if gradient is None else inline_all(gradient),
        custom_replay=None if replay is None else inline_all(replay),
    )
