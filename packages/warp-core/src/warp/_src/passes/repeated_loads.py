"""Let an element that is read twice, with no effect in between, be read once: there is one value to record."""

from __future__ import annotations

from collections.abc import Hashable

from warp._src.ir.core import Region, Value
from warp._src.ir.ops import Load, Loop, Op, Space, has_effects
from warp._src.ir.traverse import map_operands
from warp._src.passes.affine import AffineForms
from warp._src.types.scalars import is_int


def merge_repeated_loads(region: Region) -> None:
    """Remove loads whose value is at hand, in place."""
    _Merger().run(region, {})


class _Merger:
    """One forward walk; `known` holds the values of elements by array, indices and path."""

    def __init__(self) -> None:
        self._replaced: dict[Value, Value] = {}
        self._definitions: dict[Value, Op] = {}
        self._affine = AffineForms(self._definitions)

    def run(self, region: Region, known: dict[Hashable, Value]) -> None:
        kept: list[Op] = []
        for original in region.ops:
            op = map_operands(original, self._replaced)
            self._definitions.update(dict.fromkeys(op.results, op))
            if isinstance(op, Load) and op.space is Space.PRIMAL:
                value = known.setdefault(self._key(op), op.result)
                if value is not op.result:
                    self._replaced[op.result] = value
                    continue
            changes = has_effects(op)
            if changes and isinstance(op, Loop):
                known.clear()  # iterations see what earlier ones changed
            for inner in op.regions:
                self.run(inner, dict(known))
            if changes:
                known.clear()
            kept.append(op)
        region.ops[:] = kept

    def _key(self, op: Load) -> Hashable:
        indices = [self._index(value) for value in (*op.indices, *op.path_indices)]
        return (op.array, op.path, *indices)

    def _index(self, value: Value) -> Hashable:
        if not is_int(value.type):
            return value
        form = self._affine.of(value)
        return form.constant, frozenset(form.terms.items())


__all__ = ["merge_repeated_loads"]
