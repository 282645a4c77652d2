"""Arrays of memory whose address a kernel knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from warp._src.builtins.declare import Literal
from warp._src.lang.arguments import Arguments, known_dtype
from warp._src.lang.operands import Operand, spelled
from warp._src.types.arrays import MAX_DIMENSIONS, ArrayType
from warp._src.types.scalars import int32, is_int, uint64
from warp._src.types.signature import size_of
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


def array_at_address(name: str) -> Callable[[Context, Arguments], Operand]:
    """Make the handler of `wp.array(ptr=..., shape=..., dtype=...)`, or of one that fixes the number of dimensions."""

    def handler(context: Context, arguments: Arguments) -> Operand:
        bound = arguments.bind(context, name, "ptr", "shape", "dtype")
        missing = [parameter for parameter in ("ptr", "shape", "dtype") if parameter not in bound]
        if missing:
            raise context.error(
                KernelTypeError,
                f"wp.{name}() needs argument '{missing[0]}' in a kernel",
                arguments.node,
                f"write wp.{name}(ptr=address, shape=(n,), dtype=float), or wp.zeros(...) for a local array",
            )
        address = context.value(bound["ptr"], arguments.node)
        if not is_int(address.type) or address.type.size < 8:
            raise context.error(
                KernelTypeError, f"an address must be uint64 or int64, got {spelled(address)}", arguments.node
            )
        extents = _extents(context, bound["shape"], arguments)
        if name[5:] and int(name[5]) != len(extents):
            raise context.error(KernelTypeError, f"wp.{name}() got {len(extents)} extents", arguments.node)
        type = ArrayType(known_dtype(context, bound["dtype"], arguments.node), len(extents))
        builder = context.builder
        padding = [Literal(1)] * (MAX_DIMENSIONS - len(extents))
        given = [builder.cast(uint64, address), Literal(size_of(type.dtype)), Literal(len(extents)), *extents, *padding]
        return context.call("array_at", [*given, builder.zero(type)], arguments.node)

    return handler


def _extents(context: Context, shape: Operand, arguments: Arguments) -> list[Operand]:
    parts = list(shape) if isinstance(shape, tuple) else [shape]
    if not 1 <= len(parts) <= MAX_DIMENSIONS:
        raise context.error(
            KernelTypeError, f"an array has 1 to {MAX_DIMENSIONS} dimensions, got {len(parts)}", arguments.node
        )
    extents: list[Operand] = []
    for part in parts:
        value = context.value(part, arguments.node)
        if not is_int(value.type):
            raise context.error(KernelTypeError, f"an extent must be an integer, got {spelled(part)}", arguments.node)
        extents.append(part if isinstance(part, Literal) else context.builder.cast(int32, value))
    return extents


__all__ = ["array_at_address"]
