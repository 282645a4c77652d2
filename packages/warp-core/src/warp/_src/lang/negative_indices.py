"""Indices of arrays that may be negative: those count from the end of an axis, as in Python."""

from __future__ import annotations

from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Region, Value
from warp._src.ir.ops import Load, Op, Store, View
from warp._src.ir.signs import Signs
from warp._src.types.scalars import int32, int64


def count_from_start(region: Region) -> None:
    """Turn the indices in the body of a function into ones from the start, in place, unless they are at any rate."""
    _Counting().region(region)


class _Counting:
    def __init__(self) -> None:
        self._signs = Signs()
        # What was made where it still holds, so that one element read and written has one index.
        self._made: dict[tuple[Value, int, Value], Value] = {}

    def region(self, region: Region) -> None:
        outer, self._made = self._made, dict(self._made)
        self._region(region)
        self._made = outer

    def _region(self, region: Region) -> None:
        ops: list[Op] = []
        builder = Builder(Region((), ops))
        for original in region.ops:
            op = original
            self._signs.enter(op)
            for inner in op.regions:
                self.region(inner)
            first, count = _indices(op)
            if not all(map(self._signs.is_nonnegative, op.operands[first : first + count])):
                with builder.at(op.loc):
                    op = self._counted(builder, op, first, count)
            ops.append(op)
            self._signs.define(op)
        region.ops[:] = ops

    def _counted(self, builder: Builder, op: Op, first: int, count: int) -> Op:
        operands = list(op.operands)
        for axis in range(count):
            index = operands[first + axis]
            if not self._signs.is_nonnegative(index):
                key = (op.operands[0], axis, index)
                if key not in self._made:
                    self._made[key] = self._from_start(builder, *key)
                operands[first + axis] = self._made[key]
        return op.rebuilt(op.results, tuple(operands), op.regions)

    @staticmethod
    def _from_start(builder: Builder, array: Value, axis: int, index: Value) -> Value:
        wide = index if index.type in (int32, int64) else builder.cast(int32, index)
        extent = builder.call(resolve("array_shape", [array.type, int32]), (array, builder.const(int32, axis)))[0]
        return builder.call(resolve("index_from_start", [wide.type, int32]), (wide, extent))[0]


def _indices(op: Op) -> tuple[int, int]:
    """Where an operation has indices of an array among its operands, and how many."""
    if isinstance(op, Store):
        return 2, op.rank
    if isinstance(op, Load):
        return 1, op.rank
    if isinstance(op, View) and op.axis is None:
        return 1, len(op.operands) - 1
    return 0, 0
