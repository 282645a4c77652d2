"""Casts and constructors: scalars, vectors, matrices, quaternions, transforms, structs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang.capture import captured
from warp._src.lang.context import cast_hint
from warp._src.lang.operands import Operand, Unsettled, is_truth, spelled
from warp._src.types.scalars import Scalar, is_float, is_scalar
from warp._src.types.signature import is_tensor, type_name
from warp._src.types.structs import StructType
from warp._src.types.tensors import quaternion, vector
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context

Keywords = Mapping[str, Operand]


def constructed(context: Context, type: Any, args: Sequence[Operand], keywords: Keywords, node: ast.Call) -> Value:
    """Make a value of `type` from the arguments of a call of that type."""
    if isinstance(type, StructType):
        return _struct(context, type, args, keywords, node)
    if keywords and not (is_tensor(type) and type.category == "transform" and set(keywords) <= {"p", "q"}):
        raise context.error(
            KernelTypeError, f"{type_name(type)}() takes no argument named '{next(iter(keywords))}'", node
        )
    if is_scalar(type):
        return cast(context, type, args, node)
    if type.generic:
        raise context.error(
            KernelTypeError, f"{type_name(type)} is generic and cannot be constructed", node, "name a concrete type"
        )
    if not args and not keywords:
        return context.builder.zero(type)
    return tensor(context, type, args, keywords, node)


def cast(context: Context, type: type[Scalar], args: Sequence[Operand], node: ast.Call) -> Value:
    """Convert a number to a scalar type; without an argument, give zero."""
    builder = context.builder
    if not args:
        return builder.zero(type)
    if len(args) > 1:
        raise context.error(KernelTypeError, f"{type_name(type)}() takes one argument, got {len(args)}", node)
    (operand,) = args
    if isinstance(operand, Literal):
        if isinstance(operand, Unsettled):
            return builder.cast(type, builder.const(operand.default, operand.value))
        return builder.const(type, operand.value)
    if isinstance(operand, Value) and not is_scalar(operand.type):
        raise context.error(KernelTypeError, f"{spelled(operand)} cannot be converted to {type_name(type)}", node)
    return builder.cast(type, context.value(operand, node))


def tensor(context: Context, type: Any, args: Sequence[Operand], keywords: Keywords, node: ast.Call) -> Value:
    """Make a vector, matrix, quaternion or transform."""
    builder = context.builder
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    if len(args) == 1 and not keywords:
        (operand,) = args
        if isinstance(operand, Value) and is_tensor(operand.type):
            source: Any = operand.type
            if (source.category, source.shape) != (type.category, type.shape):
                raise context.error(KernelTypeError, f"{type_name(type)} cannot be made from {spelled(operand)}", node)
            return builder.cast(type, operand)
        if type.category in ("vector", "matrix"):
            return builder.construct(type, [_number(context, type, operand, node)] * type.length)
    if type.category == "matrix" and any(isinstance(arg, Value) and is_tensor(arg.type) for arg in args):
        raise context.error(
            KernelTypeError,
            f"{type_name(type)} is made from {type.length} numbers, got {', '.join(map(spelled, args))}",
            node,
            "to combine vectors say which way: wp.matrix_from_rows(...) or wp.matrix_from_cols(...)",
        )
    if type.category == "transform":
        args = _transform_parts(context, type, args, keywords, node)
    parts = [part for arg in args for part in _scalars(context, type, arg, node)]
    if len(parts) != type.length:
        raise context.error(
            KernelTypeError,
            f"{type_name(type)} needs {type.length} numbers, got {len(parts)}: {', '.join(map(spelled, args))}",
            node,
        )
    return builder.construct(type, parts)


def _transform_parts(
    context: Context, type: Any, args: Sequence[Operand], keywords: Keywords, node: ast.Call
) -> Sequence[Operand]:
    builder = context.builder
    if keywords:
        given = dict(zip(("p", "q"), args, strict=False))
        if given.keys() & keywords.keys() or len(args) > 2:
            raise context.error(KernelTypeError, f"{type_name(type)} takes p and q once each", node)
        given.update(keywords)
        one = [builder.const(type.scalar, number) for number in (0.0, 0.0, 0.0, 1.0)]
        position = given.get("p") or builder.zero(vector(3, type.scalar))
        args = (position, given.get("q") or builder.construct(quaternion(type.scalar), one))
    lengths = [getattr(arg.type, "length", 1) if isinstance(arg, Value) else 1 for arg in args]
    if len(args) == 2 and lengths != [3, 4]:
        raise context.error(
            KernelTypeError,
            f"{type_name(type)} needs a vector of 3 and a quaternion, got {', '.join(map(spelled, args))}",
            node,
        )
    return args


def _scalars(context: Context, type: Any, operand: Operand, node: ast.AST) -> list[Value]:
    """Give the numbers that one argument contributes."""
    if isinstance(operand, tuple):
        return [part for element in operand for part in _scalars(context, type, element, node)]
    if isinstance(operand, Value) and is_tensor(operand.type):
        source: Any = operand.type
        if source.scalar is not type.scalar or len(source.shape) > 1:
            raise context.error(KernelTypeError, f"{type_name(type)} cannot be made from {spelled(operand)}", node)
        return [context.builder.extract(operand, (index,)) for index in range(source.length)]
    return [_number(context, type, operand, node)]


def _number(context: Context, type: Any, operand: Operand, node: ast.AST) -> Value:
    """Give one component; a constructor may be written with whole numbers even if it makes floats."""
    scalar = type.scalar
    if isinstance(operand, Literal) and operand.kind == "i" and is_float(scalar):
        return context.builder.const(scalar, operand.value)
    value = context.fitted(operand, scalar)
    if value is None:
        raise context.error(
            KernelTypeError,
            f"a component of {type_name(type)} must be {type_name(scalar)}, got {spelled(operand)}",
            node,
            cast_hint(operand, scalar, "x"),
        )
    return value


def _struct(context: Context, type: StructType, args: Sequence[Operand], keywords: Keywords, node: ast.Call) -> Value:
    if len(args) > len(type.fields):
        raise context.error(
            KernelTypeError, f"struct '{type.name}' has {len(type.fields)} fields, got {len(args)} values", node
        )
    given = dict(zip(type.fields, args, strict=False))
    for name, operand in keywords.items():
        if name not in type.fields or name in given:
            reason = "got it twice" if name in given else f"has only {', '.join(type.fields)}"
            raise context.error(KernelTypeError, f"field '{name}': struct '{type.name}' {reason}", node)
        given[name] = operand
    for name, default in type.defaults.items():
        if name not in given:
            given[name] = captured(context, default, node)
    if not given:
        return context.builder.zero(type)
    parts = [
        _field(context, type, name, given[name], node) if name in given else context.builder.zero(field_type)
        for name, field_type in type.fields.items()
    ]
    return context.builder.construct(type, parts)


def _field(context: Context, type: StructType, name: str, operand: Operand, node: ast.AST) -> Value:
    field_type: Any = type.fields[name]
    if isinstance(operand, Literal) and operand.kind == "i" and is_float(field_type):
        return context.builder.const(field_type, operand.value)
    if is_truth(operand) or not isinstance(operand, tuple):
        return context.converted(operand, field_type, node, f"field '{name}' of struct '{type.name}'")
    return (
        tensor(context, field_type, operand, {}, node) if isinstance(node, ast.Call) else context.value(operand, node)
    )
