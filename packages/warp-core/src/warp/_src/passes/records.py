"""Records: values that the taped forward launch keeps because its adjoint could not read them again.

A value outside loops has a fixed place per thread. Values inside loops go to a stream in program order; the
replay finds them by a position that is threaded through the primal function as an ordinary integer, so that
checkpoints, closed forms and dead code elimination treat it like any other value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Type, Value
from warp._src.ir.memory import record_size
from warp._src.ir.ops import Atomic, If, Invoke, Load, Loop, Native, Op
from warp._src.ir.traverse import clone_function
from warp._src.passes.adjoint_context import Problem
from warp._src.types.scalars import int64
from warp._src.types.signature import component_type


@dataclass(frozen=True)
class RecordLayout:
    """Where recorded values lie: offsets of those with a fixed place, by record id, and ids in the stream."""

    fixed: Mapping[int, int]
    stream: frozenset[int]
    bytes_per_thread: int

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self.fixed) | self.stream


@dataclass(frozen=True)
class _Site:
    op: Load | Atomic | Native
    is_in_loop: bool
    is_in_condition: bool
    is_in_call: bool


def plan_records(function: Function, ids: Collection[int]) -> tuple[RecordLayout, tuple[Problem, ...]]:
    """Lay out the values with these record ids; problems name those that cannot be recorded."""
    fixed: dict[int, int] = {}
    stream: set[int] = set()
    problems: list[Problem] = []
    size = 0
    for site in _sites(function.body, ids):
        assert site.op.record_id is not None
        line = site.op.loc.line
        if not site.is_in_loop:
            fixed[site.op.record_id] = size
            size += record_size(_value_type(site.op))
        elif site.is_in_condition:
            text = f"the condition of a loop in line {line} reads what the kernel overwrites"
            problems.append(Problem(site.op.loc, text))
        elif site.is_in_call:
            text = (
                f"a function with a custom adjoint, called in a loop, reads in line {line} what the kernel overwrites"
            )
            problems.append(Problem(site.op.loc, text))
        else:
            stream.add(site.op.record_id)
    return RecordLayout(fixed, frozenset(stream), size), tuple(problems)


def with_records(function: Function, layout: RecordLayout) -> Function:
    """Give a copy of the kernel that keeps the values of the layout."""
    copy = clone_function(function)
    _insert_records(copy.body, layout)
    return copy


def thread_positions(function: Function, stream: Collection[int]) -> dict[int, Value]:
    """Thread the position in the stream through the kernel, in place; give the position of each recorded value."""
    positions: dict[int, Value] = {}
    if stream:
        head = Region()
        start = Builder(head).record_start()
        _Threading(stream, positions).region(function.body, start)
        function.body.ops[:0] = head.ops
    return positions


def _value_type(op: Load | Atomic | Native) -> Type:
    return op.results[0].type if isinstance(op, Native) else component_type(op.array.type.dtype, op.path)


def _sites(
    region: Region, ids: Collection[int], in_loop: bool = False, in_condition: bool = False, in_call: bool = False
) -> Iterator[_Site]:
    for op in region.ops:
        if isinstance(op, (Load, Atomic, Native)) and op.record_id in ids:
            yield _Site(op, in_loop, in_condition, in_call)
        if isinstance(op, Invoke):
            yield from _sites(op.function.body, ids, in_loop, in_condition, True)
        for inner in op.regions:
            is_condition = isinstance(op, Loop) and inner is op.condition
            yield from _sites(inner, ids, in_loop or isinstance(op, Loop), in_condition or is_condition, in_call)


def _insert_records(region: Region, layout: RecordLayout) -> None:
    ops: list[Op] = []
    builder = Builder(Region((), ops))
    for original in region.ops:
        op = original
        if isinstance(op, Atomic) and not op.results and op.record_id in layout.ids:
            op = replace(op, results=(Value(_value_type(op)),))
        if isinstance(op, Invoke):
            function = clone_function(op.function)
            _insert_records(function.body, layout)
            op = replace(op, function=function)
        for inner in op.regions:
            _insert_records(inner, layout)
        ops.append(op)
        if isinstance(op, (Load, Atomic, Native)) and op.record_id is not None and op.record_id in layout.ids:
            with builder.at(op.loc):
                builder.record(op.results[0], layout.fixed.get(op.record_id))
    region.ops[:] = ops


class _Threading:
    """Carries the position through regions."""

    def __init__(self, stream: Collection[int], positions: dict[int, Value]) -> None:
        self._stream = stream
        self._positions = positions

    def region(self, region: Region, base: Value) -> Value:
        """Rewrite a region that is entered at a position; give the position at its end.

        Positions are sums of a base and a constant, so that those in a loop become closed forms of its counter.
        """
        ops: list[Op] = []
        builder = Builder(Region((), ops))
        offset = 0
        for op in region.ops:
            if isinstance(op, (If, Loop)) and self._has_sites(op):
                base = self._moved(builder, base, offset)
                base, offset = self._if(op, base, ops) if isinstance(op, If) else self._loop(op, base, ops), 0
                continue
            if isinstance(op, (Load, Atomic, Native)) and op.record_id is not None and op.record_id in self._stream:
                with builder.at(op.loc):
                    self._positions[op.record_id] = self._moved(builder, base, offset)
                offset += record_size(_value_type(op))
            ops.append(op)
        end = ops.pop()
        base = self._moved(builder, base, offset) if offset else base
        ops.append(end)
        region.ops[:] = ops
        return base

    @staticmethod
    def _moved(builder: Builder, base: Value, offset: int) -> Value:
        return builder.call(resolve("add", [int64, int64]), (base, builder.const(int64, offset)))[0]

    def _has_sites(self, op: Op) -> bool:
        if isinstance(op, (Load, Atomic, Native)) and op.record_id in self._stream:
            return True
        return any(self._has_sites(inner) for region in op.regions for inner in region.ops)

    def _if(self, op: If, position: Value, ops: list[Op]) -> Value:
        for region in op.regions:
            _extend_yield(region, self.region(region, position))
        result = Value(int64, "position")
        ops.append(op.rebuilt((*op.results, result), op.operands, op.regions))
        return result

    def _loop(self, op: Loop, position: Value, ops: list[Op]) -> Value:
        argument = Value(int64, "position")
        op.body.args = (*op.body.args, argument)
        if op.condition is not None:
            op.condition.args = (*op.condition.args, Value(int64, "position"))
        _extend_yield(op.body, self.region(op.body, argument))
        result = Value(int64, "position")
        ops.append(op.rebuilt((*op.results[:-1], result, op.count), (*op.operands, position), op.regions))
        return result


def _extend_yield(region: Region, value: Value) -> None:
    end = region.terminator
    region.ops[-1] = end.rebuilt((), (*end.operands, value), ())


__all__ = ["RecordLayout", "plan_records", "thread_positions", "with_records"]
