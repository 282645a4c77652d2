"""The arguments of a call of a function that the front end itself knows."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.lang.operands import Known, Operand, spelled
from warp._src.types.scalars import float32
from warp._src.types.signature import canonical
from warp.errors import CompileError, KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


@dataclass(frozen=True)
class Arguments:
    """Evaluated arguments; `unpack_count` is the number of names that the result is assigned to."""

    node: ast.Call
    args: tuple[Operand, ...]
    keywords: Mapping[str, Operand]
    unpack_count: int = 1

    def bind(self, context: Context, name: str, *parameters: str) -> dict[str, Operand]:
        """Match arguments to parameter names, all of them optional; KernelTypeError for others."""
        if len(self.args) > len(parameters):
            raise context.error(KernelTypeError, f"'{name}' takes {len(parameters)} arguments at most", self.node)
        bound = dict(zip(parameters, self.args, strict=False))
        for keyword, operand in self.keywords.items():
            if keyword in bound or keyword not in parameters:
                raise context.error(KernelTypeError, f"'{name}' cannot take argument '{keyword}'", self.node)
            bound[keyword] = operand
        return bound


def known_int(context: Context, operand: Operand | None, what: str, node: ast.AST) -> int:
    """Give an integer that is known while compiling."""
    if isinstance(operand, Literal) and isinstance(operand.value, int):
        return operand.value
    given = "nothing" if operand is None else spelled(operand)
    raise context.error(KernelTypeError, f"{what} must be an integer known while compiling, got {given}", node)


def known_shape(context: Context, operand: Operand | None, node: ast.AST) -> tuple[int, ...]:
    """Give a shape that is known while compiling; a single integer is one dimension."""
    parts = operand if isinstance(operand, tuple) else (operand,)
    return tuple(known_int(context, part, "a shape", node) for part in parts)


def known_dtype(context: Context, operand: Operand | None, node: ast.AST) -> Any:
    """Give a type that is known while compiling, float32 if none was given."""
    if operand is None:
        return float32
    if isinstance(operand, Known):
        try:
            return canonical(operand.object)
        except CompileError as error:
            raise context.error(KernelTypeError, str(error), node) from error
    raise context.error(KernelTypeError, f"dtype must be a type, got {spelled(operand)}", node)
