"""Branches, loops and reverse sweeps of the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from warp._src.ir.checkpoints import Checkpoints
from warp._src.ir.core import Region
from warp._src.ir.frame import Frame, State, Step, Translator, move, put
from warp._src.ir.ops import If, Loop, Op, ReverseLoop
from warp.errors import AutogradError

if TYPE_CHECKING:
    from warp._src.ir.interp import Interpreter

_UNLIMITED = 1 << 62


def _if(interpreter: Interpreter, op: If) -> Step:
    condition, results = interpreter.place(op.condition), interpreter.places(op.results)
    runs = [interpreter.region(region) for region in op.regions]
    yields = [interpreter.places(region.terminator.operands) for region in op.regions]

    def step(frame: Frame) -> None:
        side = 0 if frame[condition] else 1
        runs[side](frame)
        move(frame, yields[side], results)

    return step


def _loop(interpreter: Interpreter, op: Loop) -> Step:
    trip = None if op.trip is None else interpreter.place(op.trip)
    inits, results = interpreter.places(op.inits), interpreter.places(op.results)
    body, (index, *args) = interpreter.region(op.body), interpreter.places(op.body.args)
    yields = interpreter.places(op.body.terminator.operands)
    test = _test(interpreter, op.condition)
    index_type = op.count.type.dtype.type

    def step(frame: Frame) -> None:
        state: State = tuple(frame[place] for place in inits)
        last = None if trip is None else int(frame[trip])
        keep = _keeper(interpreter, op)
        k = 0
        while (last is None or k < last) and test(frame, state):
            keep(k, state)
            frame[index] = index_type(k)
            put(frame, args, state)
            body(frame)
            state = tuple(frame[place] for place in yields)
            k += 1
        put(frame, results, (*state, index_type(k)))

    return step


def _test(interpreter: Interpreter, region: Region | None) -> Callable[[Frame, State], bool]:
    if region is None:
        return lambda frame, state: True
    run, args = interpreter.region(region), interpreter.places(region.args)
    result = interpreter.place(region.terminator.operands[0])

    def test(frame: Frame, state: State) -> bool:
        put(frame, args, state)
        run(frame)
        return bool(frame[result])

    return test


def _keeper(interpreter: Interpreter, op: Loop) -> Callable[[int, State], None]:
    """Make the function that keeps a state of this run of the loop, if its checkpoints are wanted."""
    if op.site is None:
        return lambda k, state: None
    schedule, states = interpreter.saved[op.site] = (
        _schedule(
            interpreter,
        ),
        {},
    )

    def keep(k: int, state: State) -> None:
        slot = schedule.record(k)
        if slot is not None:
            states[slot] = tuple(state[index] for index in op.saved)

    return keep


def _schedule(interpreter: Interpreter, trip: int = _UNLIMITED) -> Checkpoints:
    return Checkpoints(interpreter.slots if interpreter.slots is not None else max(trip, 1))


def _reverse_loop(interpreter: Interpreter, op: ReverseLoop) -> Step:
    trip, entry, inits = interpreter.place(op.trip), interpreter.places(op.entry_state), interpreter.places(op.inits)
    results = interpreter.places(op.results)
    advance, (advance_index, *advance_args) = interpreter.region(op.advance), interpreter.places(op.advance.args)
    next_state = interpreter.places(op.advance.terminator.operands)
    reverse, (index, *args) = interpreter.region(op.reverse), interpreter.places(op.reverse.args)
    yields = interpreter.places(op.reverse.terminator.operands)
    index_type = op.trip.type.dtype.type

    def forward(frame: Frame, k: int, state: State) -> State:
        frame[advance_index] = index_type(k)
        put(frame, advance_args, state)
        advance(frame)
        return tuple(frame[place] for place in next_state)

    def step(frame: Frame) -> None:
        adjoints: State = tuple(frame[place] for place in inits)
        count = int(frame[trip])
        for k, state in _descend(interpreter, op, frame, count, tuple(frame[place] for place in entry), forward):
            frame[index] = index_type(k)
            put(frame, args, (*state, *adjoints))
            reverse(frame)
            adjoints = tuple(frame[place] for place in yields)
        put(frame, results, adjoints)

    return step


def _descend(
    interpreter: Interpreter,
    op: ReverseLoop,
    frame: Frame,
    count: int,
    entry: State,
    forward: Callable[[Frame, int, State], State],
) -> Iterator[tuple[int, State]]:
    """Yield k = count-1, ..., 0 and the state before iteration k."""
    if not op.states:
        yield from ((k, ()) for k in range(count - 1, -1, -1))
        return
    if op.is_saved:
        if op.site not in interpreter.saved:
            raise AutogradError(f"{op.loc}: no states were kept for loop site {op.site}")
        schedule, states = interpreter.saved[op.site]
    else:
        schedule, states = _schedule(interpreter, count), {}
        slot = schedule.record(0)
        states[slot or 0] = entry
    for k in range(count - 1, -1, -1):
        position, slot = schedule.restore(k)
        state = states[slot]
        while position < k:
            target, slot = schedule.next_advance(position, k)
            for j in range(position, target):
                state = forward(frame, j, state)
            position = target
            if slot is not None:
                states[slot] = state
        yield k, state


CONTROL: dict[type[Op], Translator] = {If: _if, Loop: _loop, ReverseLoop: _reverse_loop}

__all__ = ["CONTROL"]
