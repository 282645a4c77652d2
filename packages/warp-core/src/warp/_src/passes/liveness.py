"""Dead code elimination by marking: what is live is what a yield of the outermost region or an effect needs."""

from __future__ import annotations

from warp._src.ir.core import Region, Value
from warp._src.ir.ops import If, Invoke, Loop, Op, ReverseLoop, Yield, has_effects


def eliminate_dead(region: Region) -> None:
    """Remove what nothing needs from `region`, in place: operations, joined and carried values."""
    _sweep(region, Liveness(region))


class Liveness:
    """Marks the live values of a region; the yields of the region itself are roots.

    `used` holds the live values, those defined outside the region and its arguments included.
    """

    def __init__(self, region: Region) -> None:
        self.used: set[Value] = set()
        self.kept: set[Op] = set()
        self._definition: dict[Value, tuple[Op, int]] = {}
        self._argument: dict[Value, tuple[Op, Region, int]] = {}
        self._parent: dict[Op, Op] = {}
        self._pending: list[Value] = []
        effects: list[Op] = []
        self._index(region, None, effects)
        for op in effects:
            self._keep(op)
            self._pending.extend(op.operands)
        self._pending.extend(region.terminator.operands)
        while self._pending:
            self._mark(self._pending.pop())

    def is_live(self, value: Value) -> bool:
        return value in self.used

    def _index(self, region: Region, parent: Op | None, effects: list[Op]) -> None:
        for op in region.ops:
            if parent is not None:
                self._parent[op] = parent
            for number, result in enumerate(op.results):
                self._definition[result] = (op, number)
            if _is_effect(op):
                effects.append(op)
            for inner in op.regions:
                for number, arg in enumerate(inner.args):
                    self._argument[arg] = (op, inner, number)
                self._index(inner, op, effects)

    def _keep(self, op: Op) -> None:
        """Keep an operation: whatever decides whether it runs is live too."""
        if op in self.kept:
            return
        self.kept.add(op)
        if isinstance(op, If):
            self._pending.append(op.condition)
        elif isinstance(op, Loop):
            if op.trip is not None:
                self._pending.append(op.trip)
            if op.condition is not None:
                self._pending.extend(op.condition.terminator.operands)
        elif isinstance(op, ReverseLoop):
            self._pending.append(op.trip)
        if op in self._parent:
            self._keep(self._parent[op])

    def _mark(self, value: Value) -> None:
        if value in self.used:
            return
        self.used.add(value)
        if value in self._argument:
            op, region, number = self._argument[value]
            self._keep(op)
            self._mark_argument(op, region, number)
        elif value in self._definition:
            op, number = self._definition[value]
            self._keep(op)
            self._mark_result(op, number)

    def _mark_result(self, op: Op, number: int) -> None:
        if isinstance(op, If):
            self._pending.extend(region.terminator.operands[number] for region in op.regions)
        elif isinstance(op, Loop):
            if number < len(op.inits):
                self._mark_carried(op, number)
        elif isinstance(op, ReverseLoop):
            self._mark_adjoint(op, number)
        else:
            self._pending.extend(op.operands)

    def _mark_argument(self, op: Op, region: Region, number: int) -> None:
        if isinstance(op, Loop):
            carried = number if region is op.condition else number - 1
            if carried >= 0:
                self._mark_carried(op, carried)
        elif isinstance(op, ReverseLoop) and number > 0:
            if number <= op.states:
                self._mark_state(op, number - 1)
            else:
                self._mark_adjoint(op, number - 1 - op.states)

    def _mark_carried(self, op: Loop, number: int) -> None:
        body = op.body
        self._pending += [op.inits[number], body.terminator.operands[number], body.args[1 + number]]
        if op.condition is not None:
            self._pending.append(op.condition.args[number])
        self._pending.append(op.results[number])

    def _mark_state(self, op: ReverseLoop, number: int) -> None:
        self._pending += [
            op.entry_state[number],
            op.advance.terminator.operands[number],
            op.advance.args[1 + number],
            op.reverse.args[1 + number],
        ]

    def _mark_adjoint(self, op: ReverseLoop, number: int) -> None:
        argument = op.reverse.args[1 + op.states + number]
        self._pending += [op.inits[number], op.reverse.terminator.operands[number], argument, op.results[number]]


def _is_effect(op: Op) -> bool:
    """Tell whether an operation acts by itself; a custom gradient may act on gradients even if its call does not."""
    if isinstance(op, Invoke) and op.function.custom_gradient is not None:
        return True
    return not op.regions and has_effects(op)


def _sweep(region: Region, live: Liveness) -> None:
    kept: list[Op] = []
    for op in region.ops:
        if isinstance(op, Yield):
            kept.append(op)
        elif op in live.kept:
            for inner in op.regions:
                _sweep(inner, live)
            kept.append(_pruned(op, live))
    region.ops[:] = kept


def _pruned(op: Op, live: Liveness) -> Op:
    """Drop the dead results of an operation with regions, and what its regions yield for them."""
    if isinstance(op, If):
        alive = [n for n, result in enumerate(op.results) if result in live.used]
        for region in op.regions:
            _restrict_yield(region, alive)
        return op.rebuilt(_pick(op.results, alive), op.operands, op.regions)
    if isinstance(op, Loop):
        return _pruned_loop(op, live)
    if isinstance(op, ReverseLoop):
        return _pruned_reverse(op, live)
    return op


def _pruned_loop(op: Loop, live: Liveness) -> Op:
    alive = [n for n in range(len(op.inits)) if op.results[n] in live.used]
    body, condition = op.body, op.condition
    _restrict_yield(body, alive)
    body.args = (body.args[0], *_pick(body.args[1:], alive))
    if condition is not None:
        condition.args = _pick(condition.args, alive)
    control = () if op.trip is None else (op.trip,)
    return op.rebuilt((*_pick(op.results, alive), op.count), (*control, *_pick(op.inits, alive)), op.regions)


def _pruned_reverse(op: ReverseLoop, live: Liveness) -> Op:
    states = [n for n in range(op.states) if op.advance.args[1 + n] in live.used]
    adjoints = [n for n, result in enumerate(op.results) if result in live.used]
    advance, reverse = op.advance, op.reverse
    _restrict_yield(advance, states)
    _restrict_yield(reverse, adjoints)
    state_args = _pick(reverse.args[1 : 1 + op.states], states)
    reverse.args = (reverse.args[0], *state_args, *_pick(reverse.args[1 + op.states :], adjoints))
    advance.args = (advance.args[0], *_pick(advance.args[1:], states))
    operands = (op.trip, *_pick(op.entry_state, states), *_pick(op.inits, adjoints))
    return ReverseLoop(
        loc=op.loc,
        results=_pick(op.results, adjoints),
        operands=operands,
        regions=op.regions,
        states=len(states),
        site=op.site if states else None,
        is_saved=op.is_saved,
    )


def _restrict_yield(region: Region, alive: list[int]) -> None:
    end = region.terminator
    region.ops[-1] = end.rebuilt((), _pick(end.operands, alive), ())


def _pick(values: tuple[Value, ...], alive: list[int]) -> tuple[Value, ...]:
    return tuple(values[n] for n in alive)


__all__ = ["Liveness", "eliminate_dead"]
