"""Statements that read and write arrays, their gradients included."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warp._src.emit.cstyle import Body, cpp_string, emitter, has_gradient
from warp._src.emit.names import cpp_type
from warp._src.emit.paths import component
from warp._src.ir.core import Value
from warp._src.ir.ops import Atomic, Load, Space, Store


@emitter(Load)
def _load(body: Body, op: Load) -> None:
    target = _element(body, op)
    conditions = _conditions(body, op)
    if not conditions and not body.unit.options.debug:
        body.define(op.result, target)
        return
    name = body.declare(op.result, "{}")
    _guarded(body, op, conditions, lambda: body.line(f"{name} = {target};"))


@emitter(Store)
def _store(body: Body, op: Store) -> None:
    value = body.name(op.value)
    body.check_finite(op, op.value.type, value)
    target = _element(body, op)
    _guarded(body, op, _conditions(body, op), lambda: body.line(f"{target} = {value};"))


@emitter(Atomic)
def _atomic(body: Body, op: Atomic) -> None:
    arguments = [_element(body, op), body.name(op.value)]
    if op.kind == "cas":
        arguments.append(body.name(op.operands[-1]))
    conditions = _conditions(body, op)
    text = f"wp::fetch_{op.kind}({', '.join(arguments)})"
    if op.results and not conditions and not body.unit.options.debug:
        body.define(op.result, text)
        return
    assign = f"{body.declare(op.result, '{}')} = " if op.results else ""
    _guarded(body, op, conditions, lambda: body.line(f"{assign}{text};"))


def _element(body: Body, op: Load | Store) -> str:
    array = op.array
    function = "grad_at" if op.space is Space.GRADIENT else "at"
    body.unit.type(array.type)
    indices = ", ".join(body.named(op.indices))
    element = f"wp::{function}<{cpp_type(array.type.dtype)}>({body.name(array)}, {indices})"
    steps = body.component_indices(op, array, array.type.dtype, op.path, op.path_indices)
    return component(element, array.type.dtype, op.path, steps)


def _conditions(body: Body, op: Load | Store) -> list[str]:
    return [has_gradient(body, op.array)] if op.space is Space.GRADIENT else []


def _guarded(body: Body, op: Load | Store, conditions: Sequence[str], access: Callable[[], None]) -> None:
    """Emit an access that happens only where memory is; debug mode reports an index out of bounds."""
    if body.unit.options.debug:
        with body.block(f"if (!{_in_bounds(body, op.array, op.indices)})"):
            body.line(f"{_raise_bounds(body, op)};")
        head = "else if" if conditions else "else"
        with body.block(f"{head} ({' && '.join(conditions)})" if conditions else head):
            access()
    elif conditions:
        with body.block(f"if ({' && '.join(conditions)})"):
            access()
    else:
        access()


def _raise_bounds(body: Body, op: Load | Store) -> str:
    what = cpp_string(body.source_name(op.array))
    where = ", ".join([body.name(op.array), *body.named(op.indices)])
    return f"wp::raise_bounds(launch, {op.loc.line}, item, {what}, {where})"


def _in_bounds(body: Body, array: Value, indices: Sequence[Value]) -> str:
    return f"wp::in_bounds({', '.join([body.name(array), *body.named(indices)])})"
