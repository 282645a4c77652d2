"""Activity: which values depend on a differentiable input."""

from __future__ import annotations

from collections.abc import Iterable

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Atomic, Const, Invoke, Load, Loop, Native, Op, ReverseLoop, Yield
from warp._src.passes.inline import has_custom_adjoint
from warp._src.types.signature import is_differentiable


class Activity:
    """The values of a kernel or function that can carry a gradient back to an input.

    Inputs are differentiable loads, the results of atomics on differentiable arrays and of calls that may load
    from arrays, and, unless it is a kernel, the parameters: the adjoint of a kernel's scalar argument has nowhere
    to go.
    """

    def __init__(self, function: Function) -> None:
        self._active: set[Value] = set()
        if not function.is_kernel:
            self._active.update(p for p in function.params if is_differentiable(p.type))
        self._visit(function.body)

    def restrict_to(self, region: Region, roots: Iterable[Value]) -> None:
        """Forget what is known and let only `roots` be inputs of a region."""
        self._active = set(roots)
        self._visit(region)

    def __contains__(self, value: Value) -> bool:
        return value in self._active

    def _visit(self, region: Region) -> None:
        for op in region.ops:
            if isinstance(op, (Const, Yield)):
                continue
            if isinstance(op, Loop):
                self._visit_loop(op)
            elif isinstance(op, ReverseLoop):
                self._active.update(result for result in op.results if is_differentiable(result.type))
            elif op.regions:
                self._visit_branches(op)
            elif self._is_active(op):
                self._active.update(result for result in op.results if is_differentiable(result.type))

    def _is_active(self, op: Op) -> bool:
        if isinstance(op, (Load, Atomic, Native)):
            return True
        if isinstance(op, Invoke) and has_custom_adjoint(op.function):
            return True
        return any(operand in self._active for operand in op.operands)

    def _visit_branches(self, op: Op) -> None:
        for region in op.regions:
            self._visit(region)
            for result, value in zip(op.results, region.terminator.operands, strict=True):
                if value in self._active:
                    self._active.add(result)

    def _visit_loop(self, op: Loop) -> None:
        body = op.body
        carried = body.args[1:]
        self._active.update(arg for arg, init in zip(carried, op.inits, strict=True) if init in self._active)
        while True:
            before = len(self._active)
            self._visit(body)
            for arg, value in zip(carried, body.terminator.operands, strict=True):
                if value in self._active:
                    self._active.add(arg)
            if len(self._active) == before:
                break
        self._active.update(result for result, arg in zip(op.results[:-1], carried, strict=True) if arg in self._active)
