"""Replay and reversal of regions, branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import (
    Atomic,
    Call,
    If,
    Invoke,
    Load,
    Loop,
    Native,
    Op,
    ReverseLoop,
    Store,
    Yield,
    has_effects,
)
from warp._src.ir.traverse import clone_region, map_operands, map_values, replace_uses
from warp._src.passes.adjoint_context import AdjointContext, Frame
from warp._src.passes.adjoint_finish import finish
from warp._src.passes.adjoint_rules import reverse_op
from warp._src.passes.inline import has_custom_adjoint
from warp._src.passes.liveness import Liveness, eliminate_dead
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.signature import is_differentiable


class Reverser:
    """Emits replay and reverse sweep of regions into the context's builder."""

    def __init__(self, context: AdjointContext) -> None:
        self.context = context
        self.builder = context.builder
        self._defined: dict[Region, frozenset[Value]] = {}
        self._joint: dict[Function, Function] = {}
        self._flows: dict[Loop, tuple[dict[int, None], dict[Value, None]]] = {}

    # -- replay ----------------------------------------------------------------------------------------

    def replay(self, ops: Sequence[Op], frame: Frame, expose: bool) -> None:
        """Recompute the values of `ops` without their effects.

        With `expose` the values inside branches become results of the branch, so that the reverse sweep can
        refer to them.
        """
        for op in ops:
            with self.builder.at(op.loc):
                self._replay_op(op, frame, expose)

    def _replay_op(self, op: Op, frame: Frame, expose: bool) -> None:
        if isinstance(op, Yield):
            return
        if isinstance(op, If):
            self._replay_if(op, frame, expose)
        elif isinstance(op, Loop):
            self._replay_loop(op, frame)
        elif isinstance(op, Invoke):
            self._replay_call(op, frame)
        elif isinstance(op, Atomic) or (isinstance(op, Load) and op.hazard):
            self._replay_recorded(op, frame)
        elif isinstance(op, Native):
            self._replay_native(op, frame)
        elif not isinstance(op, Store) and not (isinstance(op, Call) and not op.results):
            self._copy(op, frame)

    def _copy(self, op: Op, frame: Frame) -> None:
        operands = tuple(self.context.primal(frame, operand) for operand in op.operands)
        results = tuple(Value(result.type, result.name) for result in op.results)
        # Only a ReverseLoop, which a gradient taken inside the kernel leaves, has regions here.
        regions = tuple(clone_region(region, dict(frame.primal)) for region in op.regions)
        self.builder.append(op.rebuilt(results, operands, regions))
        frame.primal.update(zip(op.results, results, strict=True))

    def _replay_if(self, op: If, frame: Frame, expose: bool) -> None:
        frames: list[Frame] = []
        regions: list[Region] = []
        for region in op.regions:
            inner = frame.child()
            copy = Region()
            with self.builder.into(copy):
                self.replay(region.ops, inner, expose)
            frames.append(inner)
            regions.append(copy)
        exposed = [
            [v for v in inner.primal if v not in frame.primal and not self.context.is_remade(v)] if expose else []
            for inner in frames
        ]
        for side, (region, inner, copy) in enumerate(zip(op.regions, frames, regions, strict=True)):
            with self.builder.into(copy):
                values = [self.context.primal(inner, value) for value in region.terminator.operands]
                for owner, names in enumerate(exposed):
                    values += [inner.primal[v] if owner == side else self.builder.zero(v.type) for v in names]
                self.builder.yield_(values)
        results = self.builder.if_(self.context.primal(frame, op.condition), regions[0], regions[1])
        frame.primal.update(zip((*op.results, *exposed[0], *exposed[1]), results, strict=True))
        for inner in frames:
            frame.sites.update(inner.sites)

    def _replay_loop(self, op: Loop, frame: Frame) -> None:
        operands = tuple(self.context.primal(frame, operand) for operand in op.operands)
        regions = []
        for region in op.regions:
            inner = frame.child()
            copy = Region(tuple(Value(arg.type, arg.name) for arg in region.args))
            inner.primal.update(zip(region.args, copy.args, strict=True))
            with self.builder.into(copy):
                self.replay(region.ops, inner, expose=False)
                self.builder.yield_([self.context.primal(inner, value) for value in region.terminator.operands])
            regions.append(copy)
        results = tuple(Value(result.type, result.name) for result in op.results)
        site = self.context.new_site()
        self.builder.append(replace(op, results=results, operands=operands, regions=tuple(regions), site=site))
        frame.primal.update(zip(op.results, results, strict=True))
        frame.sites[op] = site
        self.context.replay_args[site] = regions[-1].args[1:]

    def _replay_call(self, op: Invoke, frame: Frame) -> None:
        if not has_custom_adjoint(op.function):
            self._copy(op, frame)
            return
        function = op.function.custom_replay or op.function
        inner = frame.child()
        operands = [self.context.primal(frame, operand) for operand in op.operands]
        inner.primal.update(zip(function.body.args, operands, strict=True))
        self.context.definitions.update({result: o for o in function.body.walk() for result in o.results})
        self.replay(function.body.ops, inner, expose=False)
        yielded = function.body.terminator.operands
        values = [self.context.primal(inner, value) for value in yielded]
        frame.primal.update(zip(op.results, values, strict=False))

    def _replay_recorded(self, op: Load | Atomic, frame: Frame) -> None:
        for result in op.results:
            frame.primal[result] = self.context.recalled(frame, op)

    def _replay_native(self, op: Native, frame: Frame) -> None:
        if op.replay_snippet is not None:
            self._copy(replace(op, snippet=op.replay_snippet), frame)
        elif op.results:
            result = op.results[0]
            recorded = self.context.from_record(frame, op.record_id, result.type, result.name)
            if recorded is None:
                self._copy(op, frame)
            else:
                frame.primal[result] = recorded

    # -- reverse ---------------------------------------------------------------------------------------

    def reverse(self, ops: Sequence[Op], frame: Frame) -> None:
        """Emit the reverse sweep of `ops`, whose values `frame` holds."""
        for op in reversed(ops):
            with self.builder.at(op.loc):
                if isinstance(op, If):
                    self._reverse_if(op, frame)
                elif isinstance(op, Loop):
                    self._reverse_loop(op, frame)
                elif isinstance(op, Invoke):
                    self._reverse_call(op, frame)
                else:
                    reverse_op(self.context, frame, op)

    def _reverse_if(self, op: If, frame: Frame) -> None:
        seeds = [frame.adjoints.get(result) for result in op.results]
        if not any(seeds) and not _has_memory_adjoint(op):
            return
        frames: list[Frame] = []
        regions: list[Region] = []
        for region in op.regions:
            inner = frame.child()
            copy = Region()
            with self.builder.into(copy):
                for value, seed in zip(region.terminator.operands, seeds, strict=True):
                    if seed is not None:
                        self.context.accumulate(inner, value, seed)
                self.reverse(region.ops, inner)
            frames.append(inner)
            regions.append(copy)
        outer = dict.fromkeys(
            value
            for region, inner in zip(op.regions, frames, strict=True)
            for value in inner.adjoints
            if value not in self._defined_in(region)
        )
        for inner, copy in zip(frames, regions, strict=True):
            with self.builder.into(copy):
                self.builder.yield_([inner.adjoints.get(value) or self.builder.zero(value.type) for value in outer])
        results = self.builder.if_(self.context.primal(frame, op.condition), regions[0], regions[1])
        for value, result in zip(outer, results, strict=True):
            self.context.accumulate(frame, value, result)

    def _reverse_call(self, op: Invoke, frame: Frame) -> None:
        gradient = op.function.custom_gradient
        if gradient is None:
            if op.function.custom_replay is None:
                self._reverse_shared_call(op, frame)
            else:
                self._reverse_replayed_call(op, frame)
            return
        seeds = [frame.adjoints.get(result) for result in op.results[: len(op.results) - len(op.function.changed)]]
        if not any(seeds) and not any(has_effects(inner) for inner in gradient.walk()):
            return
        operands = [self.context.primal(frame, operand) for operand in op.operands]
        operands += [seed or self.builder.zero(result.type) for seed, result in zip(seeds, op.results, strict=False)]
        mapping: dict[Value, Value] = {}
        body = clone_region(gradient.body, mapping)
        inner = Frame(dict(zip(body.args, operands, strict=True)))
        contributions = self._splice(body, inner)
        for param, contribution in zip(op.function.gradient_params, contributions, strict=True):
            self.context.accumulate(frame, op.operands[param], contribution)

    def _reverse_replayed_call(self, op: Invoke, frame: Frame) -> None:
        """A custom replay replaces what a function recomputes; its integer results need no gradient."""
        if any(result in frame.adjoints for result in op.results) or _writes_floats(op.function.body):
            name = op.function.name
            text = f"line {op.loc.line} calls '{name}', which has a custom replay but no custom gradient"
            self.context.fail(op, text)

    def _reverse_shared_call(self, op: Invoke, frame: Frame) -> None:
        """Call the adjoint of a function that keeps its own body; it replays and reverses in one."""
        seeds = [frame.adjoints.get(result) for result in op.results]
        if not any(seeds):
            return
        function = self._joint_adjoint(op.function)
        operands = [self.context.primal(frame, operand) for operand in op.operands]
        operands += [seed or self.builder.zero(r.type) for seed, r in zip(seeds, op.results, strict=True)]
        contributions = self.builder.invoke(function, operands)
        targets = [operand for operand in op.operands if is_differentiable(operand.type)]
        for operand, contribution in zip(targets, contributions, strict=True):
            self.context.accumulate(frame, operand, contribution)

    def _joint_adjoint(self, function: Function) -> Function:
        """From parameters and result adjoints to the adjoints of the differentiable parameters."""
        if function not in self._joint:
            context = AdjointContext(function, self.context.analysis, self.context)
            params = [Value(param.type, param.name) for param in function.body.args]
            seeds = [Value(type, "adj_ret") for type in function.result_types]
            body = Region((*params, *seeds))
            frame = Frame(dict(zip(function.body.args, params, strict=True)))
            reverser = Reverser(context)
            targets = [param for param in function.body.args if is_differentiable(param.type)]
            with context.builder.into(body):
                reverser.replay(function.body.ops, frame, expose=True)
                for value, seed in zip(function.body.terminator.operands, seeds, strict=True):
                    context.accumulate(frame, value, seed)
                reverser.reverse(function.body.ops, frame)
                context.builder.yield_([frame.adjoints.get(t) or context.builder.zero(t.type) for t in targets])
            finish(body, context)
            self.context.problems.update(context.problems)
            types = tuple(target.type for target in targets)
            self._joint[function] = Function(f"adj_{function.name}", body.args, types, body, function.loc)
        return self._joint[function]

    def _splice(self, body: Region, frame: Frame) -> list[Value]:
        """Append the operations of a private region, effects included; give what it yields."""
        for op in body.ops[:-1]:
            for inner in op.regions:
                replace_uses(inner, frame.primal)
            self.builder.append(map_operands(op, frame.primal))
        return list(map_values(body.terminator.operands, frame.primal))

    # -- loops -----------------------------------------------------------------------------------------

    def _reverse_loop(self, op: Loop, frame: Frame) -> None:
        seeds = {n: frame.adjoints[r] for n, r in enumerate(op.results[:-1]) if r in frame.adjoints}
        if not seeds and not _has_memory_adjoint(op):
            return
        if op.condition is not None and _writes_floats(op.condition):
            self.context.fail(op, f"the condition of the loop in line {op.loc.line} writes to an array")
        # Adjoints may flow round the loop into values that had none at its end: repeat until none is new. A loop
        # around this one repeats too, each time with more adjoints than before, so what was found stays.
        carried, outer = self._flows.setdefault(op, ({}, {}))
        carried.update(dict.fromkeys(seeds))
        while True:
            reverse, inner, states = self._reverse_body(op, frame, carried, outer)
            found = [n for n, arg in enumerate(op.body.args[1:]) if arg in inner.adjoints and n not in carried]
            reached = [v for v in inner.adjoints if v not in self._defined_in(op.body) and v not in outer]
            if not found and not reached:
                break
            carried.update(dict.fromkeys(found))
            outer.update(dict.fromkeys(reached))
        if not carried and not outer and not _has_memory_adjoint(op):
            return
        eliminate_dead(reverse)
        live = Liveness(reverse).used
        needed = self._closed_states(op, frame, [n for n, state in enumerate(states) if state in live])
        advance = self._advance_region(op, frame, needed)
        adjoint_args = reverse.args[1 + len(states) :]
        reverse.args = (reverse.args[0], *(states[n] for n in needed), *adjoint_args)
        self._append_reverse_loop(op, frame, (advance, reverse), needed, seeds, list(carried), list(outer))

    def _append_reverse_loop(
        self,
        op: Loop,
        frame: Frame,
        regions: tuple[Region, Region],
        needed: list[int],
        seeds: dict[int, Value],
        carried: list[int],
        outer: list[Value],
    ) -> None:
        trip = op.count if op.trip is None or op.has_condition else op.trip
        inits = [seeds.get(n) or self.builder.zero(op.inits[n].type) for n in carried]
        inits += [self.builder.zero(value.type) for value in outer]
        results = tuple(Value(init.type) for init in inits)
        entry = [self.context.primal(frame, op.inits[n]) for n in needed]
        site = frame.sites[op] if needed else None
        if site is not None:
            self.context.saved_states[site] = tuple(self.context.replay_args[site][n] for n in needed)
        self.builder.append(
            ReverseLoop(
                loc=op.loc,
                results=results,
                operands=(self.context.primal(frame, trip), *entry, *inits),
                regions=regions,
                states=len(needed),
                site=site,
            )
        )
        for n, result in zip(carried, results, strict=False):
            self.context.accumulate(frame, op.inits[n], result)
        for value, result in zip(outer, results[len(carried) :], strict=True):
            self.context.accumulate(frame, value, result)

    def _reverse_body(
        self, op: Loop, frame: Frame, carried: dict[int, None], outer: dict[Value, None]
    ) -> tuple[Region, Frame, tuple[Value, ...]]:
        """One iteration in reverse, with every carried value as state."""
        body = op.body
        index, *old = body.args
        states = tuple(Value(arg.type, arg.name) for arg in old)
        new_index = Value(index.type, index.name)
        adjoints = [Value(old[n].type) for n in carried]
        sums = [Value(value.type) for value in outer]
        region = Region((new_index, *states, *adjoints, *sums))
        inner = frame.child()
        inner.primal.update(zip(body.args, (new_index, *states), strict=True))
        with self.builder.into(region):
            self.replay(body.ops, inner, expose=True)
            for n, adjoint in zip(carried, adjoints, strict=True):
                self.context.accumulate(inner, body.terminator.operands[n], adjoint)
            self.reverse(body.ops, inner)
            ends = [inner.adjoints.get(old[n]) or self.builder.zero(old[n].type) for n in carried]
            for value, total in zip(outer, sums, strict=True):
                part = inner.adjoints.get(value)
                ends.append(total if part is None else self.context.add(total, part))
            self.builder.yield_(ends)
        return region, inner, states

    def _closed_states(self, op: Loop, frame: Frame, needed: list[int]) -> list[int]:
        """The carried values that must be kept so that all needed ones can be recomputed."""
        while needed:
            region = self._advance_region(op, frame, needed, sweep=False)
            live = Liveness(region).used
            closed = [n for n, arg in enumerate(region.args[1:]) if arg in live or n in needed]
            if closed == needed:
                break
            needed = closed
        return needed

    def _advance_region(self, op: Loop, frame: Frame, needed: list[int], sweep: bool = True) -> Region:
        args = tuple(Value(arg.type, arg.name) for arg in op.body.args)
        region = Region(args)
        inner = frame.child()
        inner.primal.update(zip(op.body.args, args, strict=True))
        with self.builder.into(region):
            if needed:
                self.replay(op.body.ops, inner, expose=False)
            ends = [self.context.primal(inner, op.body.terminator.operands[n]) for n in needed]
            self.builder.yield_(ends)
        if sweep:
            region.args = (args[0], *(args[1 + n] for n in needed))
            eliminate_dead(region)
        return region

    def _defined_in(self, region: Region) -> frozenset[Value]:
        if region not in self._defined:
            values = set(region.args)
            for op in region.walk():
                values.update(op.results)
                for inner in op.regions:
                    values.update(inner.args)
            self._defined[region] = frozenset(values)
        return self._defined[region]


def _is_array(value: Value) -> bool:
    return isinstance(value.type, (ArrayType, IndexedArrayType))


def _writes_floats(region: Region) -> bool:
    """Tell whether a region, with the functions that it calls, may write floats to an array."""
    return any(
        (isinstance(op, Store) and is_differentiable(op.value.type))
        or (isinstance(op, Native) and any(_is_array(operand) for operand in op.operands))
        or (isinstance(op, Invoke) and _writes_floats(op.function.body))
        for op in region.walk()
    )


def _has_memory_adjoint(op: Op) -> bool:
    """Tell whether the reverse of a region does something even if none of its results has an adjoint."""
    return any(
        isinstance(inner, (Native, Invoke)) or (isinstance(inner, Store) and is_differentiable(inner.value.type))
        for region in op.regions
        for inner in region.walk()
    )
