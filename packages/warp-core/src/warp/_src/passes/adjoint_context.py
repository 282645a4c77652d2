"""What the reversal of single operations shares: scopes, the builder and the problems found."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Location, Type, Value
from warp._src.ir.ops import Atomic, Extract, Load, Op, ReverseLoop, View
from warp._src.ir.traverse import definitions
from warp._src.passes.access import AccessAnalysis
from warp._src.passes.activity import Activity
from warp._src.types.signature import component_type, is_array, is_differentiable
from warp._src.types.structs import StructType


@dataclass(frozen=True)
class Problem:
    """Reason why a kernel has no correct adjoint, and the line it comes from."""

    loc: Location
    text: str


@dataclass
class Frame:
    """Translation of original values in one scope of the backward function.

    `primal` maps them to replayed values, `adjoints` to what has been accumulated so far, `sites` maps loops
    to the checkpoint site of their replay.
    """

    primal: dict[Value, Value]
    adjoints: dict[Value, Value] = field(default_factory=dict)
    sites: dict[Op, int] = field(default_factory=dict)

    def child(self) -> Frame:
        """A scope inside this one, with no adjoints yet."""
        return Frame(dict(self.primal), {}, dict(self.sites))


class AdjointContext:
    """Builder, activity and bookkeeping of one adjoint."""

    def __init__(
        self,
        function: Function,
        analysis: AccessAnalysis,
        outer: AdjointContext | None = None,
        recalls: Mapping[int, Value | int] | None = None,
        is_local: bool = False,
    ) -> None:
        self.is_local = is_local  # the adjoints of the parameters alone are wanted, not those of arrays
        self.recalls = recalls or {}  # where recorded values are, by record id: an offset or a position
        self.function = function
        self.analysis = analysis
        self.activity = Activity(function)
        self.definitions = definitions(function)
        self.builder = Builder()
        self.problems: dict[Problem, None] = {}
        self.replay_args: dict[int, tuple[Value, ...]] = {}  # body arguments of the replayed loop, by site
        self.saved_states: dict[int, tuple[Value, ...]] = {}  # those that the reverse loop of the site needs
        # Functions that are called number their sites on, since a call may run between a loop and its reverse.
        first = 1 + max(
            (op.site for op in function.walk() if isinstance(op, ReverseLoop) and op.site is not None), default=-1
        )
        self._sites: Iterator[int] = itertools.count(first) if outer is None else outer._sites

    def new_site(self) -> int:
        return next(self._sites)

    def fail(self, op: Op, text: str) -> None:
        """Note that the adjoint would be wrong because of `op`."""
        self.problems[Problem(op.loc, text)] = None

    def primal(self, frame: Frame, value: Value) -> Value:
        """The replayed value; array views are made again where they are needed."""
        if value in frame.primal:
            return frame.primal[value]
        op = self.definitions[value]
        assert self.is_remade(value), f"{value} was not replayed where it is needed"
        operands = tuple(self.primal(frame, operand) for operand in op.operands)
        copy = Value(value.type, value.name)
        self.builder.append(op.rebuilt((copy,), operands, ()))
        frame.primal[value] = copy
        return copy

    def recalled(self, frame: Frame, op: Load | Atomic) -> Value:
        """The value that a load gave or that an atomic found, from the record if there is one.

        Without a record it is read again, with the reason why that would be wrong; if the value is needed, the
        adjoint is not usable as it is.
        """
        type = component_type(op.array.type.dtype, op.path)
        name = op.results[0].name if op.results else ""
        recorded = self.from_record(frame, op.record_id, type, name)
        if recorded is not None:
            return recorded
        result = Value(type, name)
        operands = [self.primal(frame, v) for v in (op.array, *op.indices, *op.path_indices)]
        hazard = f"the result of the atomic in line {op.loc.line} is not kept for the backward pass"
        self.builder.append(
            Load(
                loc=op.loc,
                results=(result,),
                operands=tuple(operands),
                rank=op.rank,
                path=op.path,
                space=op.space,
                hazard=op.hazard if isinstance(op, Load) else hazard,
                record_id=op.record_id,
            )
        )
        return result

    def from_record(self, frame: Frame, record_id: int | None, type: Type, name: str) -> Value | None:
        """A value that the forward launch kept, or None if it has kept none of this number."""
        place = self.recalls.get(record_id) if record_id is not None else None
        if place is None:
            return None
        return self.builder.recall(type, place if isinstance(place, int) else self.primal(frame, place), name)

    def is_remade(self, value: Value) -> bool:
        """Tell whether a value is an array view or member, which is made again rather than handed on."""
        return is_array(value.type) and isinstance(self.definitions.get(value), (View, Extract))

    def accumulate(self, frame: Frame, value: Value, contribution: Value) -> None:
        """Add to the adjoint of an original value, unless no gradient can reach an input through it."""
        if value not in self.activity:
            return
        before = frame.adjoints.get(value)
        frame.adjoints[value] = contribution if before is None else self.add(before, contribution)

    def add(self, left: Value, right: Value) -> Value:
        """Sum of two adjoints of one type; fields of structs without a derivative are dropped."""
        type = left.type
        if isinstance(type, StructType):
            parts = []
            for name, field_type in type.fields.items():
                if is_differentiable(field_type):
                    parts.append(self.add(self.builder.extract(left, (name,)), self.builder.extract(right, (name,))))
                else:
                    parts.append(self.builder.zero(field_type))
            return self.builder.construct(type, parts)
        return self.builder.call(resolve("add", [type, type]), (left, right))[0]

    def negate(self, value: Value) -> Value:
        return self.builder.call(resolve("neg", [value.type]), (value,))[0]
