"""What is known while one function is translated, and the conversions that every rule needs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from warp._src.builtins.declare import Literal, resolve
from warp._src.builtins.declare import Overload as BuiltinOverload
from warp._src.ir.builder import Builder
from warp._src.ir.core import Type, Value
from warp._src.lang.analysis import Liveness
from warp._src.lang.names import Names
from warp._src.lang.operands import Known, Operand, Poison, Unsettled, is_truth, spelled
from warp._src.lang.scope import Scope
from warp._src.lang.text import SourceText
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.scalars import bool_, is_float, is_int, is_scalar
from warp._src.types.signature import is_array, is_tensor, type_name
from warp.errors import CompileError, KernelTypeError, UnknownNameError, UnsupportedSyntaxError

if TYPE_CHECKING:
    from warp._src.ir.core import Function
    from warp._src.lang.objects import Overload
    from warp._src.lang.place import Place

_E = TypeVar("_E", bound=CompileError)


@dataclass(frozen=True, eq=False)
class Iteration:
    """One pass through the body of an unrolled loop."""

    node: ast.For
    item: Operand


Step: TypeAlias = "ast.stmt | Iteration"


@dataclass(frozen=True)
class Hooks:
    """The rules that call each other in a circle."""

    evaluate: Callable[[Context, ast.expr], Operand]
    place: Callable[[Context, ast.expr], Place | Operand]
    run: Callable[[Context, Sequence[Step], bool], None]
    build_overload: Callable[[Context, Overload, Sequence[Operand], ast.AST], tuple[Function, list[Value]]]


@dataclass(eq=False)
class Context:
    """The function that is being translated, and where the translation stands."""

    text: SourceText
    names: Names
    hooks: Hooks
    options: dict[str, Any]
    liveness: Liveness
    local_names: frozenset[str]
    is_kernel: bool
    session: Any  # what `hooks.build_overload` keeps between functions
    builder: Builder = field(default_factory=Builder)
    scope: Scope = field(default_factory=Scope)
    # Local arrays among the parameters, which the caller may see changed: they are read when the function returns.
    exit_names: frozenset[str] = frozenset()
    # Names that are read where break, continue and return lead to.
    live_at_exit: frozenset[str] = frozenset()
    loop_depth: int = 0
    # For a custom adjoint: the parameters, with their types, that `wp.adjoint` may be asked for.
    gradient_params: dict[str, Type] | None = None
    # What `return` gives: the annotated types, once known.
    result_types: tuple[Type, ...] | None = None
    result_count: int | None = None
    # How many names the value of the expression at hand is unpacked to.
    unpack_count: int = 1

    # -- errors ----------------------------------------------------------------------------------------

    def error(self, kind: type[_E], message: str, node: ast.AST, hint: str = "") -> _E:
        """Make an error that shows the place of `node`."""
        return self.text.error(kind, message, node, hint)

    def unsupported(self, message: str, node: ast.AST, hint: str = "") -> UnsupportedSyntaxError:
        """Make the error for Python that kernels do not understand."""
        return self.error(UnsupportedSyntaxError, message, node, hint)

    def at(self, node: ast.AST) -> AbstractContextManager[None]:
        """Stamp the place of `node` on the operations built inside."""
        return self.builder.at(self.text.location(node))

    # -- expressions -----------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Operand:
        """Translate an expression."""
        return self.hooks.evaluate(self, node)

    def local(self, node: ast.Name) -> Operand | None:
        """Give the variable of this name, or None if the function has none; UnknownNameError if it is unbound."""
        operand = self.scope.names.get(node.id)
        if operand is None and node.id in self.local_names:
            operand = Poison("is read before it is bound")
        if isinstance(operand, Poison):
            raise self.error(
                UnknownNameError,
                f"variable '{node.id}' may be unbound here: it {operand.reason}"
                if not operand.reason.startswith("may")
                else f"variable '{node.id}' {operand.reason}",
                node,
                f"give '{node.id}' a value before this line on every path",
            )
        return operand

    # -- conversions -----------------------------------------------------------------------------------

    def fitted(self, operand: Operand, type: Type) -> Value | None:
        """Give the operand as a value of `type`, or None: a literal adopts it, a value must have it."""
        if isinstance(operand, Value):
            return operand if operand.type == type else None
        if isinstance(operand, Literal):
            return self._literal(operand, type)
        if is_truth(operand) and type is bool_ and isinstance(operand, Known):
            return self.builder.const(bool_, operand.object)
        return None

    def _literal(self, literal: Literal, type: Type) -> Value | None:
        fits = is_float(type) if literal.kind == "f" else is_int(type) and _in_range(literal.value, type)
        if not fits:
            return None
        if isinstance(literal, Unsettled) and literal.adoption.type is None:
            literal.adoption.type = type
        return self.builder.const(type, literal.value)

    def converted(self, operand: Operand, type: Type, node: ast.AST, what: str) -> Value:
        """Give the operand as a value of `type`; KernelTypeError that says what needs it (`what`)."""
        value = self.fitted(operand, type)
        if value is None:
            is_beyond = isinstance(operand, Literal) and operand.kind == "i" and is_int(type)
            raise self.error(
                KernelTypeError,
                f"{what} must be {type_name(type)}, got {spelled(operand)}{', which is out of range' * is_beyond}",
                node,
                cast_hint(operand, type, ast.unparse(node) if isinstance(node, ast.expr) else "x"),
            )
        return value

    def value(self, operand: Operand, node: ast.AST) -> Value:
        """Give the operand as a value; literals take their default type."""
        if isinstance(operand, Value):
            return operand
        if isinstance(operand, Literal):
            value = self._literal(operand, operand.default)
            if value is None:
                raise self.error(
                    KernelTypeError,
                    f"{operand.value} is out of range for {type_name(operand.default)}",
                    node,
                    f"write wp.int64({operand.value})",
                )
            return value
        if is_truth(operand) and isinstance(operand, Known):
            return self.builder.const(bool_, operand.object)
        raise self.error(KernelTypeError, f"{spelled(operand)} is not a value that a kernel can compute with", node)

    def call(self, name: str, operands: Sequence[Operand], node: ast.AST, attributes: tuple[Any, ...] = ()) -> Operand:
        """Call a builtin; literals adopt the types of their neighbours. Errors show the place of `node`."""
        _, results = self.call_overload(name, operands, node, attributes)
        return results[0] if len(results) == 1 else results

    def call_overload(
        self, name: str, operands: Sequence[Operand], node: ast.AST, attributes: tuple[Any, ...] = ()
    ) -> tuple[BuiltinOverload, tuple[Value, ...]]:
        """Call a builtin as `call` does; gives the overload that was chosen and all results."""
        types = [operand if isinstance(operand, Literal) else self._type(operand, node) for operand in operands]
        try:
            overload = resolve(name, types)
        except CompileError as error:
            message = self._mixing(name, operands) or str(error)
            raise self.error(type(error), message, node, mixing_hint(name, types)) from error
        given = [*operands, *map(Literal, overload.defaults_after(len(operands)))]
        with self.at(node):
            values = [
                self.converted(operand, wanted, node, f"an argument of '{name}'")
                for operand, wanted in zip(given, overload.param_types, strict=True)
            ]
            return overload, self.builder.call(overload, values, attributes)

    def _type(self, operand: Operand, node: ast.AST) -> Type:
        return bool_ if is_truth(operand) else self.value(operand, node).type

    def _mixing(self, name: str, operands: Sequence[Operand]) -> str:
        symbol = SYMBOLS.get(name)
        if symbol is None:
            return ""
        if len(operands) == 1:
            return f"operator '{symbol}' is not defined for {spelled(operands[0])}"
        return f"operator '{symbol}' cannot combine {spelled(operands[0])} and {spelled(operands[1])}"


SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "neg": "-",
    "pos": "+",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shl": "<<",
    "shr": ">>",
    "invert": "~",
}


_BITS = ("bit_and", "bit_or", "bit_xor", "shl", "shr", "invert")


def _in_range(value: float, type: Any) -> bool:
    return bool(type.lowest <= value <= type.highest)


def cast_hint(operand: Operand, type: Type, source: str) -> str:
    """Advise how to get from an operand to a type."""
    if isinstance(operand, Literal) and operand.kind == "i" and is_float(type):
        return f"write {float(operand.value)!r}"
    if isinstance(operand, tuple):
        return f"it is {len(operand)} values; take them apart: a, b = ..." if len(operand) > 1 else ""
    if isinstance(operand, Value) and is_scalar(type):
        if is_scalar(operand.type):
            return f"convert it: {spoken(type)}({source})"
        if is_array(operand.type):
            return f"give an index for each dimension: {source}[{', '.join('ijkl'[: operand.type.ndim])}]"
    return ""


def mixing_hint(name: str, types: Sequence[Any]) -> str:
    """Advise on operands whose kinds or precisions differ."""
    if name in _BITS and any(is_float(t) for t in types if not isinstance(t, Literal)):
        return "bit operations are for integers"
    if name == "mul" and len(types) == 2 and all(is_tensor(t) and t.category == "vector" for t in types):
        return "write wp.cw_mul(a, b) for the products of the components, wp.dot(a, b) for their sum"
    if any(isinstance(t, LocalArrayType) for t in types):
        return "compute with the elements of a local array in a loop, or use a vector: wp.types.vector(3, float)"
    whole = [t for t in types if isinstance(t, Literal) and t.kind == "i"]
    if len(whole) == 1 and len(types) == 2 and any(is_float(t) for t in types if not isinstance(t, Literal)):
        return f"write {float(whole[0].value)!r}"
    scalars = [
        t.default if isinstance(t, Literal) else t.scalar if is_tensor(t) else t for t in types if not is_other(t)
    ]
    if len(set(scalars)) < 2:
        return ""
    wanted = next((scalar for scalar in scalars if is_float(scalar)), scalars[0])
    return f"kernels do not convert numbers silently; cast one of them, for example with {spoken(wanted)}(...)"


def is_other(t: Any) -> bool:
    """Tell whether an argument of a builtin is neither a number nor made of numbers."""
    return not (isinstance(t, Literal) or is_tensor(t) or is_scalar(t))


def spoken(type: Any) -> str:
    """Spell a scalar type as users write it."""
    return {"float32": "float", "int32": "int", "bool": "bool"}.get(type.name, f"wp.{type_name(type)}")
