"""Index expressions as affine forms: an integer constant plus integer multiples of opaque values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warp._src.ir.core import Value
from warp._src.ir.ops import Call, Cast, Const, Op
from warp._src.types.scalars import is_int

# Integers of fewer bytes wrap around within the bounds of arrays.
_INDEX_SIZE = 4
_SMALL = 1 << 30


@dataclass(frozen=True)
class Affine:
    """`constant + sum(coefficient * value)`; values without a zero coefficient only.

    Wrap-around of integers of 32 bits and more is ignored: an index that overflows is out of bounds anyway.
    """

    constant: int = 0
    terms: Mapping[Value, int] = field(default_factory=dict)

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for value, coefficient in other.terms.items():
            terms[value] = terms.get(value, 0) + coefficient
        return Affine(self.constant + other.constant, {v: c for v, c in terms.items() if c})

    def __mul__(self, factor: int) -> Affine:
        return Affine(self.constant * factor, {v: c * factor for v, c in self.terms.items() if c * factor})

    def __sub__(self, other: Affine) -> Affine:
        return self + other * -1

    @property
    def is_small(self) -> bool:
        """Tell whether all its numbers are so small that two forms differ as the integers they stand for do."""
        return all(abs(number) < _SMALL for number in (self.constant, *self.terms.values()))


class AffineForms:
    """Affine forms of integer values, computed on demand from their definitions."""

    def __init__(self, definitions: Mapping[Value, Op]) -> None:
        self._definitions = definitions
        self._forms: dict[Value, Affine] = {}

    def of(self, value: Value) -> Affine:
        """Give the affine form of an integer value; one that is not affine stands for itself."""
        if value not in self._forms:
            self._forms[value] = self._compute(value)
        return self._forms[value]

    def set(self, value: Value, form: Affine) -> None:
        """State the form of a value that is equal to another, or bound to it by a call."""
        self._forms[value] = form

    def _compute(self, value: Value) -> Affine:
        op = self._definitions.get(value)
        if isinstance(op, Const):
            return Affine(int(op.value))
        if not is_int(value.type) or value.type.size < _INDEX_SIZE:
            return Affine(0, {value: 1})
        if isinstance(op, Cast) and is_int(op.operands[0].type):
            return self.of(op.operands[0])
        if isinstance(op, Call):
            form = self._of_call(op, value)
            return form if form.is_small else Affine(0, {value: 1})
        return Affine(0, {value: 1})

    def _of_call(self, op: Call, value: Value) -> Affine:
        if op.builtin.name in ("add", "sub"):
            left, right = (self.of(operand) for operand in op.operands)
            return left + right if op.builtin.name == "add" else left - right
        if op.builtin.name == "index_from_start":
            return self.of(op.operands[0])  # AccessAnalysis knows of the difference
        if op.builtin.name == "neg":
            return self.of(op.operands[0]) * -1
        if op.builtin.name == "mul":
            left, right = (self.of(operand) for operand in op.operands)
            if not left.terms:
                return right * left.constant
            if not right.terms:
                return left * right.constant
        return Affine(0, {value: 1})
