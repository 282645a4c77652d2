"""Which integers cannot be negative, whatever a kernel is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from warp._src.ir.core import Value
from warp._src.ir.ops import Call, Cast, Const, Loop, Op, ReverseLoop, ThreadIndex
from warp._src.types.scalars import is_int

_Check = Callable[[Value], bool]
# Sums and products that overflow are out of bounds as indices anyway.
_RULES: Final[dict[str, Callable[[Sequence[Value], _Check], bool]]] = {
    "add": lambda operands, check: all(map(check, operands)),
    "mul": lambda operands, check: all(map(check, operands)),
    "div": lambda operands, check: all(map(check, operands)),
    "floordiv": lambda operands, check: all(map(check, operands)),
    "mod": lambda operands, check: check(operands[0]),
    "min": lambda operands, check: all(map(check, operands)),
    "max": lambda operands, check: any(map(check, operands)),
    "rshift": lambda operands, check: check(operands[0]),
    "bit_and": lambda operands, check: any(map(check, operands)),
    "where": lambda operands, check: all(map(check, operands[1:])),
    "array_shape": lambda operands, check: True,
    "index_from_start": lambda operands, check: True,
}
_DEPTH: Final = 16


class Signs:
    """Follows definitions in program order."""

    def __init__(self) -> None:
        self._definitions: dict[Value, Op] = {}
        self._counters: set[Value] = set()

    def enter(self, op: Op) -> None:
        """Learn of the counters of a loop, before its regions are looked at."""
        if isinstance(op, Loop):
            self._counters.add(op.body.args[0])
        elif isinstance(op, ReverseLoop):
            self._counters.update(region.args[0] for region in op.regions)

    def define(self, op: Op) -> None:
        """Learn of the results of an operation."""
        self._definitions.update(dict.fromkeys(op.results, op))

    def is_nonnegative(self, value: Value, depth: int = 0) -> bool:
        """Tell whether a value is an integer that is certainly not negative."""
        type: Any = value.type
        if not is_int(type) or depth > _DEPTH:
            return False
        if value in self._counters or type.kind == "u":
            return True
        op = self._definitions.get(value)
        if isinstance(op, Const):
            return int(op.value) >= 0
        if isinstance(op, Cast):
            return self._is_kept(op, depth)
        if isinstance(op, Call) and op.builtin.name in _RULES:
            return _RULES[op.builtin.name](op.operands, lambda operand: self.is_nonnegative(operand, depth + 1))
        return isinstance(op, ThreadIndex)

    def _is_kept(self, op: Cast, depth: int) -> bool:
        """Tell whether a cast gets a number that is not negative, and keeps it."""
        (operand,) = op.operands
        source: Any = operand.type
        target: Any = op.result.type
        if not is_int(source) or source.size > target.size:
            return False
        return (source.kind != "u" or source.size < target.size) and self.is_nonnegative(operand, depth + 1)
