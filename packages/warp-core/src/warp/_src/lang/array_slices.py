"""Slices of arrays: views whose bounds may be computed, with constant steps, as Python means them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang import operators
from warp._src.lang.operands import Operand
from warp._src.lang.place import Place, as_array_place, from_start, index_operands, known_index
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import int32, is_int
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


def sliced_array(context: Context, base: Place, nodes: Sequence[ast.expr], node: ast.expr) -> Value:
    """Give the view that `x[1:, ::2, i]` means. Bounds are cut to the array; a negative one counts from the end."""
    start = as_array_place(context, base)
    array = start.read(context)
    type: Any = array.type
    if len(nodes) > type.ndim:
        raise context.error(
            KernelTypeError,
            f"{len(nodes)} indices into an array of {type.ndim} dimension{'s' if type.ndim > 1 else ''}",
            node,
        )
    axis = 0
    for part in nodes:
        if isinstance(part, ast.Slice):
            array = _along(context, array, axis, part)
            axis += 1
        else:
            counted = from_start(context, array, axis, context.evaluate(part), part)
            (index,) = index_operands(context, [counted], [part])
            array = context.builder.view_axis(array, axis, index)
    return array


def _along(context: Context, array: Value, axis: int, node: ast.Slice) -> Value:
    step = 1
    if node.step is not None:
        known = known_index(context.evaluate(node.step))
        if not known:
            raise context.unsupported(
                "the step of a slice must be an integer that is known while compiling, and not zero", node.step
            )
        step = known
    if step != 1 and not isinstance(array.type, ArrayType):
        raise context.unsupported(
            "a slice of an indexed array has the step 1", node, "slice it at the launch, or index it in a loop"
        )
    lower, upper = (_bound(context, part) for part in (node.lower, node.upper))
    if lower is None and upper is None and step == 1:
        return array
    length = context.call("array_shape", [array, Literal(axis)], node)
    first, last = _limits(context, lower, upper, step, length, node)
    span = _binary(context, "sub", last, first, node) if step > 0 else _binary(context, "sub", first, last, node)
    count = span
    if abs(step) > 1:
        rounded = _binary(context, "add", span, Literal(abs(step) - 1), node)
        count = _binary(context, "div", rounded, Literal(abs(step)), node)
    extent = context.value(context.call("max", [count, Literal(0)], node), node)
    with context.at(node):
        return context.builder.view_slice(array, axis, context.value(first, node), extent, step)


def _limits(
    context: Context, lower: Operand | None, upper: Operand | None, step: int, length: Operand, node: ast.AST
) -> tuple[Operand, Operand]:
    """Give the first index of a slice, and the one past its end."""
    if step > 0:
        first = Literal(0) if lower is None else _from_start(context, lower, length, node)
        last = length if upper is None else _cut(context, upper, 0, length, node)
        return first, last
    end = _binary(context, "sub", length, Literal(1), node)
    first = end if lower is None else _cut(context, lower, -1, end, node)
    last = Literal(-1) if upper is None else _cut(context, upper, -1, end, node)
    return first, last


def _from_start(context: Context, bound: Operand, length: Operand, node: ast.AST) -> Operand:
    """Cut a lower bound only where it is needed: past the end the slice is empty anyway."""
    known = known_index(bound)
    return bound if known is not None and known >= 0 else _cut(context, bound, 0, length, node)


def _cut(context: Context, bound: Operand, lowest: int, highest: Operand, node: ast.AST) -> Operand:
    """Count a negative bound from the end, and keep it between `lowest` and `highest`."""
    known = known_index(bound)
    length = highest if lowest == 0 else _binary(context, "add", highest, Literal(1), node)
    if known is None:
        from_end = _binary(context, "add", bound, length, node)
        is_negative = context.call("lt", [bound, Literal(0)], node)
        bound = context.call("where", [is_negative, from_end, bound], node)
    elif known < 0:
        bound = _binary(context, "add", length, bound, node)
    bound = context.call("min", [bound, highest], node)
    return bound if known is not None and known >= 0 else context.call("max", [bound, Literal(lowest)], node)


def _bound(context: Context, node: ast.expr | None) -> Operand | None:
    if node is None:
        return None
    operand = context.evaluate(node)
    if known_index(operand) is not None:
        return operand
    value = context.value(operand, node)
    if not is_int(value.type):
        (value,) = index_operands(context, [operand], [node])
    return value if value.type is int32 else context.builder.cast(int32, value)


def _binary(context: Context, name: str, left: Operand, right: Operand, node: ast.AST) -> Operand:
    return operators.binary(context, name, left, right, node)
