"""Reversal of single operations: one function per operation, found by its type."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

from warp._src.builtins.declare import AdjointRule, NonDifferentiable, resolve
from warp._src.builtins.expression import Expr, guarded
from warp._src.builtins.rules import INTERNAL
from warp._src.ir.builder import Builder
from warp._src.ir.core import Value
from warp._src.ir.ops import (
    Atomic,
    Call,
    Cast,
    Const,
    Construct,
    Extract,
    Insert,
    Load,
    Native,
    Op,
    Path,
    Recall,
    RecordStart,
    Space,
    Store,
    ThreadIndex,
    View,
)
from warp._src.passes.adjoint_context import AdjointContext, Frame
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.scalars import is_scalar
from warp._src.types.signature import is_differentiable
from warp._src.types.structs import StructType

# Operations whose results are no functions of differentiable values.
_WITHOUT_GRADIENT = (Const, ThreadIndex, View, Recall, RecordStart)

Rule = Callable[[AdjointContext, Frame, Any], None]
_RULES: dict[type[Op], Rule] = {}


def rule(*op_types: type[Op]) -> Callable[[Rule], Rule]:
    """Register the reversal of operation types."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(op_types, function))
        return function

    return register


def reverse_op(context: AdjointContext, frame: Frame, op: Op) -> None:
    """Emit the reverse of an operation without regions; operations that pass no gradient have no rule."""
    if type(op) in _RULES:
        _RULES[type(op)](context, frame, op)
    elif any(result in frame.adjoints for result in op.results) and not isinstance(op, _WITHOUT_GRADIENT):
        context.fail(op, f"a second derivative through the loop in line {op.loc.line} is needed, which does not exist")


@rule(Cast)
def _cast(context: AdjointContext, frame: Frame, op: Cast) -> None:
    adjoint = frame.adjoints.get(op.result)
    if adjoint is not None and is_differentiable(op.operands[0].type):
        context.accumulate(frame, op.operands[0], context.builder.cast(op.operands[0].type, adjoint))


@rule(Construct)
def _construct(context: AdjointContext, frame: Frame, op: Construct) -> None:
    adjoint = frame.adjoints.get(op.result)
    if adjoint is None:
        return
    for path, operand in zip(_component_paths(op.result.type), op.operands, strict=False):
        if operand in context.activity:
            context.accumulate(frame, operand, context.builder.extract(adjoint, path))


@rule(Extract)
def _extract(context: AdjointContext, frame: Frame, op: Extract) -> None:
    adjoint = frame.adjoints.get(op.result)
    aggregate = op.operands[0]
    if adjoint is None or aggregate not in context.activity:
        return
    builder = context.builder
    indices = [context.primal(frame, index) for index in op.operands[1:]]
    before = frame.adjoints.get(aggregate)
    if before is None:
        before = builder.zero(aggregate.type)
    else:
        adjoint = context.add(builder.extract(before, op.path, indices), adjoint)
    frame.adjoints[aggregate] = builder.insert(before, adjoint, op.path, indices)


@rule(Insert)
def _insert(context: AdjointContext, frame: Frame, op: Insert) -> None:
    adjoint = frame.adjoints.get(op.result)
    if adjoint is None:
        return
    builder = context.builder
    aggregate, part = op.operands[:2]
    indices = [context.primal(frame, index) for index in op.operands[2:]]
    if part in context.activity:
        context.accumulate(frame, part, builder.extract(adjoint, op.path, indices))
    if aggregate in context.activity:
        rest = builder.insert(adjoint, builder.zero(part.type), op.path, indices)
        context.accumulate(frame, aggregate, rest)


@rule(Call)
def _call(context: AdjointContext, frame: Frame, op: Call) -> None:
    record = op.builtin.builtin
    if not any(r in frame.adjoints for r in op.results):
        return
    if isinstance(record.adjoint, NonDifferentiable):
        if record.adjoint is INTERNAL and any(operand in context.activity for operand in op.operands):
            context.fail(
                op,
                f"a second derivative is needed in line {op.loc.line}, which does not exist for '{op.builtin.label}'",
            )
        return
    builder = context.builder
    operands = [context.primal(frame, operand) for operand in op.operands]
    results = [context.primal(frame, result) for result in op.results]
    adjoints = [frame.adjoints.get(result) or builder.zero(result.type) for result in op.results]
    wanted = [n for n, operand in enumerate(op.operands) if operand in context.activity]
    for number, contribution in contributions(builder, op, operands, results, adjoints, wanted):
        context.accumulate(frame, op.operands[number], contribution)


def contributions(
    builder: Builder,
    op: Call,
    operands: Sequence[Value],
    results: Sequence[Value],
    adjoints: Sequence[Value],
    wanted: Container[int],
) -> list[tuple[int, Value]]:
    """Emit what a builtin's rules add to the adjoints of the `wanted` operands; gives their numbers and the values."""
    record = op.builtin.builtin
    names: dict[str, Expr] = {}
    for number, (result, adjoint) in enumerate(zip(results, adjoints, strict=True)):
        suffix = str(number) if len(results) > 1 else ""
        names[f"adj{suffix}"] = Expr(builder, adjoint, is_adjoint=True, bounded=True)
        names[f"ret{suffix}"] = Expr(builder, result)
    incoming = [expression for name, expression in names.items() if name.startswith("adj")]
    for name, operand in zip(record.parameters, operands, strict=True):
        names[name] = Expr(builder, operand)
    found = []
    for number, name in enumerate(record.parameters):
        if name in record.adjoint and number in wanted:
            function = record.adjoint[name]
            part = function(*(_fresh(names[argument]) for argument in _argument_names(function)))
            found.append((number, guarded(incoming, part).value))
    return found


def _fresh(expression: Expr) -> Expr:
    return Expr(expression.builder, expression.value, expression.is_adjoint, expression.bounded)


@functools.cache
def _argument_names(function: AdjointRule) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


# -- memory --------------------------------------------------------------------------------------------


def _place(context: AdjointContext, frame: Frame, op: Load | Store) -> tuple[Value, list[Value], Path, list[Value]]:
    """Array, indices and path of an access, in replayed values."""
    array = context.primal(frame, op.array)
    indices = [context.primal(frame, index) for index in op.indices]
    path_indices = [context.primal(frame, index) for index in op.path_indices]
    return array, indices, op.path, path_indices


def _add_to_gradient(
    context: AdjointContext, place: tuple[Value, list[Value], Path, list[Value]], adjoint: Value
) -> None:
    """Accumulate into a gradient array; of a struct, into each field that has a derivative."""
    if context.is_local:
        return
    array, indices, path, path_indices = place
    if isinstance(adjoint.type, StructType):
        for name, field_type in adjoint.type.fields.items():
            if is_differentiable(field_type):
                part = context.builder.extract(adjoint, (name,))
                _add_to_gradient(context, (array, indices, (*path, name), path_indices), part)
        return
    context.builder.atomic("add", array, adjoint, indices, path, path_indices, Space.GRADIENT)


@rule(Load)
def _load(context: AdjointContext, frame: Frame, op: Load) -> None:
    adjoint = frame.adjoints.get(op.result)
    if adjoint is not None and op.space is Space.PRIMAL:
        _add_to_gradient(context, _place(context, frame, op), adjoint)


@rule(Store)
def _store(context: AdjointContext, frame: Frame, op: Store) -> None:
    if not is_differentiable(op.value.type) or op.space is not Space.PRIMAL:
        return
    builder = context.builder
    place = _place(context, frame, op)
    adjoint = builder.load(*place, Space.GRADIENT)
    array, indices, path, path_indices = place
    builder.store(array, builder.zero(op.value.type), indices, path, path_indices, Space.GRADIENT)
    context.accumulate(frame, op.value, adjoint)


@rule(Atomic)
def _atomic(context: AdjointContext, frame: Frame, op: Atomic) -> None:
    if not is_differentiable(op.value.type) or op.space is not Space.PRIMAL:
        return
    place = _place(context, frame, op)
    result_adjoint = frame.adjoints.get(op.results[0]) if op.results else None
    if op.kind in ("add", "sub"):
        adjoint = context.builder.load(*place, Space.GRADIENT)
        context.accumulate(frame, op.value, adjoint if op.kind == "add" else context.negate(adjoint))
        if result_adjoint is not None:
            _add_to_gradient(context, place, result_adjoint)
    elif op.kind == "exch":
        array, indices, path, path_indices = place
        adjoint = context.builder.load(*place, Space.GRADIENT)
        rest = result_adjoint if result_adjoint is not None else context.builder.zero(op.value.type)
        context.builder.store(array, rest, indices, path, path_indices, Space.GRADIENT)
        context.accumulate(frame, op.value, adjoint)
    elif op.kind in ("min", "max") and result_adjoint is None and not context.analysis.needs_order(op):
        _unordered_extremum(context, frame, op, place)
    elif op.kind in ("min", "max", "cas"):
        _ordered_choice(context, frame, op, place, result_adjoint)
    else:
        context.fail(op, f"atomic {op.kind} on floats in line {op.loc.line} has no adjoint")


def _unordered_extremum(
    context: AdjointContext, frame: Frame, op: Atomic, place: tuple[Value, list[Value], Path, list[Value]]
) -> None:
    """The gradient goes to the one value that is the final extremum: it takes it and leaves zero."""
    builder = context.builder
    array, indices, path, path_indices = place
    final = builder.load(*place)
    adjoint = builder.load(*place, Space.GRADIENT)
    taken, left = _split(context, "eq", context.primal(frame, op.value), final, adjoint)
    builder.store(array, left, indices, path, path_indices, Space.GRADIENT)
    context.accumulate(frame, op.value, taken)


def _ordered_choice(
    context: AdjointContext,
    frame: Frame,
    op: Atomic,
    place: tuple[Value, list[Value], Path, list[Value]],
    result_adjoint: Value | None,
) -> None:
    """The value takes the gradient if it replaced what the atomic found, which is on record."""
    builder = context.builder
    array, indices, path, path_indices = place
    old = context.primal(frame, op.result) if op.results else context.recalled(frame, op)
    adjoint = builder.load(*place, Space.GRADIENT)
    if op.kind == "cas":
        taken, left = _split(context, "eq", context.primal(frame, op.operands[-1]), old, adjoint)
    else:
        comparison = "gt" if op.kind == "max" else "lt"
        taken, left = _split(context, comparison, context.primal(frame, op.value), old, adjoint)
    builder.store(array, left, indices, path, path_indices, Space.GRADIENT)
    context.accumulate(frame, op.value, taken)
    if result_adjoint is not None:
        _add_to_gradient(context, place, result_adjoint)


def _split(context: AdjointContext, comparison: str, value: Value, other: Value, adjoint: Value) -> tuple[Value, Value]:
    """Split an adjoint into the components where a comparison holds and those where it does not."""
    builder, zero = context.builder, context.builder.zero(adjoint.type)
    taken = chosen(builder, comparison, value, other, adjoint, zero)
    return taken, chosen(builder, comparison, value, other, zero, adjoint)


def chosen(builder: Builder, comparison: str, left: Value, right: Value, yes: Value, no: Value) -> Value:
    """Choose component by component, by a comparison of two values."""
    if is_scalar(left.type):
        (test,) = builder.call(resolve(comparison, [left.type, right.type]), (left, right))
        return builder.call(resolve("where", [test.type, yes.type, no.type]), (test, yes, no))[0]
    parts = [
        chosen(builder, comparison, *(builder.extract(v, path) for v in (left, right, yes, no)))
        for path in _component_paths(left.type)
    ]
    return builder.construct(left.type, parts)


# -- native code ---------------------------------------------------------------------------------------


@rule(Native)
def _native(context: AdjointContext, frame: Frame, op: Native) -> None:
    adjoints = [frame.adjoints.get(result) for result in op.results]
    arrays = [o for o in op.operands if isinstance(o.type, (ArrayType, IndexedArrayType))]
    touches_gradients = any(is_differentiable(array.type.dtype) for array in arrays)
    if op.adjoint_snippet is None:
        if any(adjoints) or touches_gradients:
            context.fail(op, f"the native function '{op.name}' called in line {op.loc.line} has no adjoint snippet")
        return
    if not any(adjoints) and not arrays:
        return
    builder = context.builder
    operands = [context.primal(frame, operand) for operand in op.operands]
    names = list(op.names)
    for result, adjoint in zip(op.results, adjoints, strict=True):
        operands.append(adjoint if adjoint is not None else builder.zero(result.type))
        names.append("adj_ret")
    for name, operand in zip(op.names, op.operands, strict=True):
        if isinstance(operand.type, ArrayType):
            operands.append(context.primal(frame, operand))
            names.append(f"adj_{name}")
    for text in context.analysis.native_hazards(op):
        context.fail(op, text)
    targets = [(n, o) for n, o in zip(op.names, op.operands, strict=True) if is_differentiable(o.type)]
    results = tuple(Value(operand.type, f"adj_{name}") for name, operand in targets)
    builder.append(
        replace(
            op,
            results=results,
            operands=tuple(operands),
            names=tuple(names),
            snippet=op.adjoint_snippet,
            adjoint_snippet=None,
            replay_snippet=None,
            result_names=tuple(f"adj_{name}" for name, _ in targets),
        )
    )
    for (_, operand), result in zip(targets, results, strict=True):
        context.accumulate(frame, operand, result)


def _component_paths(type: Any) -> list[Path]:
    """Paths to all scalars of a tensor in order, or to all fields of a struct."""
    if isinstance(type, StructType):
        return [(name,) for name in type.fields]
    if type.category == "matrix":
        rows, columns = type.shape
        return [(row, column) for row in range(rows) for column in range(columns)]
    return [(number,) for number in range(type.length)]
