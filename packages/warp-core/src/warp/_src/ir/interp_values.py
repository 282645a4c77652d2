"""Operations of the interpreter that compute values and call functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warp._src.ir.frame import Frame, Step, Translator, checked, move, path_steps
from warp._src.ir.memory import extract, insert, record_size
from warp._src.ir.ops import (
    Call,
    Cast,
    Const,
    Construct,
    Extract,
    Insert,
    Invoke,
    Native,
    Op,
    Recall,
    Record,
    RecordStart,
    ThreadIndex,
)
from warp._src.ir.typed import caster, construct, pack, unpack, wrapper, zero
from warp._src.types.scalars import int32, int64
from warp.errors import LaunchError

if TYPE_CHECKING:
    from warp._src.ir.interp import Interpreter


def _const(interpreter: Interpreter, op: Const) -> Step:
    at = interpreter.place(op.result)
    value = wrapper(op.result.type, interpreter.lift)(op.value)

    def step(frame: Frame) -> None:
        frame[at] = value

    return step


def _cast(interpreter: Interpreter, op: Cast) -> Step:
    (source,), at = interpreter.places(op.operands), interpreter.place(op.result)
    cast = caster(op.operands[0].type, op.result.type, interpreter.lift)

    def step(frame: Frame) -> None:
        frame[at] = cast(frame[source])

    return step


def _construct(interpreter: Interpreter, op: Construct) -> Step:
    parts, at, type = interpreter.places(op.operands), interpreter.place(op.result), op.result.type
    if not parts:
        value = zero(type, interpreter.lift)

        def step(frame: Frame) -> None:
            frame[at] = value

    else:

        def step(frame: Frame) -> None:
            frame[at] = construct(type, [frame[part] for part in parts], interpreter.lift)

    return step


def _extract(interpreter: Interpreter, op: Extract) -> Step:
    aggregate, *indices = interpreter.places(op.operands)
    at, path = interpreter.place(op.result), op.path

    def step(frame: Frame) -> None:
        frame[at] = checked(op, extract, frame[aggregate], path_steps(path, indices, frame))

    return step


def _insert(interpreter: Interpreter, op: Insert) -> Step:
    aggregate, part, *indices = interpreter.places(op.operands)
    at, path = interpreter.place(op.result), op.path

    def step(frame: Frame) -> None:
        frame[at] = checked(op, insert, frame[aggregate], frame[part], path_steps(path, indices, frame))

    return step


def _thread_index(interpreter: Interpreter, op: ThreadIndex) -> Step:
    places = interpreter.places(op.results)

    def step(frame: Frame) -> None:
        for place, coordinate in itertools.zip_longest(places, interpreter.thread[: len(places)], fillvalue=0):
            frame[place] = int32.dtype.type(coordinate)

    return step


def _record(interpreter: Interpreter, op: Record) -> Step:
    value, size = interpreter.place(op.operands[0]), record_size(op.operands[0].type)

    def step(frame: Frame) -> None:
        records = interpreter.records
        if op.offset is not None:
            records.fixed[interpreter.thread, op.offset] = frame[value]
        else:
            records.stream[records.end] = frame[value]
            records.end += size

    return step


def _recall(interpreter: Interpreter, op: Recall) -> Step:
    at, operands = interpreter.place(op.result), interpreter.places(op.operands)

    def step(frame: Frame) -> None:
        records = interpreter.records
        if op.offset is not None:
            frame[at] = records.fixed[interpreter.thread, op.offset]
        else:
            frame[at] = records.stream[int(frame[operands[0]])]

    return step


def _record_start(interpreter: Interpreter, op: RecordStart) -> Step:
    at = interpreter.place(op.result)

    def step(frame: Frame) -> None:
        records = interpreter.records
        frame[at] = int64.dtype.type(records.starts[interpreter.thread])

    return step


def bit_caster(op: Call) -> Callable[..., Any]:
    """Make the reinterpretation of bits, which needs to know how values are stored."""
    source, target = op.operands[0].type, op.result.type
    return lambda value, like: unpack(target, pack(source, value))


def _call(interpreter: Interpreter, op: Call) -> Step:
    operands, results = interpreter.places(op.operands), interpreter.places(op.results)
    name, attributes = op.builtin.name, op.attributes
    reference: Callable[..., Any] = bit_caster(op) if name == "bit_cast" else op.builtin.builtin.reference
    wraps = tuple(wrapper(result.type, interpreter.lift) for result in op.results)
    if op.builtin.has_effects and not results:

        def step(frame: Frame) -> None:
            interpreter.trace.append((name, attributes, tuple(frame[place] for place in operands)))

    elif len(results) == 1:
        (at,), (wrap,) = results, wraps

        def step(frame: Frame) -> None:
            frame[at] = wrap(reference(*[frame[place] for place in operands]))

    else:

        def step(frame: Frame) -> None:
            values = reference(*[frame[place] for place in operands])
            for at, wrap, value in zip(results, wraps, values, strict=True):
                frame[at] = wrap(value)

    return step


def _invoke(interpreter: Interpreter, op: Invoke) -> Step:
    callee = op.function
    if id(callee) not in interpreter.callees:
        interpreter.callees[id(callee)] = interpreter.region(callee.body)
    run, params = interpreter.callees[id(callee)], interpreter.places(callee.body.args)
    yields = interpreter.places(callee.body.terminator.operands)
    operands, results = interpreter.places(op.operands), interpreter.places(op.results)

    def step(frame: Frame) -> None:
        move(frame, operands, params)
        run(frame)
        move(frame, yields, results)

    return step


def _native(interpreter: Interpreter, op: Native) -> Step:
    operands, results = interpreter.places(op.operands), interpreter.places(op.results)
    wraps = [wrapper(result.type, interpreter.lift) for result in op.results]

    def step(frame: Frame) -> None:
        function = interpreter.natives.get(op.name)
        if function is None:
            raise LaunchError(f"{op.loc}: native function '{op.name}' is opaque to the interpreter")
        value = function(*[frame[place] for place in operands])
        for at, wrap in zip(results, wraps, strict=True):
            frame[at] = wrap(value)

    return step


VALUES: dict[type[Op], Translator] = {
    Const: _const,
    Cast: _cast,
    Construct: _construct,
    Extract: _extract,
    Insert: _insert,
    ThreadIndex: _thread_index,
    Record: _record,
    Recall: _recall,
    RecordStart: _record_start,
    Call: _call,
    Invoke: _invoke,
    Native: _native,
}

__all__ = ["VALUES"]
