"""Calls of the functions that are written in the language itself, and of those that need a little more than one."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang import library
from warp._src.lang.arguments import Arguments, known_dtype
from warp._src.lang.invoke import invoke, write_back
from warp._src.lang.modules import get_module
from warp._src.lang.objects import Function, Overload
from warp._src.lang.operands import Operand, spelled
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.scalars import is_scalar
from warp._src.types.signature import is_array, is_tensor, type_name
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context

Handler = Callable[["Context", Arguments], Operand]


def _made() -> dict[str, Function]:
    functions = {name: thing for name, thing in vars(library).items() if isinstance(thing, types.FunctionType)}
    scope: dict[str, Any] = dict(vars(library))
    made = {name: Function([Overload(function, scope)], get_module(__name__)) for name, function in functions.items()}
    # Kernels find the functions that these call as they find a user's: among the globals.
    vars(library).update({name: function for name, function in made.items() if name.startswith("_")})
    return made


_FUNCTIONS = _made()


def _calling(name: str) -> Handler:
    """Make the handler that calls a library function, whose arrays have one dimension."""
    function = _FUNCTIONS[name]
    parameters = [parameter.name for parameter in function.overloads[0].parameters]

    def handler(context: Context, arguments: Arguments) -> Operand:
        bound = arguments.bind(context, name, *parameters)
        missing = [parameter for parameter in parameters if parameter not in bound]
        if missing:
            raise context.error(KernelTypeError, f"'{name}' needs argument '{missing[0]}'", arguments.node)
        for parameter, operand in bound.items():
            if parameter[0].isupper() or parameter in ("b", "x"):
                _check_array(context, name, parameter, operand, arguments)
        return _invoked(context, name, arguments, parameters, *(bound[parameter] for parameter in parameters))

    return handler


def _invoked(
    context: Context, name: str, arguments: Arguments, parameters: Sequence[str], *operands: Operand
) -> Operand:
    """Call a library function with operands for `parameters`, whose names in the call tell which were written."""
    written = dict(zip(parameters, arguments.node.args, strict=False))
    written.update((keyword.arg or "", keyword.value) for keyword in arguments.node.keywords)
    nodes = [written.get(parameter, arguments.node) for parameter in parameters]
    node = ast.copy_location(ast.Call(arguments.node.func, nodes, []), arguments.node)
    return invoke(context, _FUNCTIONS[name], Arguments(node, operands, {}))


def _is_array_like(type: Any) -> bool:
    return is_array(type) or isinstance(type, LocalArrayType)


def _length(context: Context, array: Value, arguments: Arguments) -> Operand:
    type: Any = array.type
    if isinstance(type, LocalArrayType):
        return Literal(type.shape[0])
    return context.call("array_shape", [array, Literal(0)], arguments.node)


def _check_array(context: Context, name: str, parameter: str, operand: Operand, arguments: Arguments) -> Value:
    if isinstance(operand, Value) and _is_array_like(operand.type) and operand.type.ndim == 1:
        return operand
    raise context.error(
        KernelTypeError,
        f"argument '{parameter}' of '{name}' must be an array of one dimension, got {spelled(operand)}",
        arguments.node,
    )


def _lower_bound(context: Context, arguments: Arguments) -> Operand:
    """Call with the whole array, or with bounds."""
    count = len(arguments.args) + len(arguments.keywords)
    names = ("arr", "value") if count < 4 else ("arr", "arr_begin", "arr_end", "value")
    bound = arguments.bind(context, "lower_bound", *names)
    if len(bound) != len(names):
        raise context.error(
            KernelTypeError, "lower_bound() takes an array, bounds or none, and a value", arguments.node
        )
    array = _check_array(context, "lower_bound", "arr", bound["arr"], arguments)
    element: Any = array.type.dtype
    if not is_scalar(element):
        raise context.error(
            KernelTypeError, f"lower_bound() searches scalars, not elements of {type_name(element)}", arguments.node
        )
    value = context.converted(bound["value"], element, arguments.node, "the value of 'lower_bound'")
    begin = bound.get("arr_begin", Literal(0))
    end = bound["arr_end"] if "arr_end" in bound else _length(context, array, arguments)
    names = ("arr", "arr_begin", "arr_end", "value") if "arr_begin" in bound else ("arr", "value", "", "")
    return _invoked(context, "lower_bound", arguments, names, array, begin, end, value)


def _sample_cdf(context: Context, arguments: Arguments) -> Operand:
    """Draw a number and search for it."""
    bound = arguments.bind(context, "sample_cdf", "state", "cdf")
    if len(bound) != 2:
        raise context.error(KernelTypeError, "sample_cdf() takes a state and an array", arguments.node)
    cdf = _check_array(context, "sample_cdf", "cdf", bound["cdf"], arguments)
    _, (drawn, state) = context.call_overload("randf", [bound["state"]], arguments.node)
    keywords = {keyword.arg: keyword.value for keyword in arguments.node.keywords}
    write_back(context, keywords.get("state") or arguments.node.args[0], state)
    number = context.builder.cast(cdf.type.dtype, drawn)
    end = _length(context, cdf, arguments)
    return _invoked(context, "lower_bound", arguments, ("", "", "", ""), cdf, Literal(0), end, number)


def _cast(context: Context, arguments: Arguments) -> Operand:
    """Reinterpret the bits of a scalar or tensor as another type of the same size."""
    bound = arguments.bind(context, "cast", "a", "dtype")
    if len(bound) != 2:
        raise context.error(KernelTypeError, "cast() takes a value and a type", arguments.node)
    value = context.value(bound["a"], arguments.node)
    target = known_dtype(context, bound["dtype"], arguments.node)
    if not all(is_scalar(type) or is_tensor(type) for type in (value.type, target)) or value.type.size != target.size:
        raise context.error(
            KernelTypeError,
            f"cast() needs scalars or tensors of equal size, got {type_name(value.type)} and {type_name(target)}",
            arguments.node,
            f"to convert a number write {type_name(target)}(...)",
        )
    return context.call("bit_cast", [value, context.builder.zero(target)], arguments.node)


LIBRARY: dict[str, Handler] = {
    **{name: _calling(name) for name in library.__all__},
    "lower_bound": _lower_bound,
    "sample_cdf": _sample_cdf,
    "cast": _cast,
}
"""Handlers that take evaluated arguments, by public name."""

__all__ = ["LIBRARY"]
