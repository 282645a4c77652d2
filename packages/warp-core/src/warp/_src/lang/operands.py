"""What an expression of a kernel evaluates to while it is compiled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Type, Value
from warp._src.types.scalars import bool_
from warp._src.types.signature import type_name


@dataclass(frozen=True, eq=False)
class Known:
    """A Python object that only exists while compiling: a function, type, module, string or truth value."""

    object: Any


@dataclass(eq=False)
class Adoption:
    """The type that a number of unknown value took when it first met a typed operand."""

    type: Type | None = None


@dataclass(frozen=True)
class Unsettled(Literal):
    """An untyped number that changes in a loop, while a trial finds out which type it should have."""

    adoption: Adoption = field(default_factory=Adoption)


@dataclass(frozen=True, eq=False)
class Poison:
    """A variable that cannot be read here; `reason` completes the sentence "'x' ..."."""

    reason: str


Operand: TypeAlias = Value | Literal | Known | tuple["Operand", ...]


def is_same(left: Operand | Poison, right: Operand | Poison) -> bool:
    """Tell whether two operands are the same value or the same compile-time object."""
    if left is right:
        return True
    if isinstance(left, Literal) and isinstance(right, Literal):
        settled = not (isinstance(left, Unsettled) or isinstance(right, Unsettled))
        return settled and repr(left.value) == repr(right.value)
    if isinstance(left, Known) and isinstance(right, Known):
        return left.object is right.object or (isinstance(left.object, str) and left.object == right.object)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    return False


def is_truth(operand: Operand | Poison) -> bool:
    """Tell whether an operand is True or False, known while compiling."""
    return isinstance(operand, Known) and isinstance(operand.object, bool)


def type_of(operand: Operand) -> Type | None:
    """Give the type of a value, the default type of a literal, or None for what is not a value."""
    if isinstance(operand, Value):
        return operand.type
    if isinstance(operand, Literal):
        return operand.default
    return bool_ if is_truth(operand) else None


def spelled(operand: Operand) -> str:
    """Name the type of an operand for messages."""
    if isinstance(operand, tuple):
        return f"({', '.join(spelled(part) for part in operand)})"
    if isinstance(operand, Unsettled):
        return type_name(operand.default)
    if isinstance(operand, Literal):
        return f"{type_name(operand.default)} literal {operand.value}"
    if isinstance(operand, Value):
        return type_name(operand.type)
    if isinstance(operand.object, bool):
        return f"bool {operand.object}"
    if operand.object is None:
        return "None"
    kind = "type" if isinstance(operand.object, type) else type(operand.object).__name__
    name = getattr(operand.object, "name", None) or getattr(operand.object, "__name__", None)
    return f"{kind} '{name}'" if isinstance(name, str) else f"{kind} {operand.object!r:.60}"
