"""Slices of vectors and matrices with constant bounds, read and assigned."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.types.tensors import matrix, vector
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context
    from warp._src.lang.operands import Operand
    from warp._src.lang.place import Place


def sliced(context: Context, base: Place, nodes: Sequence[ast.expr], node: ast.AST) -> Value:
    """Give the vector or matrix of the components that a slice selects."""
    result, paths = _selection(context, base, nodes, node)
    aggregate = base.read(context)
    return context.builder.construct(result, [context.builder.extract(aggregate, path) for path in paths])


def assign_slice(
    context: Context, base: Place, nodes: Sequence[ast.expr], operand: Operand, node: ast.expr, source: ast.expr
) -> None:
    """Assign to the components that a slice selects: a vector or matrix of the slice's type, or one number for all."""
    result, paths = _selection(context, base, nodes, node)
    what = f"what is stored in {ast.unparse(node)}"
    is_number = isinstance(operand, Literal) or (isinstance(operand, Value) and operand.type is result.scalar)
    value = context.converted(operand, result.scalar if is_number else result, source, what)
    shape = result.shape
    for position, path in zip(itertools.product(*map(range, shape)), paths, strict=True):
        part = value if is_number else context.builder.extract(value, position)
        base.step(*path).write(context, part, node)
        if base.name is not None and base.indices is None:
            changed = context.scope.names[base.name]
            base = replace(base, root=changed) if isinstance(changed, Value) else base


def _selection(
    context: Context, base: Place, nodes: Sequence[ast.expr], node: ast.AST
) -> tuple[Any, list[tuple[int, ...]]]:
    """Give the type of a slice, and the paths of its components in row-major order."""
    type: Any = base.type
    if len(nodes) > len(type.shape):
        raise context.error(KernelTypeError, f"too many indices for {type.name}", node)
    selections = [selected(context, part, extent) for part, extent in zip(nodes, type.shape, strict=False)]
    selections += [range(extent) for extent in type.shape[len(nodes) :]]
    kept = [len(choice) for choice in selections if isinstance(choice, range)]
    if 0 in kept:
        raise context.error(KernelTypeError, "the slice is empty", node)
    paths = itertools.product(*(choice if isinstance(choice, range) else (choice,) for choice in selections))
    result = vector(kept[0], type.scalar) if len(kept) == 1 else matrix((kept[0], kept[1]), type.scalar)
    return result, list(paths)


def selected(context: Context, node: ast.expr, extent: int) -> range | int:
    """Give the components that one part of an index selects."""
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
    raise context.unsupported(
        "slices of vectors, matrices and local arrays need constant bounds", node, "use indices in a loop"
    )
