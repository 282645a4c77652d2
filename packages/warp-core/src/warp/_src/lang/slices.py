"""Slices of vectors and matrices with constant bounds."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.types.tensors import matrix, vector
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context
    from warp._src.lang.place import Place


def sliced(context: Context, base: Place, nodes: Sequence[ast.expr], node: ast.AST) -> Value:
    """Give the vector or matrix of the components that a slice selects."""
    type: Any = base.type
    if len(nodes) > len(type.shape):
        raise context.error(KernelTypeError, f"too many indices for {type.name}", node)
    selections = [_selected(context, part, extent) for part, extent in zip(nodes, type.shape, strict=False)]
    selections += [range(extent) for extent in type.shape[len(nodes) :]]
    kept = [len(choice) for choice in selections if isinstance(choice, range)]
    if 0 in kept:
        raise context.error(KernelTypeError, "the slice is empty", node)
    aggregate = base.read(context)
    paths = itertools.product(*(choice if isinstance(choice, range) else (choice,) for choice in selections))
    parts = [context.builder.extract(aggregate, path) for path in paths]
    result = vector(kept[0], type.scalar) if len(kept) == 1 else matrix((kept[0], kept[1]), type.scalar)
    return context.builder.construct(result, parts)


def _selected(context: Context, node: ast.expr, extent: int) -> range | int:
    if isinstance(node, ast.Slice):
        start, stop, step = (_bound(context, part) for part in (node.lower, node.upper, node.step))
        if step == 0:
            raise context.error(KernelTypeError, "a slice step cannot be zero", node)
        return range(*slice(start, stop, step).indices(extent))
    index = _bound(context, node)
    if index is None or not -extent <= index < extent:
        raise context.error(KernelTypeError, f"component {index} is out of range for a length of {extent}", node)
    return index % extent


def _bound(context: Context, node: ast.expr | None) -> int | None:
    if node is None:
        return None
    operand = context.evaluate(node)
    if isinstance(operand, Literal) and isinstance(operand.value, int):
        return operand.value
    raise context.unsupported("slices of vectors and matrices need constant bounds", node, "use indices in a loop")
