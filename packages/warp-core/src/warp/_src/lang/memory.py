"""Atomic operations on array elements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from warp._src.ir.core import Type, Value
from warp._src.lang.local_arrays import LocalPlace, as_local, is_local
from warp._src.lang.operands import Operand
from warp._src.lang.place import Place, as_array_place, indexed
from warp._src.types.scalars import bool_, is_int
from warp._src.types.signature import is_array, is_tensor, type_name
from warp._src.types.structs import StructType
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context

_KINDS = ("add", "sub", "min", "max", "exch", "cas", "and", "or", "xor")
_INTEGER_KINDS = ("and", "or", "xor")


def has_atomic(type: Type) -> bool:
    """Tell whether elements of a type can be added to atomically."""
    scalar: Any = type.scalar if is_tensor(type) else type
    return (
        not isinstance(type, StructType)
        and not is_array(type)
        and scalar.kind != "b"
        and scalar.size >= 2
        and (scalar.kind == "f" or scalar.size >= 4)
    )


def atomic_update(context: Context, kind: str, place: Place, value: Value, expected: Value | None = None) -> Value:
    """Append a read-modify-write of an array element, or of a part of one; gives the old value."""
    return context.builder.atomic(
        kind, place.root, value, place.indices or (), place.path, place.path_indices, place.space, expected
    )


def _handler(kind: str) -> Callable[[Context, ast.Call], Operand]:
    name = f"atomic_{kind}"

    def handler(context: Context, node: ast.Call) -> Operand:
        nodes = _in_order(context, node, name)
        array = context.hooks.place(context, nodes[0]) if nodes else None
        if is_local(array):
            return _locally(context, kind, as_local(array), nodes, node)
        if not (isinstance(array, Place) and is_array(array.type)):
            raise context.error(KernelTypeError, f"wp.{name}() takes an array first", node, f"wp.{name}(x, i, value)")
        ndim = array.type.ndim
        index_nodes = _indices(context, kind, ndim, nodes, node)
        start = as_array_place(context, array)
        place = indexed(context, start, [context.evaluate(part) for part in index_nodes], index_nodes)
        _check(context, kind, place.type, node)
        values = [
            context.converted(context.evaluate(part), place.type, part, f"the value of wp.{name}()")
            for part in nodes[1 + ndim :]
        ]
        return atomic_update(context, kind, place, values[-1], values[0] if kind == "cas" else None)

    return handler


def _indices(context: Context, kind: str, ndim: int, nodes: Sequence[ast.expr], node: ast.Call) -> Sequence[ast.expr]:
    """Give the nodes of the indices; KernelTypeError for a wrong number of arguments."""
    last = 2 if kind == "cas" else 1
    if len(nodes) != 1 + ndim + last:
        raise context.error(
            KernelTypeError,
            f"wp.atomic_{kind}() on an array of {ndim} dimension{'s' * (ndim > 1)} takes {ndim + last} arguments "
            f"after it, got {len(nodes) - 1}",
            node,
            f"wp.atomic_{kind}(x, {', '.join('ijkl'[:ndim])}, {'compare, ' * (last > 1)}value)",
        )
    return nodes[1 : 1 + ndim]


def _locally(context: Context, kind: str, array: LocalPlace, nodes: Sequence[ast.expr], node: ast.Call) -> Operand:
    """Update an element of a local array, which no other work item sees."""
    index_nodes = _indices(context, kind, len(array.shape), nodes, node)
    values = [context.evaluate(part) for part in nodes[1 + len(index_nodes) :]]
    place = array.at(context, [context.evaluate(part) for part in index_nodes], index_nodes)
    _check(context, kind, place.type, node)
    what = f"the value of wp.atomic_{kind}()"
    given = [context.converted(value, place.type, node, what) for value in values]
    old = place.read(context)
    if kind == "cas":
        changed = context.call("where", [context.call("eq", [old, given[0]], node), given[1], old], node)
    elif kind == "exch":
        changed = given[0]
    else:
        changed = context.call(f"bit_{kind}" if kind in _INTEGER_KINDS else kind, [old, given[0]], node)
    place.write(context, context.value(changed, node), node)
    return old


def _in_order(context: Context, node: ast.Call, name: str) -> list[ast.expr]:
    """Give the argument nodes in the order array, indices, (expected,) value."""
    order = ("arr", "i", "j", "k", "l", "compare", "value")
    keywords = {keyword.arg or "": keyword.value for keyword in node.keywords}
    unknown = [keyword for keyword in keywords if keyword not in order]
    if unknown or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise context.error(KernelTypeError, f"wp.{name}() cannot take these arguments", node)
    return [*node.args, *(keywords[keyword] for keyword in order if keyword in keywords)]


def _check(context: Context, kind: str, type: Any, node: ast.AST) -> None:
    if kind in ("exch", "cas"):
        fits = not isinstance(type, StructType) and not is_tensor(type) and type is not bool_
    else:
        fits = is_int(type) if kind in _INTEGER_KINDS else has_atomic(type)
    if not fits:
        raise context.error(KernelTypeError, f"wp.atomic_{kind}() is not defined for {type_name(type)}", node)


ATOMICS: dict[str, Callable[[Context, ast.Call], Operand]] = {f"atomic_{kind}": _handler(kind) for kind in _KINDS}
