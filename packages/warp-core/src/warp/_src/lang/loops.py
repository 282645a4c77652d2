"""Loops: unrolled, counted, and conditional."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from warp._src.builtins.declare import REGISTRY, Literal
from warp._src.ir.core import Region, Type, Value
from warp._src.lang import analysis, operators
from warp._src.lang.assign import assign_to, unpacked
from warp._src.lang.context import Context, Iteration
from warp._src.lang.expr import condition
from warp._src.lang.operands import Adoption, Known, Operand, Poison, Unsettled, is_same, is_truth, spelled
from warp._src.lang.scope import ADJOINT, BREAK, CONTINUE, FLAGS, NO, RESULT, RETURN, YES, Branch, Scope, inside
from warp._src.types.scalars import bool_, int32, int64, is_int, is_scalar
from warp._src.types.signature import is_array, type_name
from warp.errors import KernelTypeError

# Builtins that give a variable a new value, a scalar one too.
_UPDATING = frozenset(name for name, records in REGISTRY.items() if any(record.updates for record in records))


@dataclass
class _Plan:
    """A loop that is being built: how an iteration starts, and its carried variables."""

    node: ast.For | ast.While
    start: Callable[[Value], None] | None  # binds the loop variable, given the iteration number
    index_type: Type
    candidates: list[str] = field(default_factory=list)
    # All variables as they are before the loop.
    before: dict[str, Operand | Poison] = field(default_factory=dict)
    # Carried variables that are bound before the loop, with their types.
    entering: dict[str, Type] = field(default_factory=dict)
    args: dict[str, Value] = field(default_factory=dict)
    # What each carried variable is at the end of an iteration; those not entering start at zero.
    nexts: dict[str, Value] = field(default_factory=dict)


# -- for -----------------------------------------------------------------------------------------------


def for_loop(context: Context, node: ast.For) -> None:
    """Translate `for ... in ...`."""
    if node.orelse:
        raise context.unsupported("'else' of a loop cannot be used in kernels", node.orelse[0])
    bounds = _range_arguments(context, node)
    if bounds is None:
        items = unpacked(context, context.evaluate(node.iter), node.iter)
        _unrolled(context, node, items)
        return
    if all(isinstance(bound, Literal) for bound in bounds):
        span = range(*(int(bound.value) for bound in bounds if isinstance(bound, Literal)))
        if not span:
            return
        can_unroll = not (analysis.has_jump(node.body, ast.Break) or analysis.has_jump(node.body, ast.Continue))
        if can_unroll and len(span) <= int(context.options.get("max_unroll", 0)):
            _unrolled(context, node, [Literal(index) for index in span])
            return
    _counted(context, node, bounds)


def _range_arguments(context: Context, node: ast.For) -> tuple[Operand, Operand, Operand] | None:
    """Give start, stop and step if the loop is over a range."""
    iterable = node.iter
    if not isinstance(iterable, ast.Call) or not isinstance(iterable.func, (ast.Name, ast.Attribute)):
        return None
    target = context.evaluate(iterable.func)
    if isinstance(target, Known) and target.object is reversed:
        return _reversed_range(context, iterable)
    if not (isinstance(target, Known) and (target.object is range or _is_range(target.object))):
        return None
    if iterable.keywords or not 1 <= len(iterable.args) <= 3:
        raise context.error(KernelTypeError, "range() takes 1 to 3 arguments", iterable)
    bounds: list[Operand] = [_bound(context, argument) for argument in iterable.args]
    if len(bounds) == 1:
        bounds.insert(0, Literal(0))
    if len(bounds) == 2:
        bounds.append(Literal(1))
    start, stop, step = bounds
    if isinstance(step, Literal) and step.value == 0:
        raise context.error(KernelTypeError, "the step of a range cannot be zero", iterable)
    return start, stop, step


def _reversed_range(context: Context, node: ast.Call) -> tuple[Operand, Operand, Operand]:
    """Turn a range around: start, stop and step of the same numbers from the last to the first."""
    inner = ast.For(target=node, iter=node.args[0] if len(node.args) == 1 else node, body=[], orelse=[])
    bounds = _range_arguments(context, inner) if inner.iter is not node else None
    if bounds is None:
        raise context.unsupported("reversed() can only be used as reversed(range(...))", node)
    if all(isinstance(bound, Literal) for bound in bounds):
        span = range(*(int(bound.value) for bound in bounds if isinstance(bound, Literal)))[::-1]
        return Literal(span.start), Literal(span.stop), Literal(span.step)
    start, stop, step = bounds
    if not (isinstance(step, Literal) and step.value in (1, -1)):
        raise context.unsupported(
            "reversed() of a range that is not known while compiling needs the step 1",
            node,
            "count down: range(n, 0, -1)",
        )

    def before(operand: Operand) -> Operand:
        if isinstance(operand, Literal):
            return Literal(operand.value - step.value)
        return context.call("sub", [operand, step], node)

    return before(stop), before(start), Literal(-step.value)


def _is_range(thing: Any) -> bool:
    return getattr(thing, "__warp_builtin__", None) == "range" or getattr(thing, "__warp_intrinsic__", None) == "range"


def _bound(context: Context, node: ast.expr) -> Operand:
    operand = context.evaluate(node)
    if isinstance(operand, Unsettled):
        return context.value(operand, node)
    if isinstance(operand, Literal) and operand.kind == "i":
        return operand
    if isinstance(operand, Value) and is_int(operand.type):
        return operand
    raise context.error(
        KernelTypeError,
        f"the bounds of a range must be integers, got {spelled(operand)}",
        node,
        f"convert it: int({ast.unparse(node)})",
    )


def _unrolled(context: Context, node: ast.For, items: Sequence[Operand]) -> None:
    context.loop_depth += 1
    outer_live = context.live_at_exit
    context.live_at_exit = context.exit_names | context.liveness.head[node]
    context.hooks.run(context, [Iteration(node, item) for item in items], False)
    context.live_at_exit = outer_live
    context.loop_depth -= 1
    context.scope.names[BREAK] = NO


def iterate(context: Context, step: Iteration) -> None:
    """Translate one pass through an unrolled loop."""
    if isinstance(step.node.target, ast.Name):
        _bind_index(context, step.node.target, step.item, step.node.iter)
    else:
        assign_to(context, step.node.target, step.item, step.node.iter)
    context.hooks.run(context, step.node.body, False)
    context.scope.names[CONTINUE] = NO


def _bind_index(context: Context, target: ast.Name, item: Operand, source: ast.expr) -> None:
    """Bind the variable of an unrolled loop; integers stay known while compiling."""
    previous = context.scope.names.get(target.id)
    if isinstance(item, Literal) and isinstance(previous, Value) and is_int(previous.type) and item.kind == "i":
        context.scope.names[target.id] = item
    else:
        assign_to(context, target, item, source)


def _counted(context: Context, node: ast.For, bounds: tuple[Operand, Operand, Operand]) -> None:
    index_type = _range_type(bounds)
    with context.at(node.iter):
        values = tuple(
            bound
            if isinstance(bound, Literal) and -(2**31) <= bound.value < 2**31
            else context.builder.cast(index_type, bound)
            if isinstance(bound, Value)
            else context.converted(bound, index_type, node.iter, "a bound of a range")
            for bound in bounds
        )
        start, stop, step = values
        trip = _trip_count(context, start, stop, step, index_type, node.iter)

    def bind(number: Value) -> None:
        with context.at(node.target):
            index = number
            if not (isinstance(step, Literal) and step.value == 1):
                index = context.value(context.call("mul", [number, step], node.iter), node)
            if not (isinstance(start, Literal) and start.value == 0):
                index = context.value(context.call("add", [start, index], node.iter), node)
            assign_to(context, node.target, index, node.iter)

    _loop(context, _Plan(node, bind, index_type), trip)


def _range_type(bounds: Sequence[Operand]) -> Any:
    """Give int64 if a bound needs it, else int32."""
    for bound in bounds:
        if isinstance(bound, Literal):
            is_wide = not -(2**31) <= bound.value < 2**31
        else:
            type: Any = bound.type if isinstance(bound, Value) else int32
            is_wide = type.size == 8 or (type.kind == "u" and type.size == 4)
        if is_wide:
            return int64
    return int32


def _trip_count(context: Context, start: Operand, stop: Operand, step: Operand, type: Any, node: ast.expr) -> Value:
    """Give the number of iterations, at least 0."""

    def op(name: str, left: Operand, right: Operand) -> Operand:
        if isinstance(left, Literal) and isinstance(right, Literal) and name != "max":
            return operators.binary(context, name, left, right, node)
        return context.call(name, [left, right], node)

    def rounded_up(low: Operand, high: Operand, size: Operand) -> Operand:
        distance = high if isinstance(low, Literal) and low.value == 0 else op("sub", high, low)
        if isinstance(size, Literal) and size.value == 1:
            return distance
        return op("div", op("add", distance, op("sub", size, Literal(1))), size)

    if isinstance(step, Literal):
        is_up = step.value > 0
        count = rounded_up(start, stop, step) if is_up else rounded_up(stop, start, Literal(-step.value))
    else:
        up = rounded_up(start, stop, step)
        down = rounded_up(stop, start, context.call("neg", [step], node))
        count = context.call("where", [context.call("gt", [step, Literal(0)], node), up, down], node)
    if isinstance(count, Literal):
        return context.converted(count, type, node, "the length of a range")
    return context.value(context.call("max", [count, Literal(0)], node), node)


# -- while ---------------------------------------------------------------------------------------------


def while_loop(context: Context, node: ast.While) -> None:
    """Translate `while ...`."""
    if node.orelse:
        raise context.unsupported("'else' of a loop cannot be used in kernels", node.orelse[0])
    _loop(context, _Plan(node, None, int64), None)


# -- the loop operation --------------------------------------------------------------------------------


def _loop(context: Context, plan: _Plan, trip: Value | None) -> None:
    node = plan.node
    _choose_carried(context, plan)
    _settle_types(context, plan)
    number = Value(plan.index_type, "k")
    body = _build_body(context, plan, number)
    condition_region = _build_condition(context, plan)
    inits = []
    for name, value in plan.nexts.items():
        if name in plan.entering:
            operand: Any = context.scope.names[name]
            inits.append(_entering_value(context, name, operand, plan))
        else:
            inits.append(context.builder.zero(value.type))
    args = [plan.args.get(name) or Value(value.type, name) for name, value in plan.nexts.items()]
    body.region.args = (number, *args)
    with context.builder.into(body.region):
        context.builder.yield_(tuple(plan.nexts.values()))
    with context.at(node):
        results = context.builder.loop(trip, inits, condition_region, body.region)
    _bind_results(context, plan, body.scope, results)


def _choose_carried(context: Context, plan: _Plan) -> None:
    """Find the variables that an iteration may change and that are needed in the next one or after the loop."""
    node, scope = plan.node, context.scope
    plan.before = dict(scope.names)
    needed = context.liveness.after[node] | context.liveness.head[node] | context.exit_names
    names = analysis.assigned([node])
    names += [name for name in scope.names if name.startswith((ADJOINT, RESULT))]
    for name in analysis.call_arguments([node]):
        operand = scope.names.get(name)
        if isinstance(operand, Value) and not is_scalar(operand.type) and not is_array(operand.type):
            names.append(name)
    names += analysis.arguments_of_calls([node], _updating_names(context))
    plan.candidates = [name for name in dict.fromkeys(names) if name in needed or name.startswith("$")]
    for name in plan.candidates:
        operand = scope.names.get(name)
        if isinstance(operand, Value):
            plan.entering[name] = operand.type
        elif isinstance(operand, Literal):
            plan.entering[name] = operand.default
        elif operand is not None and is_truth(operand):
            plan.entering[name] = bool_


def _updating_names(context: Context) -> frozenset[str]:
    """Names under which the kernel sees builtins that give a variable a new value."""
    things = context.names.namespace().items()
    builtins = {name: getattr(thing, "__warp_builtin__", "") for name, thing in things if inspect.isfunction(thing)}
    return _UPDATING.union(name for name, builtin in builtins.items() if builtin in _UPDATING)


def _settle_types(context: Context, plan: _Plan) -> None:
    """Find, by a trial, the types of carried untyped numbers and which carried variables really change."""
    numbers = [name for name in plan.entering if isinstance(context.scope.names[name], Literal)]
    bound = set(analysis.rebound([plan.node]))
    doubtful = [name for name in plan.entering if name not in bound]
    if not numbers and not doubtful:
        return
    adoptions: dict[str, Adoption] = {}
    placeholders: dict[str, Operand] = {}
    for name, type in plan.entering.items():
        operand = context.scope.names[name]
        if isinstance(operand, Literal):
            adoptions[name] = operand.adoption if isinstance(operand, Unsettled) else Adoption()
            placeholders[name] = Unsettled(operand.value, adoptions[name])
        else:
            placeholders[name] = Value(type, name)
    trial = Branch(_iteration_scope(context, placeholders))
    with inside(context, trial), _LoopBody(context, plan):
        if isinstance(plan.node, ast.While):
            condition(context, plan.node.test)
        if plan.start is not None:
            plan.start(Value(plan.index_type))
        context.hooks.run(context, plan.node.body, False)
    for name in numbers:
        end = trial.scope.names.get(name)
        plan.entering[name] = _settled(adoptions[name], end, plan.entering[name])
    for name in doubtful:
        end = trial.scope.names.get(name)
        if end is not None and is_same(end, placeholders[name]):
            del plan.entering[name]
            plan.candidates.remove(name)


def _settled(adoption: Adoption, end: Operand | Poison | None, default: Type) -> Type:
    if isinstance(end, Value):
        return end.type
    return adoption.type or default


class _LoopBody:
    """Marks that the statements of a loop are being translated."""

    def __init__(self, context: Context, plan: _Plan) -> None:
        self.context = context
        self.live = context.exit_names | context.liveness.head[plan.node]

    def __enter__(self) -> None:
        self.outer = self.context.live_at_exit
        self.context.live_at_exit = self.live
        self.context.loop_depth += 1

    def __exit__(self, *_: object) -> None:
        self.context.live_at_exit = self.outer
        self.context.loop_depth -= 1


def _iteration_scope(context: Context, bindings: dict[str, Operand]) -> Scope:
    """Give the variables at the start of an iteration: no flag is set, else the loop would have ended."""
    scope = context.scope.copy()
    scope.names.update(dict.fromkeys(FLAGS, NO))
    scope.names.update(bindings)
    return scope


def _build_body(context: Context, plan: _Plan, number: Value) -> Branch:
    """Translate one iteration and find what it carries on to the next."""
    plan.args = {name: Value(type, name) for name, type in plan.entering.items()}
    body = Branch(_iteration_scope(context, dict(plan.args)))
    with inside(context, body), _LoopBody(context, plan):
        if plan.start is not None:
            plan.start(number)
        context.hooks.run(context, plan.node.body, False)
        for name in [*plan.candidates, *_discovered(body.scope)]:
            end = body.scope.names.get(name)
            _check_fixed(context, plan, name, end)
            value = _next_value(context, plan, name, end)
            if value is not None:
                plan.nexts[name] = value
    return body


def _check_fixed(context: Context, plan: _Plan, name: str, end: Operand | Poison | None) -> None:
    """Refuse tuples and compile-time objects that differ from one iteration to the next."""
    before = plan.before.get(name)
    if before is None or isinstance(before, Poison) or name in plan.entering or end is None:
        return
    if name in context.liveness.head[plan.node] and not is_same(before, end):
        raise context.error(
            KernelTypeError,
            f"variable '{name}' is {spelled(before)}, which cannot change from one iteration to the next",
            plan.node,
            "use variables of their own for the parts of a tuple",
        )


def _discovered(scope: Scope) -> list[str]:
    """Pseudo-variables that an iteration has set."""
    results = [name for name in scope.names if name.startswith(RESULT)]
    return [
        *(flag for flag in (BREAK, RETURN) if not is_same(scope.names[flag], NO) and _can_carry(scope, flag)),
        *results,
    ]


def _can_carry(scope: Scope, flag: str) -> bool:
    operand = scope.names[flag]
    return isinstance(operand, Value) or (isinstance(operand, Known) and operand.object is True)


def _next_value(context: Context, plan: _Plan, name: str, end: Operand | Poison | None) -> Value | None:
    if end is None or isinstance(end, Poison):
        return None
    wanted = plan.entering.get(name)
    if wanted is None:
        if isinstance(end, Value):
            return end
        return context.value(end, plan.node) if isinstance(end, Literal) or is_truth(end) else None
    value = context.fitted(end, wanted)
    if value is None:
        raise context.error(
            KernelTypeError,
            f"variable '{name}' is {type_name(wanted)} before the loop and {spelled(end)} after an iteration",
            plan.node,
            "give it one type, for example by casting the value it has before the loop",
        )
    return value


def _build_condition(context: Context, plan: _Plan) -> Region | None:
    """Translate what must hold for the next iteration to run; None if nothing needs to be tested."""
    node = plan.node
    args = {name: Value(value.type, name) for name, value in plan.nexts.items()}
    flags = [args[name] for name in (BREAK, RETURN) if name in args]
    if not flags and isinstance(node, ast.For):
        return None
    known = {name: value for name, value in args.items() if name in plan.entering}
    region = Region(args=tuple(args.values()))
    test = Branch(_iteration_scope(context, dict(known)), region)
    with inside(context, test), context.at(node):
        result = _keeps_running(context, node, flags)
        if any(not is_same(operand, test.scope.names[name]) for name, operand in known.items()):
            raise context.unsupported(
                "the condition of a loop cannot change variables", node, "call the function in the body"
            )
        context.builder.yield_([result])
    return region


def _keeps_running(context: Context, node: ast.For | ast.While, flags: Sequence[Value]) -> Value:
    if not flags:
        result = condition(context, node.test) if isinstance(node, ast.While) else True
        return context.builder.const(bool_, result) if isinstance(result, bool) else result
    left = flags[0]
    for flag in flags[1:]:
        left = context.value(context.call("logical_or", [left, flag], node), node)
    if isinstance(node, ast.For) or (isinstance(node.test, ast.Constant) and node.test.value):
        return context.value(context.call("logical_not", [left], node), node)
    stopped, running = Branch(context.scope.copy()), Branch(context.scope.copy())
    with inside(context, stopped):
        context.builder.yield_([context.builder.const(bool_, False)])
    with inside(context, running):
        result = condition(context, node.test)
        context.builder.yield_([context.builder.const(bool_, result) if isinstance(result, bool) else result])
    return context.builder.if_(left, stopped.region, running.region)[0]


def _entering_value(context: Context, name: str, operand: Operand, plan: _Plan) -> Value:
    value = context.fitted(operand, plan.entering[name])
    if value is None:
        raise context.error(
            KernelTypeError,
            f"variable '{name}' is {spelled(operand)} before the loop and {type_name(plan.entering[name])} in it",
            plan.node,
            "give it one type before the loop",
        )
    return value


def _bind_results(context: Context, plan: _Plan, end: Scope, results: Sequence[Value]) -> None:
    """Bind the variables after the loop."""
    scope = context.scope
    for name in plan.candidates:
        if name not in plan.nexts:
            operand = end.names.get(name)
            if isinstance(operand, (Poison, Known, tuple)):
                scope.names[name] = _outliving(operand)
    for name, result in zip(plan.nexts, results, strict=False):
        scope.names[name] = result
    scope.names[BREAK] = scope.names[CONTINUE] = NO
    if isinstance(plan.node, ast.While) and analysis.is_endless(plan.node):
        scope.names[RETURN] = YES


def _outliving(operand: Poison | Known | tuple[Operand, ...]) -> Operand | Poison:
    """Give what a variable that cannot be carried is after the loop."""
    if isinstance(operand, tuple):
        return Poison("is a tuple made in a loop and does not exist after it")
    return operand
