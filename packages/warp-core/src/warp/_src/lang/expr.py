"""Translation of expressions."""

from __future__ import annotations

import ast
import enum
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.ir.ops import Space
from warp._src.lang import operators
from warp._src.lang.array_slices import sliced_array
from warp._src.lang.calls import call
from warp._src.lang.capture import captured
from warp._src.lang.context import Context
from warp._src.lang.local_arrays import LocalPlace, as_local, is_local, sliced_local
from warp._src.lang.names import suggestion
from warp._src.lang.operands import Known, Operand, spelled
from warp._src.lang.place import Place, attribute, indexed, known_index
from warp._src.lang.scope import ADJOINT, Branch, inside, join
from warp._src.lang.slices import sliced
from warp._src.types.signature import is_array, is_tensor
from warp.errors import KernelTypeError, UnknownNameError

_TERNARY = "$value"


def evaluate(context: Context, node: ast.expr) -> Operand:
    """Translate one expression."""
    rule = _RULES.get(type(node))
    if rule is None:
        what, hint = _REFUSED.get(type(node), (f"{type(node).__name__} expressions", ""))
        raise context.unsupported(f"{what} cannot be used in kernels", node, hint)
    with context.at(node):
        return rule(context, node)


def condition(context: Context, node: ast.expr) -> Value | bool:
    """Translate a condition: a bool if it is known while compiling."""
    return operators.truth(context, evaluate(context, node), node)


def place(context: Context, node: ast.expr) -> Place | Operand:
    """Translate what can be assigned to without reading it; anything else gives its operand."""
    if isinstance(node, ast.Name):
        operand = context.local(node)
        if isinstance(operand, Value):
            return Place(operand, node.id)
        return operand if operand is not None else _name(context, node)
    if isinstance(node, ast.Subscript):
        return _subscript_place(context, node)
    if isinstance(node, ast.Attribute):
        return _attribute_place(context, node)
    operand = evaluate(context, node)
    return Place(operand) if isinstance(operand, Value) else operand


# -- names, components, elements -----------------------------------------------------------------------


def _constant(context: Context, node: ast.Constant) -> Operand:
    value = node.value
    if isinstance(value, (bool, str)) or value is None or value is Ellipsis:
        return Known(value)
    if isinstance(value, (int, float)):
        return Literal(value)
    raise context.unsupported(f"{type(value).__name__} constants cannot be used in kernels", node)


def _name(context: Context, node: ast.Name) -> Operand:
    operand = context.local(node)
    if operand is not None:
        return operand
    try:
        thing = context.names.find(node.id)
    except KeyError:
        hint = context.names.similar(node.id, context.scope.names)
        raise context.error(UnknownNameError, f"name '{node.id}' is not defined", node, hint) from None
    return captured(context, thing, node)


def _read(context: Context, node: ast.expr) -> Operand:
    found = place(context, node)
    return found.read(context) if isinstance(found, Place) else found


def _attribute_place(context: Context, node: ast.Attribute) -> Place | Operand:
    if node.attr in ("value", "name"):
        member = _enum_member(context, node.value)
        if member is not None:
            return captured(context, getattr(member, node.attr), node)
    return _attribute_of(context, place(context, node.value), node)


def _enum_member(context: Context, node: ast.expr) -> enum.Enum | None:
    """Give the member of an enumeration that `Colour.RED` names, which as a number would have no attributes."""
    if isinstance(node, ast.Attribute):
        owner = place(context, node.value)
        found = getattr(owner.object, node.attr, None) if isinstance(owner, Known) else None
        return found if isinstance(found, enum.Enum) else None
    return None


def _attribute_of(context: Context, base: Place | Operand, node: ast.Attribute) -> Place | Operand:
    if isinstance(base, Value):
        base = Place(base)
    if not isinstance(base, Place):
        return _object_attribute(context, base, node)
    type: Any = base.type
    if is_array(type):
        return _array_attribute(context, base, node)
    if is_local(base):
        return _local_attribute(context, type, node)
    if is_tensor(type):
        known: dict[str, Operand] = {
            "dtype": Known(type.scalar),
            "shape": tuple(map(Literal, type.shape)),
            "length": Literal(type.length),
        }
        if node.attr in known:
            return known[node.attr]
    return attribute(context, base, node.attr, node)


def _object_attribute(context: Context, base: Operand, node: ast.Attribute) -> Operand:
    if isinstance(base, tuple):
        raise context.error(
            UnknownNameError,
            f"a list or tuple has no attribute '{node.attr}' in kernels; it cannot change",
            node,
            "write to an array parameter, or to a vector for a few numbers",
        )
    if not isinstance(base, Known):
        raise context.error(UnknownNameError, f"{spelled(base)} has no attribute '{node.attr}'", node)
    try:
        thing = getattr(base.object, node.attr)
    except AttributeError as error:
        known = suggestion(node.attr, dir(base.object))
        raise context.error(UnknownNameError, f"{spelled(base)} has no attribute '{node.attr}'", node, known) from error
    return captured(context, thing, node)


def _array_attribute(context: Context, base: Place, node: ast.Attribute) -> Operand:
    type: Any = base.type
    if node.attr == "dtype":
        return Known(type.dtype)
    if node.attr == "ndim":
        return Literal(type.ndim)
    array = base.read(context)
    if node.attr == "ptr":
        return context.call("array_ptr", [array], node)
    if node.attr == "strides":
        return tuple(context.call("array_stride", [array, Literal(d)], node) for d in range(type.ndim))
    if node.attr in ("shape", "size"):
        extents = tuple(context.call("array_shape", [array, Literal(d)], node) for d in range(type.ndim))
        if node.attr == "shape":
            return extents
        size = extents[0]
        for extent in extents[1:]:
            size = operators.binary(context, "mul", size, extent, node)
        return size
    raise context.error(
        UnknownNameError,
        f"an array has no attribute '{node.attr}' in kernels",
        node,
        "there are shape, strides, size, ndim, dtype, ptr",
    )


def _local_attribute(context: Context, type: Any, node: ast.Attribute) -> Operand:
    known: dict[str, Operand] = {
        "dtype": Known(type.dtype),
        "ndim": Literal(type.ndim),
        "shape": tuple(map(Literal, type.shape)),
        "size": Literal(math.prod(type.shape)),
    }
    if node.attr not in known:
        raise context.error(
            UnknownNameError, f"a local array has no attribute '{node.attr}'", node, f"there are {', '.join(known)}"
        )
    return known[node.attr]


def _subscript_place(context: Context, node: ast.Subscript) -> Place | Operand:
    owner = node.value
    if isinstance(owner, ast.Attribute) and owner.attr == "shape":
        whole = place(context, owner.value)
        if isinstance(whole, Place) and is_array(whole.type):
            return _extent(context, whole, node)
        base = _attribute_of(context, whole, owner)
    else:
        base = place(context, owner)
    if isinstance(base, Known) and getattr(base.object, "__warp_intrinsic__", "") == "adjoint":
        return _adjoint(context, node)
    if isinstance(base, Value):
        base = Place(base)
    nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(base, Place):
        if any(isinstance(part, ast.Slice) for part in nodes):
            return _sliced(context, base, nodes, node)
        operands = [context.evaluate(part) for part in nodes]
        if is_local(base):
            return _local_element(context, as_local(base), operands, nodes)
        return indexed(context, base, operands, nodes)
    if isinstance(base, tuple):
        return _tuple_item(context, base, node)
    if isinstance(base, Known) and not isinstance(base.object, str):
        return _object_item(context, base, node)
    raise context.error(KernelTypeError, f"{spelled(base)} cannot be indexed", node)


def _local_element(context: Context, base: LocalPlace, operands: Sequence[Operand], nodes: Sequence[ast.expr]) -> Place:
    if len(operands) > len(base.shape):
        raise context.error(
            KernelTypeError,
            f"{len(operands)} indices into a local array of {len(base.shape)} dimension{'s' * (len(base.shape) > 1)}",
            nodes[-1],
            "index the components of an element in a bracket of their own: x[i][0]",
        )
    return base.at(context, operands, nodes)


def _extent(context: Context, base: Place, node: ast.Subscript) -> Operand:
    """Read one extent of an array, not all of them."""
    array = base.read(context)
    index = context.evaluate(node.slice)
    dimension = known_index(index)
    if dimension is not None:
        if not -array.type.ndim <= dimension < array.type.ndim:
            raise context.error(
                KernelTypeError, f"an array of {array.type.ndim} dimensions has no shape[{dimension}]", node
            )
        index = Literal(dimension % array.type.ndim)
    return context.call("array_shape", [array, index], node)


def _adjoint(context: Context, node: ast.Subscript) -> Place:
    if context.gradient_params is None:
        raise context.unsupported(
            "wp.adjoint can only be used in a custom gradient function",
            node,
            "decorate it with @wp.func_grad(function)",
        )
    target = place(context, node.slice)
    if isinstance(target, Place) and is_array(target.type):
        return Place(target.read(context), indices=(), space=Space.GRADIENT)
    name = node.slice.id if isinstance(node.slice, ast.Name) else ""
    accumulator = context.scope.names.get(ADJOINT + name)
    if not isinstance(accumulator, Value):
        raise context.error(
            UnknownNameError,
            f"wp.adjoint[{ast.unparse(node.slice)}]: not an input of the function",
            node,
            f"the inputs are {', '.join(context.gradient_params)}",
        )
    return Place(accumulator, ADJOINT + name)


def _tuple_item(context: Context, base: tuple[Operand, ...], node: ast.Subscript) -> Operand:
    index = context.evaluate(node.slice)
    if not (isinstance(index, Literal) and isinstance(index.value, int)):
        raise context.unsupported(
            "a list or tuple can only be indexed by a number that is known while compiling",
            node,
            "pass the values as an array, or put a few of them into a vector",
        )
    if not -len(base) <= index.value < len(base):
        raise context.error(KernelTypeError, f"index {index.value} is out of range for {len(base)} values", node)
    return base[index.value]


def _object_item(context: Context, base: Known, node: ast.Subscript) -> Operand:
    index = context.evaluate(node.slice)
    key = index.value if isinstance(index, Literal) else index.object if isinstance(index, Known) else None
    try:
        return captured(context, base.object[key], node)
    except (TypeError, KeyError, IndexError) as error:
        raise context.error(
            KernelTypeError,
            f"{spelled(base)} cannot be indexed by {spelled(index)}",
            node,
            "only what is known while compiling can be looked up in an object of Python",
        ) from error


def _sliced(context: Context, base: Place, nodes: Sequence[ast.expr], node: ast.Subscript) -> Place | Operand:
    type: Any = base.type
    if is_array(type):
        return Place(sliced_array(context, base, nodes, node))
    if is_local(base):
        return Place(sliced_local(context, base, nodes, node))
    if not is_tensor(type):
        raise context.error(KernelTypeError, f"a value of type {type.name} cannot be sliced", node)
    return Place(sliced(context, base, nodes, node))


# -- operators -----------------------------------------------------------------------------------------


def _binary(context: Context, node: ast.BinOp) -> Operand:
    left = context.evaluate(node.left)
    right = context.evaluate(node.right)
    return operators.binary(context, operators.BINARY[type(node.op)], left, right, node)


def _unary(context: Context, node: ast.UnaryOp) -> Operand:
    if isinstance(node.op, ast.Not):
        test = condition(context, node.operand)
        return Known(not test) if isinstance(test, bool) else context.call("logical_not", [test], node)
    return operators.unary(context, operators.UNARY[type(node.op)], context.evaluate(node.operand), node)


def _bool_op(context: Context, node: ast.BoolOp) -> Operand:
    tests = [partial(condition, context, part) for part in node.values]
    return _chain(context, tests, node.values, node)


def _chain(
    context: Context,
    tests: Sequence[Callable[[], Value | bool]],
    parts: Sequence[ast.expr],
    node: ast.BoolOp | ast.Compare,
) -> Operand:
    """Join conditions with `and` or `or`; those on the right are only evaluated if they matter."""
    is_or = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
    first = tests[0]()
    if len(tests) == 1:
        return Known(first) if isinstance(first, bool) else first
    if isinstance(first, bool):
        return Known(first) if first is is_or else _chain(context, tests[1:], parts[1:], node)
    if all(_is_cheap(part) for part in parts[1:]):
        rest = _chain(context, tests[1:], parts[1:], node)
        return context.call("logical_or" if is_or else "logical_and", [first, rest], node)

    def decided() -> Operand:
        return Known(is_or)

    def undecided() -> Operand:
        return _chain(context, tests[1:], parts[1:], node)

    return _selected(context, first, *((decided, undecided) if is_or else (undecided, decided)), node)


def _is_cheap(node: ast.expr) -> bool:
    """Tell whether evaluating a condition needlessly costs nothing and can do no harm."""
    allowed = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp)
    rest = (ast.expr_context, ast.cmpop, ast.boolop, ast.unaryop, ast.Add, ast.Sub, ast.Mult)
    return all(isinstance(part, (*allowed, *rest)) for part in ast.walk(node))


def _compare(context: Context, node: ast.Compare) -> Operand:
    if len(node.ops) == 1:
        left, right = context.evaluate(node.left), context.evaluate(node.comparators[0])
        return _comparison(context, node.ops[0], left, right, node)
    # The operands of a chain are evaluated once; the middle ones belong to two comparisons.
    operands = [context.evaluate(node.left)]

    def test(index: int) -> Value | bool:
        if len(operands) == index + 1:
            operands.append(context.evaluate(node.comparators[index]))
        result = _comparison(context, node.ops[index], operands[index], operands[index + 1], node)
        return operators.truth(context, result, node)

    tests = [partial(test, index) for index in range(len(node.ops))]
    return _chain(context, tests, node.comparators, node)


def _comparison(context: Context, op: ast.cmpop, left: Operand, right: Operand, node: ast.AST) -> Operand:
    name = operators.COMPARE.get(type(op))
    if name is not None:
        return operators.compare(context, name, left, right, node)
    if isinstance(op, (ast.Is, ast.IsNot)) and (isinstance(left, Known) or isinstance(right, Known)):
        is_one = isinstance(left, Known) and isinstance(right, Known) and left.object is right.object
        return Known(is_one == isinstance(op, ast.Is))
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, tuple):
        result: Operand = Known(False)
        for item in right:
            equal = operators.compare(context, "eq", left, item, node)
            if isinstance(equal, Known) and isinstance(result, Known):
                result = Known(equal.object or result.object)
            else:
                result = context.call("logical_or", [result, equal], node)
        if isinstance(op, ast.In):
            return result
        return Known(not result.object) if isinstance(result, Known) else context.call("logical_not", [result], node)
    raise context.unsupported(f"this comparison of {spelled(left)} and {spelled(right)} has no meaning here", node)


def _ternary(context: Context, node: ast.IfExp) -> Operand:
    test = condition(context, node.test)
    if isinstance(test, bool):
        return context.evaluate(node.body if test else node.orelse)
    return _selected(context, test, lambda: context.evaluate(node.body), lambda: context.evaluate(node.orelse), node)


def _selected(
    context: Context, test: Value, then: Callable[[], Operand], orelse: Callable[[], Operand], node: ast.AST
) -> Operand:
    """Evaluate one of two expressions, and join what it gives."""
    branches = (Branch(context.scope.copy()), Branch(context.scope.copy()))
    for branch, side in zip(branches, (then, orelse), strict=True):
        with inside(context, branch):
            branch.scope.names[_TERNARY] = side()
    join(context, test, *branches, node)
    result = context.scope.names.pop(_TERNARY)
    if isinstance(result, (Value, Literal, Known, tuple)):
        return result
    raise context.error(KernelTypeError, "the two values of a condition are different compile-time objects", node)


def _tuple(context: Context, node: ast.Tuple | ast.List) -> Operand:
    if any(isinstance(element, ast.Starred) for element in node.elts):
        raise context.unsupported("star-arguments cannot be used in kernels", node)
    return tuple(context.evaluate(element) for element in node.elts)


_RULES: dict[type[ast.expr], Callable[[Context, Any], Operand]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _read,
    ast.Subscript: _read,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _bool_op,
    ast.Compare: _compare,
    ast.IfExp: _ternary,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.Call: call,
}

_REFUSED: dict[type[ast.expr], tuple[str, str]] = {
    ast.Lambda: ("lambda functions", "define the function with 'def' and @wp.func"),
    ast.ListComp: ("comprehensions", "write a for loop"),
    ast.SetComp: ("comprehensions", "write a for loop"),
    ast.DictComp: ("comprehensions", "write a for loop"),
    ast.GeneratorExp: ("generator expressions", "write a for loop"),
    ast.Dict: ("dictionaries", "use a struct"),
    ast.Set: ("sets", ""),
    ast.JoinedStr: ("f-strings", 'use wp.printf("x = %f\\n", x)'),
    ast.Yield: ("yield expressions", ""),
    ast.YieldFrom: ("yield expressions", ""),
    ast.Await: ("await expressions", ""),
    ast.NamedExpr: ("assignment expressions", "assign in a statement of its own"),
    ast.Starred: ("star-arguments", ""),
    ast.Slice: ("slices", ""),
}

__all__ = ["condition", "evaluate", "place"]
