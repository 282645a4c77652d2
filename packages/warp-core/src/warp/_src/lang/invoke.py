"""Calls of functions that users wrote."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Function as IrFunction
from warp._src.ir.core import Value
from warp._src.lang.analysis import root_name
from warp._src.lang.annotations import EMPTY, annotated_type, match_all
from warp._src.lang.arguments import Arguments
from warp._src.lang.capture import captured
from warp._src.lang.objects import Function, Overload
from warp._src.lang.operands import Known, Operand, is_truth, spelled
from warp._src.lang.place import Place
from warp._src.types.generics import substitute, unify
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.signature import is_generic, type_name
from warp.errors import CompileError, KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


def invoke(context: Context, function: Function, arguments: Arguments) -> Operand:
    """Choose an overload by the types of the arguments and call it."""
    overload, operands, nodes = _chosen(context, function, arguments)
    if overload.native is not None:
        return _native(context, overload, operands, arguments.node)
    target, values = _built(context, overload, operands, arguments.node)
    results = context.builder.invoke(target, values)
    count = len(results) - len(target.changed)
    positions = [index for index, operand in enumerate(operands) if _is_value(operand)]
    _check_given_once(context, [nodes[positions[changed]] for changed in target.changed], nodes, operands, arguments)
    for result, changed in zip(results[count:], target.changed, strict=True):
        write_back(context, nodes[positions[changed]], result)
    return unpacked_results(results[:count])


def _check_given_once(
    context: Context,
    changed: Sequence[ast.expr | None],
    nodes: Sequence[ast.expr | None],
    operands: Sequence[Operand],
    arguments: Arguments,
) -> None:
    """Refuse a local array that is changed by the function and given to it twice: the two would be one."""
    names = [
        root_name(node)
        for node, operand in zip(nodes, operands, strict=True)
        if node is not None and isinstance(operand, Value) and isinstance(operand.type, LocalArrayType)
    ]
    for node in changed:
        name = None if node is None else root_name(node)
        if name is not None and names.count(name) > 1:
            raise context.error(
                KernelTypeError,
                f"local array '{name}' is given twice to a function that changes it",
                arguments.node,
                "give it once, or copy it first",
            )


def resolved_call(context: Context, function: Function, arguments: Arguments) -> tuple[IrFunction, Sequence[Value]]:
    """Choose an overload by the types of the arguments; give its translation and the values to call it with."""
    overload, operands, _ = _chosen(context, function, arguments)
    if overload.native is not None:
        raise context.error(
            KernelTypeError, f"'{function.key}' is a native function, which this cannot call", arguments.node
        )
    return _built(context, overload, operands, arguments.node)


def _built(
    context: Context, overload: Overload, operands: Sequence[Operand], node: ast.AST
) -> tuple[IrFunction, Sequence[Value]]:
    try:
        return context.hooks.build_overload(context, overload, operands, node)
    except CompileError as error:
        place = context.text.excerpt(context.text.location(node))
        trace = f"\n  called from\n{place}"
        raise type(error)(str(error) if place in str(error) else f"{error}{trace}") from error


def _is_value(operand: Operand) -> bool:
    return isinstance(operand, (Value, Literal)) or is_truth(operand)


def unpacked_results(results: Sequence[Value]) -> Operand:
    """Give what a call evaluates to: nothing, a value or a tuple."""
    if not results:
        return Known(None)
    return results[0] if len(results) == 1 else tuple(results)


def write_back(context: Context, node: ast.expr | None, value: Value) -> None:
    """Give the caller's variable the value that the callee left in its parameter."""
    if isinstance(node, ast.Name) and isinstance(context.scope.names.get(node.id), Literal):
        context.scope.names[node.id] = value
    elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        place = context.hooks.place(context, node)
        if isinstance(place, Place) and place.name is not None and place.indices is None:
            place.write(context, value, node)


def _native(context: Context, overload: Overload, operands: Sequence[Operand], node: ast.Call) -> Operand:
    native = overload.native
    types = match_all(overload.parameters, operands)
    values = [
        context.converted(operand, found, node, f"argument '{parameter.name}' of '{overload.name}'")
        for parameter, operand, found in zip(overload.parameters, operands, types, strict=True)
    ]
    result: Any = None
    if overload.returns not in (EMPTY, None):
        result = _native_result(context, overload, types, node)
    names = tuple(parameter.name for parameter in overload.parameters)
    for parameter, found in zip(overload.parameters, types, strict=True):
        if isinstance(found, LocalArrayType):
            raise context.error(
                KernelTypeError,
                f"argument '{parameter.name}' of native function '{overload.name}' cannot be a local array",
                node,
                "pass its elements, or an array of the launch",
            )
    if native is None:
        return Known(None)
    results = context.builder.native(
        names, values, result, native.snippet, native.adjoint, native.replay, overload.name
    )
    return unpacked_results(results)


def _native_result(context: Context, overload: Overload, types: Sequence[Any], node: ast.AST) -> Any:
    """Give the type of what a snippet returns; a type variable means what it means for the arguments."""
    bindings: dict[Any, Any] = {}
    for parameter, found in zip(overload.parameters, types, strict=True):
        unify(parameter.type, found, bindings)
    declared = annotated_type(overload.returns, f"the result of native function '{overload.name}'")
    result: Any = substitute(declared, bindings)
    if is_generic(result):
        raise context.error(
            KernelTypeError,
            f"the result of native function '{overload.name}' is annotated as {type_name(declared)}, which no argument "
            "settles",
            node,
            "annotate the result with a type, or with the type variable of a parameter",
        )
    return result


# -- overloads -----------------------------------------------------------------------------------------

Bound = tuple[list[Operand], list["ast.expr | None"]]


def _chosen(
    context: Context, function: Function, arguments: Arguments
) -> tuple[Overload, list[Operand], list[ast.expr | None]]:
    """Find the overload that fits; one without generic parameters is preferred."""
    reasons = []
    for overload in sorted(function.overloads, key=lambda overload: overload.is_generic):
        bound = _bound(context, overload, arguments)
        reason = bound if isinstance(bound, str) else _mismatch(overload, bound[0])
        if not reason and not isinstance(bound, str):
            return overload, *bound
        reasons.append(reason)
    if len(reasons) == 1:
        raise context.error(KernelTypeError, f"function '{function.key}': {reasons[0]}", arguments.node)
    given = ", ".join(spelled(operand) for operand in arguments.args)
    known = "\n".join(f"    {overload.signature}" for overload in function.overloads)
    raise context.error(
        KernelTypeError,
        f"no overload of function '{function.key}' takes ({given}); there are:\n{known}",
        arguments.node,
    )


def _bound(context: Context, overload: Overload, arguments: Arguments) -> Bound | str:
    """Match arguments to parameters; a text says why they do not."""
    parameters = overload.parameters
    if len(arguments.args) > len(parameters):
        return f"it takes {len(parameters)} argument{'s' * (len(parameters) != 1)}, got {len(arguments.args)}"
    unknown = set(arguments.keywords) - {parameter.name for parameter in parameters[len(arguments.args) :]}
    if unknown:
        names = [parameter.name for parameter in parameters]
        reason = "is given twice" if min(unknown) in names else f"does not exist; there are {', '.join(names)}"
        return f"argument '{min(unknown)}' {reason}"
    keyword_nodes = {keyword.arg: keyword.value for keyword in arguments.node.keywords}
    operands = list(arguments.args)
    nodes: list[ast.expr | None] = list(arguments.node.args)
    for parameter in parameters[len(operands) :]:
        if parameter.name in arguments.keywords:
            operands.append(arguments.keywords[parameter.name])
        elif parameter.default is not EMPTY:
            operands.append(captured(context, parameter.default, arguments.node))
        else:
            return f"argument '{parameter.name}' is missing"
        nodes.append(keyword_nodes.get(parameter.name))
    return operands, nodes


def _mismatch(overload: Overload, operands: Sequence[Operand]) -> str:
    """Say which argument does not fit its parameter; empty if all do."""
    types = match_all(overload.parameters, operands)
    for parameter, operand, found in zip(overload.parameters, operands, types, strict=True):
        is_object = not _is_value(operand)
        if parameter.is_function:
            if not is_object:
                return f"argument '{parameter.name}' must be a function, got {spelled(operand)}"
        elif is_object:
            if not is_generic(parameter.type):
                return f"argument '{parameter.name}' must be {type_name(parameter.type)}, got {spelled(operand)}"
        elif found is None:
            return f"argument '{parameter.name}' must be {type_name(parameter.type)}, got {spelled(operand)}"
    return ""
