"""Assignments: to variables, components, fields and array elements, plain and augmented."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang import operators
from warp._src.lang.annotations import annotated_type, evaluated
from warp._src.lang.expr import place
from warp._src.lang.local_arrays import as_local, is_local
from warp._src.lang.memory import atomic_update, has_atomic
from warp._src.lang.operands import Known, Operand, Poison, Unsettled, is_truth, spelled
from warp._src.lang.place import Place
from warp._src.lang.slices import assign_slice
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.scalars import bool_, is_float, is_int
from warp._src.types.signature import is_array, is_tensor
from warp.errors import CompileError, KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


def assign(context: Context, node: ast.Assign) -> None:
    """Translate `a = b = value`; the right side is evaluated first, once."""
    unpacked = node.targets[0]
    count = len(unpacked.elts) if isinstance(unpacked, (ast.Tuple, ast.List)) else 1
    context.unpack_count = count if isinstance(node.value, ast.Call) else 1
    operand = context.evaluate(node.value)
    context.unpack_count = 1
    for target in node.targets:
        assign_to(context, target, operand, node.value)


def annotated(context: Context, node: ast.AnnAssign) -> None:
    """Translate `x: float = value`; without a value nothing is bound."""
    annotation: Any = node.annotation
    names = context.names.namespace()
    text = ast.unparse(annotation) if not isinstance(annotation, ast.Constant) else annotation.value
    try:
        wanted = annotated_type(evaluated(text, {**_python_types(), **names}, "the variable"), "the variable")
    except CompileError as error:
        raise context.error(type(error), str(error), annotation) from error
    if node.value is not None:
        operand = context.evaluate(node.value)
        value = context.converted(operand, wanted, node.value, f"'{ast.unparse(node.target)}'")
        assign_to(context, node.target, value, node.value)


def _python_types() -> dict[str, Any]:
    return {"float": float, "int": int, "bool": bool}


def assign_to(context: Context, target: ast.expr, operand: Operand, source: ast.expr) -> None:
    """Assign an operand to any target; `source` is what it was written as, for messages."""
    if isinstance(target, ast.Name):
        assign_name(context, target, operand)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(context, target, operand, source)
    elif isinstance(target, (ast.Subscript, ast.Attribute)):
        with context.at(target):
            if isinstance(target, ast.Subscript) and _assigned_slice(context, target, operand, source):
                return
            found = _assignable(context, target)
            if found.indices is not None and not found.is_element:
                found.write(context, found.root, target)  # raises: a row is no element
            value = context.converted(operand, found.type, source, f"what is stored in {ast.unparse(target)}")
            found.write(context, value, target)
    else:
        raise context.unsupported("star-arguments cannot be assigned to", target)


def assign_name(context: Context, target: ast.Name, operand: Operand) -> None:
    """Give a variable a new value; its type stays."""
    name = target.id
    previous = context.scope.names.get(name)
    if previous is not None and not isinstance(previous, Poison):
        operand = _of_same_type(context, target, previous, operand)
    if isinstance(operand, Value) and not operand.name:
        operand.name = name
    context.scope.names[name] = operand


def _of_same_type(context: Context, target: ast.Name, previous: Operand, operand: Operand) -> Operand:
    """Keep to the type that a variable has: a literal adopts it, anything else must have it."""
    if isinstance(previous, Value):
        fitted = context.fitted(operand, previous.type)
        if fitted is not None:
            return fitted
    elif isinstance(previous, Literal):
        if _is_kin(previous, operand):
            if isinstance(previous, Unsettled) and isinstance(operand, Value):
                previous.adoption.type = previous.adoption.type or operand.type
            return operand
    elif not is_truth(previous) or is_truth(operand) or (isinstance(operand, Value) and operand.type is bool_):
        return operand
    raise context.error(
        KernelTypeError,
        f"variable '{target.id}' is {spelled(previous)} and cannot become {spelled(operand)}",
        target,
        "a variable keeps its type; convert the value, or use another name",
    )


def _is_kin(literal: Literal, operand: Operand) -> bool:
    """Tell whether a variable that held an untyped number may take an operand."""
    if isinstance(operand, Literal):
        return operand.kind == literal.kind
    if not isinstance(operand, Value):
        return False
    return is_float(operand.type) if literal.kind == "f" else is_int(operand.type)


def _unpack(context: Context, target: ast.Tuple | ast.List, operand: Operand, source: ast.expr) -> None:
    parts = unpacked(context, operand, target)
    if len(parts) != len(target.elts):
        raise context.error(
            KernelTypeError, f"{len(parts)} values cannot be unpacked to {len(target.elts)} variables", target
        )
    sources = source.elts if isinstance(source, (ast.Tuple, ast.List)) else [source] * len(parts)
    for element, part, origin in zip(target.elts, parts, sources, strict=True):
        assign_to(context, element, part, origin)


def unpacked(context: Context, operand: Operand, node: ast.expr) -> tuple[Operand, ...]:
    """Give the parts of a tuple or vector."""
    if isinstance(operand, tuple):
        return operand
    if isinstance(operand, Value) and isinstance(operand.type, LocalArrayType):
        local = as_local(Place(operand))
        return tuple(local.at(context, [Literal(i)], [node]).read(context) for i in range(operand.type.shape[0]))
    if isinstance(operand, Value) and is_tensor(operand.type):
        return tuple(context.builder.extract(operand, (index,)) for index in range(operand.type.shape[0]))
    hint = "index the array in a loop over range(x.shape[0])" if _is_array_value(operand) else ""
    raise context.error(KernelTypeError, f"{spelled(operand)} cannot be taken apart", node, hint)


def _is_array_value(operand: Operand) -> bool:
    return isinstance(operand, Value) and is_array(operand.type)


def augmented(context: Context, node: ast.AugAssign) -> None:
    """Translate `target op= value`; additions to array elements are atomic."""
    name = operators.BINARY[type(node.op)]
    if isinstance(node.target, ast.Name):
        current = context.evaluate(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        result = operators.binary(context, name, current, context.evaluate(node.value), node)
        assign_name(context, node.target, result)
        return
    if isinstance(node.target, ast.Subscript) and _slice_parts(node.target):
        result = operators.binary(context, name, context.evaluate(node.target), context.evaluate(node.value), node)
        assign_to(context, node.target, result, node.value)
        return
    target = _assignable(context, node.target)
    if name in ("add", "sub") and target.is_element and has_atomic(target.type):
        operand = context.evaluate(node.value)
        value = context.converted(operand, target.type, node.value, f"what is added to {ast.unparse(node.target)}")
        atomic_update(context, name, target, value)
        return
    result = operators.binary(context, name, target.read(context), context.evaluate(node.value), node)
    if target.name is not None and target.indices is None:
        # The right side may have called a function that changes the same variable.
        target = _assignable(context, node.target)
    what = f"what is stored in {ast.unparse(node.target)}"
    target.write(context, context.converted(result, target.type, node.value, what), node.target)


def _slice_parts(node: ast.Subscript) -> Sequence[ast.expr]:
    """Give the parts of an index that holds a slice; nothing for other indices."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return parts if any(isinstance(part, ast.Slice) for part in parts) else ()


def _assigned_slice(context: Context, target: ast.Subscript, operand: Operand, source: ast.expr) -> bool:
    """Assign to a slice of a vector or matrix; False if the target is something else."""
    parts = _slice_parts(target)
    if not parts:
        return False
    base = place(context, target.value)
    if isinstance(base, Place) and (is_array(base.type) or is_local(base)):
        raise context.unsupported(
            "a slice of an array cannot be assigned to in a kernel", target, "assign its elements in a loop"
        )
    if not (isinstance(base, Place) and is_tensor(base.type)):
        return False
    assign_slice(context, base, parts, operand, target, source)
    return True


def _assignable(context: Context, node: ast.expr) -> Place:
    found = place(context, node)
    if isinstance(found, Place):
        return found
    owner = place(context, node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else found
    if isinstance(owner, tuple):
        raise context.error(
            KernelTypeError,
            "an element of a list or tuple cannot be assigned to in a kernel",
            node,
            "write to an array parameter, or to a vector for a few numbers",
        )
    what = spelled(owner) if isinstance(owner, Known) else "this"
    raise context.error(KernelTypeError, f"{what} is known while compiling and cannot be assigned to", node)


__all__ = ["annotated", "assign", "assign_name", "assign_to", "augmented", "unpacked"]
