"""Tests of the tests: each mutant of the adjoint has to give a wrong gradient that comparison with duals finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.unit.gradient_checks import adjoint_of_kernel, gradients_by_adjoint, gradients_by_duals, random_seeds
from tests.unit.ir_programs import build, call, kernel, region

from warp._src.builtins import expression
from warp._src.ir import interp, interp_control
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Atomic, Insert, RecordStart, ReverseLoop, Space, Store
from warp._src.passes import adjoint_control, adjoint_rules, pipeline
from warp._src.passes.access import AccessAnalysis
from warp._src.passes.adjoint_context import AdjointContext
from warp._src.passes.adjoint_control import Reverser
from warp._src.passes.records import _Threading
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float64, int32, int64
from warp._src.types.tensors import vector

VEC = vector(3, float64)
FLOATS = ArrayType(float64, 1)
THREADS = 4
Params = tuple[Value, ...]
Body = Callable[[Builder, Value, Params], Any]


@dataclass(frozen=True)
class Program:
    """A kernel over x (p0), y (p1) and z (p2), each of 5 floats, that four threads run."""

    function: Function
    expected: tuple[float, ...] | None = None  # the gradient of x, where duals are no guide

    def gradient_is(self) -> str:
        """Give "right", "wrong" or "refused"."""
        x = np.zeros(5) if self.expected else np.random.default_rng(3).uniform(0.3, 1.2, 5)
        memory = [x, np.full(5, 0.4), np.zeros(5)]
        seeds = random_seeds(self.function, memory)
        if adjoint_of_kernel(self.function, THREADS).problems:
            return "refused"
        found = gradients_by_adjoint(self.function, THREADS, memory, seeds, slots=3)
        if self.expected:
            return "right" if np.array_equal(found[0], self.expected) else "wrong"
        expected = gradients_by_duals(self.function, THREADS, memory, seeds)
        is_right = all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(found, expected, strict=True))
        return "right" if is_right else "wrong"


def program(body: Body, **facts: Any) -> Program:
    def threads(b: Builder, p: Params) -> None:
        body(b, b.thread_index(1)[0], p)

    return Program(kernel([FLOATS] * 3, threads), **facts)


def number(b: Builder, value: float) -> Value:
    return b.const(float64, value)


def integer(b: Builder, value: int) -> Value:
    return b.const(int32, value)


def orbit(b: Builder, t: Value, p: Params) -> None:
    """A loop whose derivative needs every state."""

    def step(b: Builder, a: Params) -> list[Value]:
        return [call(b, "mul", call(b, "sin", a[1]), call(b, "add", a[1], number(b, 1.0)))]

    b.store(p[1], b.loop(integer(b, 9), [b.load(p[0], [t])], None, region(b, [int32, float64], step))[0], [t])


def broken_off(b: Builder, t: Value, p: Params) -> None:
    """A counted loop that a flag ends."""

    def step(b: Builder, a: Params) -> list[Value]:
        grown = call(b, "mul", a[1], call(b, "add", number(b, 1.2), a[1]))
        return [grown, call(b, "gt", grown, number(b, 3.0))]

    test = region(b, [float64, bool_], lambda b, a: [call(b, "logical_not", a[1])])
    inits = [b.load(p[0], [t]), b.const(bool_, False)]
    b.store(p[1], b.loop(integer(b, 12), inits, test, region(b, [int32, float64, bool_], step))[0], [t])


def inserted(b: Builder, t: Value, p: Params) -> None:
    x = b.load(p[0], [t])
    v = b.construct(VEC, [x, call(b, "sin", x), x])
    v = b.insert(v, call(b, "mul", x, x), (None,), [call(b, "mod", t, integer(b, 3))])
    b.store(p[1], call(b, "dot", v, v), [t])


def stored_twice(b: Builder, t: Value, p: Params) -> None:
    x = b.load(p[0], [t])
    b.store(p[1], call(b, "mul", x, x), [t])
    b.store(p[1], call(b, "sin", x), [t])


def counted(b: Builder, t: Value, p: Params) -> None:
    """The old value of an atomic goes on."""
    old = b.atomic("add", p[1], call(b, "sin", b.load(p[0], [t])), [integer(b, 0)])
    b.store(p[2], call(b, "mul", number(b, 2.0), old), [t])


def handed_on(b: Builder, t: Value, p: Params) -> None:
    """y[t + 1] = 0.5 * y[t] + sin(x[t])."""
    half = call(b, "mul", number(b, 0.5), b.load(p[1], [t]))
    total = call(b, "add", half, call(b, "sin", b.load(p[0], [t])))
    b.store(p[1], total, [call(b, "add", t, integer(b, 1))])


def in_place(b: Builder, t: Value, p: Params) -> None:
    x = b.load(p[0], [t])
    b.store(p[0], call(b, "mul", x, x), [t])


def running_extremum(b: Builder, t: Value, p: Params) -> None:
    b.atomic("max", p[1], b.load(p[0], [t]), [integer(b, 0)])
    b.store(p[2], b.load(p[1], [integer(b, 0)]), [t])


def in_place_in_a_loop(b: Builder, t: Value, p: Params) -> None:
    """x[t] *= x[t] + 0.3, t times, after one more such change."""

    def step(b: Builder, a: Params) -> list[Value]:
        x = b.load(p[0], [t])
        b.store(p[0], call(b, "mul", x, call(b, "add", x, number(b, 0.3))), [t])
        return []

    in_place(b, t, p)
    b.loop(t, [], None, region(b, [int32], step))


def two_values_in_a_loop(b: Builder, t: Value, p: Params) -> None:
    """Every other iteration keeps a second value."""

    def step(b: Builder, a: Params) -> list[Value]:
        in_place(b, t, p)
        is_odd = call(b, "eq", call(b, "mod", a[0], integer(b, 2)), integer(b, 1))
        b.if_(is_odd, region(b, [], lambda b, _: in_place(b, t, p) or []), region(b, [], lambda b, _: []))
        return []

    b.loop(integer(b, 4), [], None, region(b, [int32], step))


def claimed(b: Builder, t: Value, p: Params) -> None:
    """An index from an exchange: z[at] = x[at]^2, where at depends on the thread before."""
    at = b.atomic("exch", p[1], b.cast(float64, t), [integer(b, 0)])
    place = call(b, "mod", call(b, "add", b.cast(int32, at), integer(b, 3)), integer(b, 5))
    x = b.load(p[0], [place])
    b.store(p[2], call(b, "mul", x, x), [place])


def storing_condition(b: Builder, t: Value, p: Params) -> None:
    def test(b: Builder, a: Params) -> list[Value]:
        b.atomic("add", p[1], call(b, "mul", a[0], a[0]), [t])
        return [call(b, "lt", a[0], number(b, 3.0))]

    step = region(b, [int64, float64], lambda b, a: [call(b, "add", a[1], a[1])])
    b.loop(None, [b.load(p[0], [t])], region(b, [float64], test), step)


def guarded_root(b: Builder, t: Value, p: Params) -> None:
    """x if x <= 0 else sqrt(x), with the root computed in any case."""
    x = b.load(p[0], [t])
    root = call(b, "sqrt", x)
    b.store(p[1], call(b, "where", call(b, "gt", x, number(b, 0.0)), root, x), [t])


def long_function() -> Function:
    def body(b: Builder, p: Params) -> list[Value]:
        def step(b: Builder, a: Params) -> list[Value]:
            value = a[1]
            for _ in range(30):
                value = call(b, "sin", call(b, "add", call(b, "mul", value, value), p[0]))
            return [value]

        test = region(b, [float64], lambda b, a: [call(b, "lt", a[0], number(b, 5.0))])
        end, count = b.loop(integer(b, 3), [p[0]], test, region(b, [int32, float64], step))
        return [call(b, "mul", end, b.cast(float64, count))]

    return build([float64], body, name="long")


def calls_in_a_loop(b: Builder, t: Value, p: Params) -> None:
    """Both the loop and the function that it calls keep checkpoints."""
    shared = long_function()

    def step(b: Builder, a: Params) -> list[Value]:
        (first,) = b.invoke(shared, [a[1]])
        return [call(b, "sin", call(b, "mul", first, *b.invoke(shared, [call(b, "mul", a[1], first)])))]

    test = region(b, [float64], lambda b, a: [call(b, "lt", a[0], number(b, 9.0))])
    end, count = b.loop(integer(b, 4), [b.load(p[0], [t])], test, region(b, [int32, float64], step))
    (after,) = b.invoke(shared, [end])
    b.store(p[1], call(b, "mul", after, b.cast(float64, count)), [t])


ROOT_SEEDS = random_seeds(kernel([FLOATS] * 3, lambda b, p: None), [np.zeros(5)] * 3)
PROGRAMS = {
    "orbit": program(orbit),
    "broken off": program(broken_off),
    "inserted": program(inserted),
    "stored twice": program(stored_twice),
    "counted": program(counted),
    "handed on": program(handed_on),
    "in place": program(in_place),
    "running extremum": program(running_extremum),
    "storing condition": program(storing_condition),
    "guarded root": program(
        guarded_root, expected=(*(ROOT_SEEDS[0] + ROOT_SEEDS[1])[:THREADS], float(ROOT_SEEDS[0][-1]))
    ),
    "calls in a loop": program(calls_in_a_loop),
    "in place in a loop": program(in_place_in_a_loop),
    "two values in a loop": program(two_values_in_a_loop),
    "claimed": program(claimed),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_mutant_every_gradient_is_right(name: str) -> None:
    assert PROGRAMS[name].gradient_is() == "right"


# -- mutants ---------------------------------------------------------------------------------------------

Mutant = Callable[[pytest.MonkeyPatch], None]


def restart_from_the_entry_state(patch: pytest.MonkeyPatch) -> None:
    def descend(interpreter: Any, op: Any, frame: Any, count: int, entry: Any, forward: Any) -> Any:
        return ((k, entry) for k in range(count - 1, -1, -1))

    patch.setattr(interp_control, "_descend", descend)


def keep_the_adjoint_of_a_replaced_component(patch: pytest.MonkeyPatch) -> None:
    def insert(context: AdjointContext, frame: Any, op: Insert) -> None:
        adjoint = frame.adjoints.get(op.result)
        original(context, frame, op)
        if adjoint is not None and op.operands[0] in context.activity:
            frame.adjoints[op.operands[0]] = adjoint

    original = adjoint_rules._RULES[Insert]
    patch.setitem(adjoint_rules._RULES, Insert, insert)


def keep_the_adjoint_of_an_assigned_variable(patch: pytest.MonkeyPatch) -> None:
    """The carried adjoints of a loop are added to instead of replaced."""

    def translate(interpreter: Any, op: ReverseLoop) -> Any:
        reverse = op.reverse
        changed = Region(reverse.args, list(reverse.ops[:-1]))
        builder = Builder(changed)
        incoming = reverse.args[1 + op.states :]
        pairs = zip(incoming, reverse.terminator.operands, strict=True)
        builder.yield_([call(builder, "add", old, new) for old, new in pairs])
        return original(interpreter, replace(op, regions=(op.advance, changed)))

    original = interp_control.CONTROL[ReverseLoop]
    patch.setitem(interp._TRANSLATORS, ReverseLoop, translate)


def ignore_breaks(patch: pytest.MonkeyPatch) -> None:
    def append(self: Reverser, op: Any, frame: Any, *rest: Any) -> None:
        if op.has_trip:
            uninterrupted = replace(op, has_condition=False, regions=(op.body,))
            frame.sites[uninterrupted] = frame.sites[op]
            op = uninterrupted
        original(self, op, frame, *rest)

    original = Reverser._append_reverse_loop
    patch.setattr(Reverser, "_append_reverse_loop", append)


def keep_the_gradient_of_what_is_overwritten(patch: pytest.MonkeyPatch) -> None:
    def store(context: AdjointContext, frame: Any, op: Store) -> None:
        original(context, frame, op)
        ops = context.builder.region.ops
        ops[:] = [o for o in ops if type(o) is not Store or o.space is not Space.GRADIENT]

    original = adjoint_rules._RULES[Store]
    patch.setitem(adjoint_rules._RULES, Store, store)


def drop_the_adjoint_of_what_an_atomic_returned(patch: pytest.MonkeyPatch) -> None:
    def atomic(context: AdjointContext, frame: Any, op: Atomic) -> None:
        frame.adjoints.pop(op.result, None)
        original(context, frame, op)

    original = adjoint_rules._RULES[Atomic]
    patch.setitem(adjoint_rules._RULES, Atomic, atomic)


def see_no_hazard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AccessAnalysis, "hazard", lambda self, load: "")


def trust_the_running_extremum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AccessAnalysis, "needs_order", lambda self, atomic: False)


def overlook_what_a_condition_writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(adjoint_control, "_writes_floats", lambda region: False)
    patch.setattr(pipeline, "rotate_loops", lambda region: False)


def number_the_loops_of_a_function_anew(patch: pytest.MonkeyPatch) -> None:
    def initialise(self: AdjointContext, function: Any, analysis: Any, outer: Any = None, **options: Any) -> None:
        original(self, function, analysis, None, **options)

    original = AdjointContext.__init__
    patch.setattr(AdjointContext, "__init__", initialise)


def multiply_plainly(patch: pytest.MonkeyPatch) -> None:
    """No strong zero."""
    plain = {"strong_mul": "mul", "strong_div": "div"}
    original = expression.apply
    patch.setattr(expression, "apply", lambda name, *args: original(plain.get(name, name), *args))
    patch.setattr(adjoint_rules, "guarded", lambda adjoints, contribution: contribution)


def reload_from_final_memory(patch: pytest.MonkeyPatch) -> None:
    """Values are recorded, but read from their arrays."""

    def recalled(self: AdjointContext, frame: Any, op: Any) -> Value:
        operands = [self.primal(frame, value) for value in (op.array, *op.indices)]
        return self.builder.load(operands[0], operands[1:], op.path)

    patch.setattr(AdjointContext, "recalled", recalled)


def recall_what_the_first_iteration_kept(patch: pytest.MonkeyPatch) -> None:
    """The position in the stream does not move on."""
    patch.setattr(_Threading, "_moved", staticmethod(lambda builder, base, offset: base))


def share_one_stream_start(patch: pytest.MonkeyPatch) -> None:
    """All threads recall from the start of the stream."""

    def translate(interpreter: Any, op: RecordStart) -> Any:
        at = interpreter.place(op.result)
        return lambda frame: frame.__setitem__(at, np.int64(0))

    patch.setitem(interp._TRANSLATORS, RecordStart, translate)


def run_chunks_out_of_order(patch: pytest.MonkeyPatch) -> None:
    """Threads go backwards within chunks of two, but the first chunk comes first."""

    def launch(self: interp.Interpreter, dim: Any, args: Any, order: str = "ascending") -> None:
        for thread in range(THREADS) if order == "ascending" else (1, 0, 3, 2):
            self.call(args, (thread,))

    patch.setattr(interp.Interpreter, "launch", launch)


def run_backward_in_ascending_order(patch: pytest.MonkeyPatch) -> None:
    def launch(self: interp.Interpreter, dim: Any, args: Any, order: str = "ascending") -> None:
        for thread in range(THREADS):
            self.call(args, (thread,))

    patch.setattr(interp.Interpreter, "launch", launch)


MUTANTS: tuple[Mutant, ...] = (
    restart_from_the_entry_state,
    keep_the_adjoint_of_a_replaced_component,
    keep_the_adjoint_of_an_assigned_variable,
    ignore_breaks,
    keep_the_gradient_of_what_is_overwritten,
    drop_the_adjoint_of_what_an_atomic_returned,
    see_no_hazard,
    trust_the_running_extremum,
    overlook_what_a_condition_writes,
    number_the_loops_of_a_function_anew,
    multiply_plainly,
    reload_from_final_memory,
    recall_what_the_first_iteration_kept,
    share_one_stream_start,
    run_chunks_out_of_order,
    run_backward_in_ascending_order,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert "wrong" in [chosen.gradient_is() for chosen in PROGRAMS.values()]
