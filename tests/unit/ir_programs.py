"""Hand-built IR that several tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import warp._src.builtins  # noqa: F401 - registers the builtins
from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Location, Region, Value
from warp._src.ir.ops import ReverseLoop

HERE = Location("example.py", 7)

Body = Callable[[Builder, tuple[Value, ...]], Sequence[Value]]


def build(types: Sequence[Any], body: Body, *, is_kernel: bool = False, name: str = "f") -> Function:
    """Make a function whose body is built by `body(builder, parameters) -> results`."""
    params = tuple(Value(type, f"p{index}") for index, type in enumerate(types))
    builder = Builder(Region(params), HERE)
    results = tuple(body(builder, params))
    builder.yield_(results)
    result_types = tuple(result.type for result in results)
    return Function(name, params, result_types, builder.region, HERE, is_kernel=is_kernel)


def kernel(types: Sequence[Any], body: Callable[[Builder, tuple[Value, ...]], object], name: str = "k") -> Function:
    """Make a kernel; `body` returns nothing of interest."""

    def without_results(builder: Builder, params: tuple[Value, ...]) -> Sequence[Value]:
        body(builder, params)
        return ()

    return build(types, without_results, is_kernel=True, name=name)


def call(builder: Builder, name: str, *args: Value) -> Value:
    """Call a builtin with one result."""
    return builder.call(resolve(name, [arg.type for arg in args]), args)[0]


def region(builder: Builder, types: Sequence[Any], body: Body) -> Region:
    """Make a region of its own with arguments of the given types."""
    args = tuple(Value(type, f"a{index}") for index, type in enumerate(types))
    with builder.into(Region(args)) as inner:
        builder.yield_(tuple(body(builder, args)))
    return inner


def reverse_loop(
    builder: Builder,
    trip: Value,
    entry: Sequence[Value],
    inits: Sequence[Value],
    advance: Region,
    reverse: Region,
    site: int | None = None,
    is_saved: bool = False,
) -> tuple[Value, ...]:
    """Append a ReverseLoop and give the final adjoints."""
    results = tuple(Value(value.type) for value in inits)
    builder.append(
        ReverseLoop(
            loc=HERE,
            results=results,
            operands=(trip, *entry, *inits),
            regions=(advance, reverse),
            states=len(entry),
            site=site,
            is_saved=is_saved,
        )
    )
    return results


def with_body_op(function: Function, index: int, **changes: Any) -> Function:
    """Replace attributes of one operation of the body, in place."""
    function.body.ops[index] = replace(function.body.ops[index], **changes)
    return function


__all__ = ["HERE", "build", "call", "kernel", "region", "reverse_loop", "with_body_op"]
