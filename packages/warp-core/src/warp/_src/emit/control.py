"""Statements with regions: if, loops, and loops run backwards over checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

from warp._src.emit.cstyle import Body, emitter
from warp._src.ir.core import Value
from warp._src.ir.ops import If, Loop, ReverseLoop
from warp._src.types.signature import align_of, size_of
from warp.errors import CompileError

# What a worker's arena holds at least (runtime.cpp), and what the bookkeeping of one site takes.
ARENA_SIZE = 1 << 20
HEADER_SIZE = 64
# A GPU thread keeps about 1 KiB of checkpoints for each site, within bounds on their number: local memory is set aside
# for every thread that the device can hold.
_THREAD_SIZE = 1024
_FEWEST_SLOTS = 8
_MOST_SLOTS = 64
_MOST_THREAD_SIZE = 1 << 16
_ALIGNMENT = 16


@emitter(If)
def _if(body: Body, op: If) -> None:
    names = [body.declare(result) for result in op.results]
    then, orelse = op.regions
    with body.block(f"if ({body.name(op.condition)})"):
        assign(body, names, body.region(then))
    if len(orelse.ops) > 1 or op.results:
        with body.block("else"):
            assign(body, names, body.region(orelse))


def assign(body: Body, names: Sequence[str], values: Sequence[Value]) -> None:
    """Assign all values at once: a variable that is read after it was assigned is kept in a temporary."""
    texts = body.named(values)
    for index, (name, text) in enumerate(zip(names, texts, strict=True)):
        if text != name and text in names[:index]:
            texts[index] = body.fresh()
            body.line(f"const {body.unit.type(values[index].type)} {texts[index]} = {text};")
    for name, text in zip(names, texts, strict=True):
        if text != name:
            body.line(f"{name} = {text};")


@emitter(Loop)
def _loop(body: Body, op: Loop) -> None:
    carried = [body.declare(result, body.name(init)) for result, init in zip(op.results, op.inits, strict=False)]
    count = body.declare(op.count, "0")
    saves = op.site is not None and bool(op.saved)
    if saves:
        types = [op.inits[index].type for index in op.saved]
        slots, state = _checkpoints(body, op, types)
    limit = "" if op.trip is None else f"{count} < {body.name(op.trip)}"
    with body.block(f"for (; {limit}; ++{count})"):
        if op.condition is not None:
            _bind(body, op.condition.args, carried)
            (condition,) = body.region(op.condition)
            body.line(f"if (!{body.name(condition)}) break;")
        if saves:
            values = ", ".join(carried[index] for index in op.saved)
            body.line(f"if ({slots}.is_due({count})) {slots}.save({count}, {state}{{{values}}});")
        _bind(body, op.body.args, [count, *carried])
        assign(body, carried, body.region(op.body))
    if saves:
        body.line(f"{slots}.finish();")


def _bind(body: Body, args: Sequence[Value], names: Sequence[str]) -> None:
    for arg, name in zip(args, names, strict=True):
        body.bind(arg, name)


@emitter(ReverseLoop)
def _reverse_loop(body: Body, op: ReverseLoop) -> None:
    trip = body.name(op.trip)
    adjoints = [body.declare(result, body.name(init)) for result, init in zip(op.results, op.inits, strict=True)]
    types = [value.type for value in op.advance.args[1:]]
    step = body.fresh("k")
    if types:
        slots, state = _checkpoints(body, op, types)
        if op.is_saved:
            body.line(f"{slots}.resume();")
        else:
            entry = ", ".join(body.named(op.entry_state))
            body.line(f"if ({trip} > 0) {slots}.push(0, {state}{{{entry}}});")
    with body.block(f"for (wp::int64 {step} = (wp::int64){trip} - 1; {step} >= 0; --{step})"):
        variables = _restore(body, op, slots, state, step) if types else []
        index = body.fresh("step")
        body.line(f"const {body.unit.type(op.trip.type)} {index} = ({body.unit.type(op.trip.type)}){step};")
        _bind(body, op.reverse.args, [index, *variables, *adjoints])
        assign(body, adjoints, body.region(op.reverse))


def _restore(body: Body, op: ReverseLoop, slots: str, state: str, step: str) -> list[str]:
    """Bring the state before iteration `step` into variables: from its checkpoint, or by advancing to it."""
    at = body.fresh("at")
    body.line(f"wp::int64 {at} = {slots}.top().at;")
    args = op.advance.args[1:]
    variables = [body.variable(arg.type, arg.name, f"{slots}.top().state.s{index}") for index, arg in enumerate(args)]
    with body.block(f"if ({at} == {step})"):
        body.line(f"--{slots}.count;")
    with body.block("else"):
        body.line(f"{slots}.plan({at}, {step});")
        with body.block(f"for (; {at} < {step}; ++{at})"):
            with body.block(f"if ({slots}.is_due({at}))"):
                body.line(f"{slots}.push({at}, {state}{{{', '.join(variables)}}});")
                body.line(f"{slots}.plan({at}, {step});")
            index = body.fresh("step")
            kind = body.unit.type(op.advance.args[0].type)
            body.line(f"const {kind} {index} = ({kind}){at};")
            _bind(body, op.advance.args, [index, *variables])
            assign(body, variables, body.region(op.advance))
    return variables


def _checkpoints(body: Body, op: Loop | ReverseLoop, types: Sequence[object]) -> tuple[str, str]:
    """Declare the state's struct and the object that keeps checkpoints; gives the names of both."""
    site = body.unit.site(body.function, op)
    if body.unit.options.target == "cuda":
        place = _storage(body, op, site, types)
    else:
        _check_size(op, types, body.unit.site_count)
        place = f"worker, {site}, {body.unit.site_count}"
    state = body.fresh("state")
    fields = " ".join(f"{body.unit.type(type)} s{index};" for index, type in enumerate(types))
    body.line(f"struct {state} {{ {fields} }};")
    slots = body.fresh("checkpoints")
    body.line(f"wp::checkpoints<{state}> {slots}(launch, {place});")
    return slots, state


def _storage(body: Body, op: Loop | ReverseLoop, site: int, types: Sequence[object]) -> str:
    """Declare the checkpoints of a site in the thread's own memory, once for the loop and its reverse."""
    slot = _slot_size(types)
    if 2 * slot > _MOST_THREAD_SIZE:
        raise _too_large(op, types, _MOST_THREAD_SIZE)
    wanted = min(max(_THREAD_SIZE // slot, _FEWEST_SLOTS), _MOST_SLOTS)
    capacity = min(wanted, _MOST_THREAD_SIZE // slot)
    name = f"site{site}"
    body.storage[name] = f"alignas({_ALIGNMENT}) unsigned char {name}[{HEADER_SIZE + capacity * slot}];"
    return f"{name}, sizeof({name})"


def _check_size(op: Loop | ReverseLoop, types: Sequence[object], sites: int) -> None:
    if 2 * _slot_size(types) + HEADER_SIZE > ARENA_SIZE // sites // 64 * 64:
        raise _too_large(op, types, ARENA_SIZE // sites)


def _too_large(op: Loop | ReverseLoop, types: Sequence[object], limit: int) -> CompileError:
    return CompileError(
        f"{op.loc}: this loop carries {_state_size(types)} bytes that its gradient needs from one iteration to the "
        f"next; two such states must fit into {limit} bytes. Keep large data in arrays"
    )


def _slot_size(types: Sequence[object]) -> int:
    """Give the size of a state with its iteration number, in bytes."""
    return 8 + -(-_state_size(types) // 8) * 8


def _state_size(types: Sequence[object]) -> int:
    size = 0
    for type in types:
        alignment = align_of(type)
        size = -(-size // alignment) * alignment + size_of(type)
    return size
