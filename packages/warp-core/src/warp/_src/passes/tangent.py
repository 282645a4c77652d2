"""Forward mode: a kernel that computes its results and, beside them, their derivatives along one direction.

The tangent function takes the kernel's parameters and then one more of the same type for each: the direction of
a scalar, tensor or struct, and for an array one whose memory holds the tangents of the array's memory, and
whose gradient holds those of its gradient. So the tangent of a forward kernel multiplies by the Jacobian, and
the tangent of a backward kernel by the Hessian.

Where a kernel keeps values for its adjoint, its tangent keeps each twice: the value, then its tangent. So what lies at
`offset`, or at a position in the stream, lies at twice that in the records of tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.memory import record_size
from warp._src.ir.ops import (
    Atomic,
    Call,
    Cast,
    Construct,
    Extract,
    If,
    Insert,
    Load,
    Loop,
    Native,
    Op,
    Recall,
    Record,
    RecordStart,
    ReverseLoop,
    Store,
    View,
    Yield,
)
from warp._src.passes.adjoint_context import Problem
from warp._src.passes.adjoint_rules import chosen
from warp._src.passes.tangent_rules import call_tangents
from warp._src.types.scalars import int64
from warp._src.types.signature import is_array, is_differentiable


@dataclass(frozen=True, eq=False)
class Tangent:
    """The tangent function of a kernel; if `problems` is not empty it must not run."""

    function: Function
    problems: tuple[Problem, ...]


@dataclass
class _Frame:
    """Values of the kernel in one scope of the tangent function: their copies, tangents and shadow arrays."""

    primal: dict[Value, Value]
    tangent: dict[Value, Value]
    shadow: dict[Value, Value]

    def child(self) -> _Frame:
        return _Frame(dict(self.primal), dict(self.tangent), dict(self.shadow))


def tangent_of(function: Function) -> Tangent:
    """Build the tangent function of a kernel without calls of user functions.

    That of a function yields the tangents of its differentiable results.
    """
    params = tuple(Value(param.type, param.name) for param in function.body.args)
    shadows = tuple(Value(param.type, f"{param.name}_dot") for param in function.body.args)
    frame = _Frame(dict(zip(function.body.args, params, strict=True)), {}, {})
    for param, shadow in zip(function.body.args, shadows, strict=True):
        frame.shadow[param] = shadow
        if is_differentiable(param.type):
            frame.tangent[param] = shadow
    body = Region((*params, *shadows))
    writer = _Writer()
    with writer.builder.into(body):
        writer.ops(function.body.ops, frame)
        ends = [value for value in function.body.terminator.operands if is_differentiable(value.type)]
        writer.builder.yield_([writer.direction(frame, value) for value in ends])
    types = tuple(value.type for value in ends)
    made = replace(function, name=f"{function.name}_tangent", params=body.args, result_types=types, body=body)
    return Tangent(made, tuple(writer.problems))


class _Writer:
    """Emits primal and tangent code side by side."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.problems: dict[Problem, None] = {}

    def ops(self, ops: Sequence[Op], frame: _Frame) -> None:
        for op in ops:
            with self.builder.at(op.loc):
                self._op(op, frame)

    def _op(self, op: Op, frame: _Frame) -> None:
        if isinstance(op, Yield):
            return
        if isinstance(op, If):
            self._if(op, frame)
        elif isinstance(op, Loop):
            self._loop(op, frame)
        elif isinstance(op, ReverseLoop):
            self._reverse_loop(op, frame)
        elif isinstance(op, Record):
            self._record(op, frame)
        elif isinstance(op, Recall):
            self._recall(op, frame)
        elif isinstance(op, RecordStart):
            start = self.builder.record_start()
            frame.primal[op.results[0]] = self._scaled("div", start)
        elif isinstance(op, Native):
            text = f"forward mode through native function '{op.name}' in line {op.loc.line}"
            self.problems[Problem(op.loc, text)] = None
            self._copy(op, frame)
        elif isinstance(op, Atomic):
            self._atomic(op, frame)
        else:
            self._copy(op, frame)
            self._tangent(op, frame)

    def _copy(self, op: Op, frame: _Frame) -> None:
        operands = tuple(frame.primal[operand] for operand in op.operands)
        results = tuple(Value(result.type, result.name) for result in op.results)
        self.builder.append(op.rebuilt(results, operands, ()))
        frame.primal.update(zip(op.results, results, strict=True))

    def direction(self, frame: _Frame, value: Value) -> Value:
        """The tangent of a value, zero if it has none."""
        return frame.tangent.get(value) or self.builder.zero(value.type)

    def _tangent(self, op: Op, frame: _Frame) -> None:
        """Emit the tangents of the results of an operation that has been copied."""
        if isinstance(op, View):
            self._shadow(op, frame)
        elif isinstance(op, (Load, Store)):
            self._access(op, frame)
        elif isinstance(op, Extract) and is_array(op.result.type):
            self._shadow(op, frame)
        elif isinstance(op, (Cast, Construct, Extract, Insert)):
            self._structural(op, frame)
        elif isinstance(op, Call):
            tangents = [frame.tangent.get(operand) for operand in op.operands]
            if any(tangents):
                operands = [frame.primal[operand] for operand in op.operands]
                results = [frame.primal[result] for result in op.results]
                found = call_tangents(self.builder, op, operands, results, tangents, self.problems)
                frame.tangent.update((r, t) for r, t in zip(op.results, found, strict=True) if t is not None)

    def _shadow(self, op: Op, frame: _Frame) -> None:
        array = op.operands[0]
        if array not in frame.shadow:
            self._fail_array(op)
            return
        shadow = Value(op.results[0].type)
        operands = (frame.shadow[array], *(frame.primal[index] for index in op.operands[1:]))
        self.builder.append(op.rebuilt((shadow,), operands, ()))
        frame.shadow[op.results[0]] = shadow

    def _fail_array(self, op: Op) -> None:
        text = f"forward mode cannot follow the array in line {op.loc.line} to its tangents"
        self.problems[Problem(op.loc, text)] = None

    def _access(self, op: Load | Store, frame: _Frame) -> None:
        type = op.value.type if isinstance(op, Store) else op.result.type
        if not is_differentiable(type):
            return
        if op.array not in frame.shadow:
            self._fail_array(op)
            return
        shadow = frame.shadow[op.array]
        indices = [frame.primal[index] for index in op.indices]
        path_indices = [frame.primal[index] for index in op.path_indices]
        if isinstance(op, Store):
            direction = self.direction(frame, op.value)
            self.builder.store(shadow, direction, indices, op.path, path_indices, op.space)
        else:
            frame.tangent[op.result] = self.builder.load(shadow, indices, op.path, path_indices, op.space)

    def _structural(self, op: Op, frame: _Frame) -> None:
        """Operations that move components about: the tangent moves in the same way."""
        result = op.results[0]
        if not is_differentiable(result.type) or not any(operand in frame.tangent for operand in op.operands):
            return
        count = {Construct: len(op.operands), Insert: 2}.get(type(op), 1)
        operands = [self.direction(frame, operand) for operand in op.operands[:count]]
        operands += [frame.primal[index] for index in op.operands[count:]]
        tangent = Value(result.type)
        self.builder.append(op.rebuilt((tangent,), tuple(operands), ()))
        frame.tangent[result] = tangent

    def _atomic(self, op: Atomic, frame: _Frame) -> None:
        if not is_differentiable(op.value.type):
            self._copy(op, frame)
            return
        with_result = op if op.results else replace(op, results=(Value(op.value.type),))
        self._copy(with_result, frame)
        if op.array not in frame.shadow:
            self._fail_array(op)
            return
        builder, old = self.builder, frame.primal[with_result.result]
        array = frame.shadow[op.array]
        indices = [frame.primal[index] for index in op.indices]
        path_indices = [frame.primal[index] for index in op.path_indices]
        direction = self.direction(frame, op.value)
        if op.kind in ("add", "sub", "exch"):
            before = builder.atomic(op.kind, array, direction, indices, op.path, path_indices, op.space)
        else:
            before = builder.load(array, indices, op.path, path_indices, op.space)
            left = frame.primal[op.operands[-1] if op.kind == "cas" else op.value]
            after = chosen(builder, {"max": "gt", "min": "lt"}.get(op.kind, "eq"), left, old, direction, before)
            builder.store(array, after, indices, op.path, path_indices, op.space)
        frame.tangent[with_result.result] = before

    # -- records ---------------------------------------------------------------------------------------

    def _record(self, op: Record, frame: _Frame) -> None:
        (kept,) = op.operands
        value = frame.primal[kept]
        tangent = self.direction(frame, kept) if is_differentiable(kept.type) else value
        at = None if op.offset is None else 2 * op.offset
        self.builder.record(value, at)
        self.builder.record(tangent, None if at is None else at + record_size(kept.type))

    def _recall(self, op: Recall, frame: _Frame) -> None:
        type, size = op.result.type, record_size(op.result.type)
        at: Value | int
        beside: Value | int
        if op.offset is not None:
            at, beside = 2 * op.offset, 2 * op.offset + size
        else:
            at = self._scaled("mul", frame.primal[op.operands[0]])
            beside = self.builder.call(resolve("add", [int64, int64]), (at, self.builder.const(int64, size)))[0]
        frame.primal[op.result] = self.builder.recall(type, at, op.result.name)
        if is_differentiable(type):
            frame.tangent[op.result] = self.builder.recall(type, beside)

    def _scaled(self, operator: str, position: Value) -> Value:
        return self.builder.call(resolve(operator, [int64, int64]), (position, self.builder.const(int64, 2)))[0]

    # -- control ---------------------------------------------------------------------------------------

    def _if(self, op: If, frame: _Frame) -> None:
        frames, regions = [], []
        for region in op.regions:
            inner, made = frame.child(), Region()
            with self.builder.into(made):
                self.ops(region.ops, inner)
            frames.append(inner)
            regions.append(made)
        yielded = [region.terminator.operands for region in op.regions]
        active = [
            n
            for n in range(len(op.results))
            if any(values[n] in inner.tangent for values, inner in zip(yielded, frames, strict=True))
        ]
        for made, inner, values in zip(regions, frames, yielded, strict=True):
            with self.builder.into(made):
                ends = [inner.primal[value] for value in values]
                self.builder.yield_([*ends, *(self.direction(inner, values[n]) for n in active)])
        results = self.builder.if_(frame.primal[op.condition], regions[0], regions[1])
        count = len(op.results)
        frame.primal.update(zip(op.results, results[:count], strict=True))
        frame.tangent.update(zip((op.results[n] for n in active), results[count:], strict=True))

    def _loop(self, op: Loop, frame: _Frame) -> None:
        active = [n for n, init in enumerate(op.inits) if init in frame.tangent]
        while True:
            body, inner = self._body(op.body, frame, 1, active)
            ends = op.body.terminator.operands
            found = [n for n, end in enumerate(ends) if end in inner.tangent or n in active]
            if found == active:
                break
            active = found
        with self.builder.into(body):
            self.builder.yield_([*(inner.primal[e] for e in ends), *(self.direction(inner, ends[n]) for n in active)])
        condition = None
        if op.condition is not None:
            condition, test = self._body(op.condition, frame, 0, active)
            with self.builder.into(condition):
                self.builder.yield_([test.primal[op.condition.terminator.operands[0]]])
        inits = [frame.primal[init] for init in op.inits]
        inits += [self.direction(frame, op.inits[n]) for n in active]
        trip = None if op.trip is None else frame.primal[op.trip]
        results = self.builder.loop(trip, inits, condition, body)
        count = len(op.inits)
        frame.primal.update(zip(op.results, (*results[:count], results[-1]), strict=True))
        frame.tangent.update(zip((op.results[n] for n in active), results[count:-1], strict=True))

    def _body(self, region: Region, frame: _Frame, first: int, active: Sequence[int]) -> tuple[Region, _Frame]:
        """Translate a region whose arguments from `first` on are carried, those in `active` with a tangent."""
        args = tuple(Value(arg.type, arg.name) for arg in region.args)
        tangents = tuple(Value(region.args[first + n].type) for n in active)
        made = Region((*args, *tangents))
        inner = frame.child()
        inner.primal.update(zip(region.args, args, strict=True))
        inner.tangent.update(zip((region.args[first + n] for n in active), tangents, strict=True))
        with self.builder.into(made):
            self.ops(region.ops, inner)
        return made, inner

    def _reverse_loop(self, op: ReverseLoop, frame: _Frame) -> None:
        states = [n for n, value in enumerate(op.entry_state) if value in frame.tangent]
        while True:
            advance, moved = self._body(op.advance, frame, 1, states)
            ends = op.advance.terminator.operands
            found = [n for n, end in enumerate(ends) if end in moved.tangent or n in states]
            if found == states:
                break
            states = found
        with self.builder.into(advance):
            following = [moved.primal[end] for end in ends]
            self.builder.yield_([*following, *(self.direction(moved, ends[n]) for n in states)])
        adjoints = [n for n, value in enumerate(op.inits) if value in frame.tangent]
        while True:
            active = [*states, *(op.states + n for n in adjoints)]
            reverse, inner = self._body(op.reverse, frame, 1, active)
            ends = op.reverse.terminator.operands
            found = [n for n, end in enumerate(ends) if end in inner.tangent or n in adjoints]
            if found == adjoints:
                break
            adjoints = found
        with self.builder.into(reverse):
            final = [inner.primal[end] for end in ends]
            self.builder.yield_([*final, *(self.direction(inner, ends[n]) for n in adjoints)])
        index, *args = reverse.args
        split, moving = op.states, len(args) - len(adjoints) - len(states)
        # States and their tangents come first, then the adjoints and theirs.
        reverse.args = (
            index,
            *args[:split],
            *args[moving : moving + len(states)],
            *args[split:moving],
            *args[moving + len(states) :],
        )
        entry = [
            *(frame.primal[v] for v in op.entry_state),
            *(self.direction(frame, op.entry_state[n]) for n in states),
        ]
        inits = [*(frame.primal[v] for v in op.inits), *(self.direction(frame, op.inits[n]) for n in adjoints)]
        results = tuple(Value(init.type) for init in inits)
        self.builder.append(
            ReverseLoop(
                loc=op.loc,
                results=results,
                operands=(frame.primal[op.trip], *entry, *inits),
                regions=(advance, reverse),
                states=len(entry),
                site=op.site if entry else None,
            )
        )
        count = len(op.inits)
        frame.primal.update(zip(op.results, results[:count], strict=True))
        frame.tangent.update(zip((op.results[n] for n in adjoints), results[count:], strict=True))


__all__ = ["Tangent", "tangent_of"]
