"""`wp.grad(f)` in kernels: a callable that gives the derivatives of a function by its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function as IrFunction
from warp._src.ir.core import Region, Value
from warp._src.lang.arguments import Arguments
from warp._src.lang.invoke import resolved_call, unpacked_results
from warp._src.lang.objects import Function
from warp._src.lang.operands import Known, Operand
from warp._src.types.scalars import is_float
from warp._src.types.signature import is_array, type_name
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


@dataclass(frozen=True)
class GradientOf:
    """What `wp.grad(f)` evaluates to: `function` is a `wp.func` or the name of a builtin."""

    function: Any


def gradient_of(context: Context, arguments: Arguments) -> Operand:
    """Evaluate `wp.grad(f)`."""
    target = arguments.args[0] if len(arguments.args) == 1 and not arguments.keywords else None
    thing = target.object if isinstance(target, Known) else None
    builtin = getattr(thing, "__warp_builtin__", None)
    if isinstance(thing, Function):
        return Known(GradientOf(thing))
    if isinstance(builtin, str):
        return Known(GradientOf(builtin))
    raise context.error(KernelTypeError, "wp.grad() takes one function: a @wp.func or a builtin", arguments.node)


def call_gradient(context: Context, gradient: GradientOf, arguments: Arguments) -> Operand:
    """Evaluate `wp.grad(f)(...)`: one derivative per argument that is no array."""
    if isinstance(gradient.function, Function):
        target, values = resolved_call(context, gradient.function, arguments)
    else:
        target, values = _wrapped_builtin(context, gradient.function, arguments)
    if len(target.result_types) != 1 or target.changed or not is_float(target.result_types[0]):
        results = ", ".join(type_name(t) for t in target.result_types) or "nothing"
        raise context.error(
            KernelTypeError,
            f"wp.grad() needs a function that returns one float and changes nothing; '{target.name}' returns {results}",
            arguments.node,
        )
    if all(is_array(value.type) for value in values):
        raise context.error(KernelTypeError, f"'{target.name}' has no argument to differentiate by", arguments.node)
    return unpacked_results(context.builder.invoke_gradient(target, values))


def _wrapped_builtin(context: Context, name: str, arguments: Arguments) -> tuple[IrFunction, Sequence[Value]]:
    """Make a function that only calls a builtin."""
    trial = Region()
    with context.builder.into(trial):
        overload, _ = context.call_overload(name, arguments.args, arguments.node)
    values = [
        context.converted(arg, type, arguments.node, f"an argument of '{name}'")
        for arg, type in zip(arguments.args, overload.param_types, strict=True)
    ]
    params = tuple(Value(type) for type in overload.param_types)
    builder = Builder(Region(params), context.builder.loc)
    builder.yield_(builder.call(overload, params))
    return IrFunction(name, params, overload.result_types, builder.region, context.builder.loc), values


__all__ = ["GradientOf", "call_gradient", "gradient_of"]
