"""Local simplifications: constants, components of aggregates that were just built, branches that are decided."""

from __future__ import annotations

from warp._src.ir.core import Region, Value
from warp._src.ir.ops import Call, Cast, Const, Construct, Extract, If, Insert, Op, Path
from warp._src.ir.signs import Signs
from warp._src.ir.traverse import map_operands
from warp._src.passes.liveness import eliminate_dead
from warp._src.types.scalars import is_scalar
from warp._src.types.structs import StructType


def simplify(region: Region) -> None:
    """Simplify a whole function body, in place."""
    Simplifier().run(region)
    eliminate_dead(region)


class Simplifier:
    """One forward walk that replaces values by simpler ones."""

    def __init__(self) -> None:
        self._replaced: dict[Value, Value] = {}
        self._definitions: dict[Value, Op] = {}
        self._signs = Signs()

    def run(self, region: Region) -> None:
        region.ops[:] = self._ops(region.ops)

    def _ops(self, source: list[Op]) -> list[Op]:
        kept: list[Op] = []
        for original in source:
            op = map_operands(original, self._replaced)
            if isinstance(op, If) and self._splice_decided(op, kept):
                continue
            self._signs.enter(op)
            for inner in op.regions:
                self.run(inner)
            simpler = self._simplified(op)
            if isinstance(simpler, Value):
                self._replaced[op.result] = simpler
                continue
            kept.append(simpler)
            self._definitions.update(dict.fromkeys(simpler.results, simpler))
            self._signs.define(simpler)
        return kept

    def _splice_decided(self, op: If, kept: list[Op]) -> bool:
        condition = self._definitions.get(op.condition)
        if not isinstance(condition, Const):
            return False
        region = op.regions[0 if condition.value else 1]
        ops = self._ops(region.ops)
        kept.extend(ops[:-1])
        self._replaced.update(zip(op.results, ops[-1].operands, strict=True))
        return True

    def _simplified(self, op: Op) -> Op | Value:
        if isinstance(op, Extract):
            return self._extract(op)
        if isinstance(op, Cast):
            return self._cast(op)
        if isinstance(op, Call) and op.builtin.name == "index_from_start":
            index = op.operands[0]
            return index if self._signs.is_nonnegative(index) else op
        return op

    def _cast(self, op: Cast) -> Op | Value:
        (operand,) = op.operands
        if operand.type is op.result.type:
            return operand
        source = self._definitions.get(operand)
        if isinstance(source, Const) and is_scalar(op.result.type):
            return Const(loc=op.loc, results=op.results, value=op.result.type.convert(source.value))
        return op

    def _extract(self, op: Extract) -> Op | Value:
        """Look through what built the aggregate, as long as all indices are constants."""
        path: Path = op.path
        aggregate = op.operands[0]
        while None not in path:
            source = self._definitions.get(aggregate)
            if isinstance(source, Construct) and source.operands:
                number = _operand_number(aggregate.type, path)
                if number is None:
                    break
                return source.operands[number]
            if not isinstance(source, Insert) or None in source.path:
                break
            relation = _relation(source.path, path)
            if relation == "same":
                return source.operands[1]
            if relation != "apart":
                break
            aggregate = source.operands[0]
        if aggregate is op.operands[0]:
            return op
        return op.rebuilt(op.results, (aggregate, *op.operands[1:]), ())


def _operand_number(type: object, path: Path) -> int | None:
    """Number of the operand of a Construct that a path without dynamic steps selects, if it is one."""
    if isinstance(type, StructType):
        return list(type.fields).index(str(path[0])) if len(path) == 1 else None
    shape = type.shape  # type: ignore[attr-defined]  # a tensor type
    if len(path) != len(shape) or not all(isinstance(step, int) for step in path):
        return None
    number = 0
    for step, size in zip(path, shape, strict=True):
        number = number * size + int(step or 0)
    return number


def _relation(inserted: Path, wanted: Path) -> str:
    """Relation of two constant paths: "same", "apart", or "overlap" if one leads into the other."""
    if inserted == wanted:
        return "same"
    if any(isinstance(step, str) for step in (*inserted, *wanted)) and _is_flat_against_named(inserted, wanted):
        return "overlap"
    for a, b in zip(inserted, wanted):  # noqa: B905 - the shorter path covers the longer
        if a != b:
            return "apart"
    return "overlap"


def _is_flat_against_named(left: Path, right: Path) -> bool:
    """Tell whether one path names a part of a transform and the other a flat component of it."""
    return any(isinstance(a, str) != isinstance(b, str) for a, b in zip(left, right))  # noqa: B905 - common prefix


__all__ = ["simplify"]
