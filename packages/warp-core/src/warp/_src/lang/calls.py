"""Calls: what is called decides which rule applies."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from typing import Any

from warp._src.builtins.declare import REGISTRY, Literal
from warp._src.lang import operators
from warp._src.lang.arguments import Arguments
from warp._src.lang.construct import constructed
from warp._src.lang.context import Context
from warp._src.lang.gradients import GradientOf, call_gradient
from warp._src.lang.intrinsics import HANDLERS, RAW_HANDLERS
from warp._src.lang.invoke import invoke, unpacked_results, write_back
from warp._src.lang.objects import Function, Kernel
from warp._src.lang.operands import Known, Operand, Unsettled, spelled
from warp._src.types.scalars import scalar_from
from warp._src.types.signature import is_tensor
from warp._src.types.structs import StructType
from warp._src.types.tensors import matrix, quaternion, transformation, vector
from warp.errors import KernelTypeError, UnknownNameError, UnsupportedSyntaxError

# Python's own functions that mean something in kernels.
_PYTHON = {
    abs: "abs",
    min: "min",
    max: "max",
    pow: "pow",
    round: "round",
    print: "print",
    len: "len",
    type: "type",
    isinstance: "isinstance",
}
# Host functions that make a local array when a kernel calls them.
LOCAL_ARRAYS = ("zeros", "ones", "full", "empty")
# Classes that make an array of given memory.
ARRAYS_AT_ADDRESSES = ("array", "array1d", "array2d", "array3d", "array4d")
_TYPE_FACTORIES = (vector, matrix, quaternion, transformation)


def call(context: Context, node: ast.Call) -> Operand:
    """Translate a call."""
    unpack_count, context.unpack_count = context.unpack_count, 1
    target = context.evaluate(node.func)
    if not isinstance(target, Known):
        raise context.error(KernelTypeError, f"{spelled(target)} cannot be called", node)
    thing = target.object
    raw = RAW_HANDLERS.get(getattr(thing, "__warp_intrinsic__", ""))
    if raw is not None:
        return raw(context, node)
    arguments = _arguments(context, node, unpack_count)
    if isinstance(thing, Function):
        return invoke(context, thing, arguments)
    if isinstance(thing, GradientOf):
        return call_gradient(context, thing, arguments)
    if any(thing is factory for factory in _TYPE_FACTORIES):
        return _made_type(context, thing, arguments)
    owner = getattr(thing, "__self__", None)
    if is_tensor(owner) and getattr(thing, "__name__", "") in ("from_rows", "from_cols"):
        return _stacked(context, owner, thing.__name__, arguments)
    name = _builtin_name(thing)
    if name is not None:
        return _builtin(context, name, arguments)
    constructor: Any = thing if isinstance(thing, StructType) or is_tensor(thing) else scalar_from(thing)
    if constructor is not None:
        return constructed(context, constructor, arguments.args, arguments.keywords, node)
    raise _refused(context, thing, target, node)


def _stacked(context: Context, owner: Any, name: str, arguments: Arguments) -> Operand:
    """Make a matrix of a named type from rows or columns: `wp.mat22.from_rows(a, b)`."""
    made = HANDLERS[f"matrix_{name}"](context, arguments)
    return context.converted(made, owner, arguments.node, f"what {owner.name}.{name}() makes")


def _arguments(context: Context, node: ast.Call, unpack_count: int) -> Arguments:
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            raise context.unsupported("star-arguments cannot be used in kernels", argument)
    keywords = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise context.unsupported("star-arguments cannot be used in kernels", keyword)
        keywords[keyword.arg] = context.evaluate(keyword.value)
    return Arguments(node, tuple(context.evaluate(argument) for argument in node.args), keywords, unpack_count)


def _builtin_name(thing: Any) -> str | None:
    for attribute in ("__warp_intrinsic__", "__warp_builtin__"):
        name = getattr(thing, attribute, None)
        if isinstance(name, str):
            return name
    if isinstance(thing, types.FunctionType) and thing.__module__.startswith("warp._src.array"):
        return thing.__name__ if thing.__name__ in LOCAL_ARRAYS else None
    if isinstance(thing, type) and thing.__module__.startswith("warp._src.array"):
        return thing.__name__ if thing.__name__ in ARRAYS_AT_ADDRESSES else None
    try:
        return _PYTHON.get(thing)
    except TypeError:
        return None


def _builtin(context: Context, name: str, arguments: Arguments) -> Operand:
    handler = HANDLERS.get(name)
    if handler is not None:
        return handler(context, arguments)
    args = _by_position(context, name, arguments) if arguments.keywords else arguments.args
    if name in ("min", "max", "abs") and all(isinstance(arg, Literal) for arg in args):
        unsettled = next((arg for arg in args if isinstance(arg, Unsettled)), None)
        return unsettled or Literal(_FOLDED[name](*(arg.value for arg in args if isinstance(arg, Literal))))
    if name in ("min", "max") and len(args) > 2:
        result = args[0]
        for arg in args[1:]:
            result = context.call(name, [result, arg], arguments.node)
        return result
    if name in ("mod", "pow"):
        return (
            operators.binary(context, name, args[0], args[1], arguments.node)
            if len(args) == 2
            else context.call(name, args, arguments.node)
        )
    if any(record.updates for record in REGISTRY.get(name, ())):
        return _updating(context, name, args, arguments)
    return context.call(name, args, arguments.node)


def _updating(context: Context, name: str, args: Sequence[Operand], arguments: Arguments) -> Operand:
    """Call a builtin that gives variables new values, and assign these."""
    overload, results = context.call_overload(name, args, arguments.node)
    record = overload.builtin
    nodes = dict(zip(record.parameters, arguments.node.args, strict=False))
    nodes.update((keyword.arg, keyword.value) for keyword in arguments.node.keywords if keyword.arg)
    count = len(record.returned)
    for parameter, value in zip(record.updates, results[count:], strict=True):
        write_back(context, nodes.get(parameter), value)
    return unpacked_results(results[:count])


_FOLDED: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


def _by_position(context: Context, name: str, arguments: Arguments) -> Sequence[Operand]:
    """Order keyword arguments as the first overload of a builtin that has all the names does."""
    count = len(arguments.args)
    for record in REGISTRY.get(name, ()):
        rest = list(record.parameters)[count:]
        if set(rest) - set(record.defaults) <= set(arguments.keywords) <= set(rest):
            defaults = {name: Literal(number) for name, number in record.defaults.items()}
            return (*arguments.args, *({**defaults, **arguments.keywords}[parameter] for parameter in rest))
    known = "\n".join(f"    {record.signature}" for record in REGISTRY.get(name, ()))
    raise context.error(
        KernelTypeError,
        f"'{name}' has no overload with the arguments {', '.join(arguments.keywords)}; there are:\n{known}",
        arguments.node,
    )


def _made_type(context: Context, factory: Any, arguments: Arguments) -> Operand:
    """Evaluate `wp.types.vector(length=3, dtype=float)` and the like."""
    given = [_compile_time(context, arg, arguments.node) for arg in arguments.args]
    keywords = {name: _compile_time(context, arg, arguments.node) for name, arg in arguments.keywords.items()}
    try:
        return Known(factory(*given, **keywords))
    except (TypeError, ValueError) as error:
        raise context.error(KernelTypeError, str(error), arguments.node) from error


def _compile_time(context: Context, operand: Operand, node: ast.AST) -> Any:
    if isinstance(operand, Literal):
        return operand.value
    if isinstance(operand, Known):
        return operand.object
    if isinstance(operand, tuple):
        return tuple(_compile_time(context, part, node) for part in operand)
    raise context.error(KernelTypeError, "a type can only be made from what is known while compiling", node)


def _refused(context: Context, thing: Any, target: Known, node: ast.Call) -> Exception:
    name = ast.unparse(node.func)
    if isinstance(thing, Kernel):
        return context.error(
            UnsupportedSyntaxError, f"kernel '{thing.key}' cannot be called from a kernel", node, "make it a @wp.func"
        )
    if thing is range:
        return context.unsupported("range() can only be used in a for statement", node)
    if getattr(thing, "__module__", "") in ("math", "numpy") or isinstance(thing, types.BuiltinFunctionType):
        same = getattr(thing, "__name__", "")
        hint = f"use wp.{same}" if same in REGISTRY else ""
        return context.error(UnknownNameError, f"'{name}' cannot be called in a kernel", node, hint)
    if isinstance(thing, types.FunctionType):
        return context.error(
            UnknownNameError, f"'{name}' is a Python function, not one for kernels", node, "decorate it with @wp.func"
        )
    return context.error(UnknownNameError, f"{spelled(target)} cannot be called in a kernel", node)
