"""Operators: folding of untyped numbers, and calls of the builtins that operators stand for."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang.context import SYMBOLS
from warp._src.lang.operands import Known, Operand, Unsettled, is_truth, spelled
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.scalars import bool_, is_float, is_int, scalar_from
from warp._src.types.signature import is_array, is_tensor
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context

Number = int | float

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.MatMult: "mul",
}
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            return 0
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    if b == 0:
        sign = math.copysign(1.0, a) * math.copysign(1.0, b)
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, sign)
    return a / b


def _floor_divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    quotient = _divide(a, b)
    return float(math.floor(quotient)) if math.isfinite(quotient) else quotient


def _modulo(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a - b * int(_divide(a, b)) if b else 0
    return math.fmod(a, b) if b and math.isfinite(a) else math.nan


def _power(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and b < 0:
        return 0 if abs(a) > 1 else int(_divide(1, a ** (-b % 2 + 2)))
    try:
        result: Number | complex = a**b
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return math.nan if isinstance(result, complex) else result


_FOLD: dict[str, Callable[[Number, Number], Number]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divide,
    "floordiv": _floor_divide,
    "mod": _modulo,
    "pow": _power,
}
_FOLD_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}
_FOLD_COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def binary(context: Context, name: str, left: Operand, right: Operand, node: ast.AST) -> Operand:
    """Apply a binary operator; two untyped numbers give an untyped number."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        return _folded(context, name, left, right, node)
    if name == "add" and isinstance(left, tuple) and isinstance(right, tuple):
        return (*left, *right)
    for side in (left, right):
        if isinstance(side, tuple) or (isinstance(side, Known) and not is_truth(side)):
            raise context.error(
                KernelTypeError, f"operator '{SYMBOLS[name]}' cannot be used with {spelled(side)}", node
            )
    return context.call(name, [left, right], node)


def _folded(context: Context, name: str, left: Literal, right: Literal, node: ast.AST) -> Operand:
    if left.kind != right.kind:
        raise context.error(
            KernelTypeError,
            f"operator '{SYMBOLS[name]}' cannot combine {spelled(left)} and {spelled(right)}",
            node,
            "write both numbers as integers or both with a decimal point",
        )
    unsettled = next((side for side in (left, right) if isinstance(side, Unsettled)), None)
    if unsettled is not None:
        return unsettled
    if name in _FOLD:
        return Literal(_FOLD[name](left.value, right.value))
    if isinstance(left.value, int) and isinstance(right.value, int):
        if name in ("shl", "shr") and not 0 <= right.value < 64:
            raise context.error(KernelTypeError, f"shift by {right.value} is outside 0 to 63", node)
        return Literal(_FOLD_INTEGERS[name](left.value, right.value))
    raise context.error(
        KernelTypeError, f"operator '{SYMBOLS[name]}' is not defined for {spelled(left)} and {spelled(right)}", node
    )


def compare(context: Context, name: str, left: Operand, right: Operand, node: ast.AST) -> Operand:
    """Compare two operands; what is known while compiling is decided then."""
    if isinstance(left, Literal) and isinstance(right, Literal) and left.kind == right.kind:
        if not (isinstance(left, Unsettled) or isinstance(right, Unsettled)):
            return Known(_FOLD_COMPARE[name](left.value, right.value))
        left, right = context.builder.const(left.default, left.value), context.builder.const(right.default, right.value)
    if name in ("eq", "ne") and isinstance(left, Known) and isinstance(right, Known):
        one, other = (scalar_from(side.object) or side.object for side in (left, right))
        return Known((one == other) == (name == "eq"))
    return context.call(name, [left, right], node)


def unary(context: Context, name: str, operand: Operand, node: ast.AST) -> Operand:
    """Apply `-`, `+` or `~`."""
    if isinstance(operand, Unsettled):
        return operand
    if isinstance(operand, Literal):
        if name == "invert":
            if isinstance(operand.value, int):
                return Literal(~operand.value)
        else:
            return Literal(-operand.value if name == "neg" else operand.value)
    if isinstance(operand, tuple) or (isinstance(operand, Known) and not is_truth(operand)):
        raise context.error(KernelTypeError, f"operator '{SYMBOLS[name]}' cannot be used with {spelled(operand)}", node)
    return context.call(name, [operand], node)


def truth(context: Context, operand: Operand, node: ast.AST) -> Value | bool:
    """Give the truth of a condition: a bool if it is known while compiling, else a bool value."""
    if isinstance(operand, Unsettled):
        operand = context.value(operand, node)
    if isinstance(operand, Literal):
        return bool(operand.value)
    if isinstance(operand, tuple):
        return len(operand) > 0
    if isinstance(operand, Known):
        if operand.object is None or isinstance(operand.object, (bool, str)):
            return bool(operand.object)
        raise context.error(KernelTypeError, f"{spelled(operand)} is no condition", node)
    if operand.type is bool_:
        return operand
    if is_int(operand.type) or is_float(operand.type):
        result = context.call("ne", [operand, Literal(0 if is_int(operand.type) else 0.0)], node)
        return context.value(result, node)
    if isinstance(operand.type, LocalArrayType):
        return True
    if is_array(operand.type):  # whether it is not null
        extent = context.call("array_shape", [operand, Literal(0)], node)
        return context.value(context.call("ne", [extent, Literal(0)], node), node)
    hint = "test one component, or wp.length(...)" if is_tensor(operand.type) else "test one of its fields"
    raise context.error(KernelTypeError, f"{spelled(operand)} is no condition", node, hint)
