"""Arithmetic on IR values in which adjoint rules are written: `lambda x, adj: adj * f.cos(x)`.

An expression knows whether it is *adjoint-like* (it is linear in the incoming adjoint) and whether it is
*guarded*. The strong zero of GRADIENTS.md, an adjoint of 0 contributes 0 even where the partial derivative is
inf or nan, is applied by multiplication and division themselves; what remains unguarded at the end is wrapped
once as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Value
from warp._src.types.scalars import bool_, is_int, is_scalar
from warp._src.types.signature import scalar_of


class Expr:
    """An IR value with Python operators; operations append to the builder."""

    __slots__ = ("bounded", "builder", "is_adjoint", "value")

    def __init__(self, builder: Builder, value: Value, is_adjoint: bool = False, bounded: bool = False) -> None:
        self.builder = builder
        self.value = value
        self.is_adjoint = is_adjoint
        self.bounded = bounded or value.type is bool_ or is_int(value.type)

    def __add__(self, other: Expr | float) -> Expr:
        return self._linear("add", self, other)

    def __radd__(self, other: float) -> Expr:
        return self._linear("add", other, self)

    def __sub__(self, other: Expr | float) -> Expr:
        return self._linear("sub", self, other)

    def __rsub__(self, other: float) -> Expr:
        return self._linear("sub", other, self)

    def __neg__(self) -> Expr:
        return apply("neg", self)._as(self.is_adjoint, self.bounded)

    def __mul__(self, other: Expr | float) -> Expr:
        return self._product(self, other)

    def __rmul__(self, other: float) -> Expr:
        return self._product(self, other)

    def __truediv__(self, other: Expr | float) -> Expr:
        if not isinstance(other, Expr):
            return apply("div", self, other)._as(self.is_adjoint, self.bounded)
        if self.is_adjoint:
            return apply("strong_div", self, other)._as(True, True)
        return apply("div", self, other)

    def __rtruediv__(self, other: float) -> Expr:
        return apply("div", other, self)

    def __lt__(self, other: Expr | float) -> Expr:
        return apply("lt", self, other)._as(False, True)

    def __le__(self, other: Expr | float) -> Expr:
        return apply("le", self, other)._as(False, True)

    def __gt__(self, other: Expr | float) -> Expr:
        return apply("gt", self, other)._as(False, True)

    def __ge__(self, other: Expr | float) -> Expr:
        return apply("ge", self, other)._as(False, True)

    def equals(self, other: Expr | float) -> Expr:
        """Compare for equality (`==` keeps its Python meaning of identity)."""
        return apply("eq", self, other)._as(False, True)

    def __getitem__(self, index: int | tuple[int, ...]) -> Expr:
        path = index if isinstance(index, tuple) else (index,)
        return Expr(self.builder, self.builder.extract(self.value, path), self.is_adjoint, self.bounded)

    def zero(self) -> Expr:
        """Zero of this expression's type."""
        return Expr(self.builder, self.builder.zero(self.value.type), self.is_adjoint, True)

    def constant(self, number: float) -> Expr:
        """A scalar constant of this expression's scalar type."""
        return Expr(self.builder, self.builder.const(scalar_of(self.value.type), number), False, True)

    def _as(self, is_adjoint: bool, bounded: bool) -> Expr:
        self.is_adjoint = is_adjoint
        self.bounded = bounded
        return self

    @staticmethod
    def _linear(name: str, left: Expr | float, right: Expr | float) -> Expr:
        result = apply(name, left, right)
        parts = [part for part in (left, right) if isinstance(part, Expr)]
        return result._as(any(p.is_adjoint for p in parts), all(p.bounded for p in parts))

    @staticmethod
    def _product(left: Expr, right: Expr | float) -> Expr:
        if not isinstance(right, Expr):
            return apply("mul", left, right)._as(left.is_adjoint, left.bounded)
        if left.is_adjoint == right.is_adjoint or (left.bounded and right.bounded):
            return apply("mul", left, right)._as(left.is_adjoint or right.is_adjoint, left.bounded and right.bounded)
        if left.is_adjoint:
            return apply("strong_mul", left, right)._as(True, True)
        return apply("strong_mul", right, left)._as(True, True)


def apply(name: str, *args: Expr | float) -> Expr:
    """Call a builtin on expressions and numbers; a number takes the scalar type that the overload asks for."""
    builder = next(arg.builder for arg in args if isinstance(arg, Expr))
    numeric = [arg for arg in args if isinstance(arg, Expr) and _is_numeric(arg)]
    scalar = scalar_of(numeric[-1].value.type) if numeric else bool_
    values = [arg.value if isinstance(arg, Expr) else builder.const(scalar, arg) for arg in args]
    overload = resolve(name, [value.type for value in values])
    (result,) = builder.call(overload, values)
    parts = [arg for arg in args if isinstance(arg, Expr)]
    is_adjoint = any(part.is_adjoint for part in parts)
    is_bounded = overload.builtin.bounded and all(part.bounded or not is_adjoint for part in parts)
    return Expr(builder, result, is_adjoint, is_bounded)


def guarded(adjoints: list[Expr], contribution: Expr) -> Expr:
    """Apply the strong zero to a contribution that could still be nan when every incoming adjoint is 0."""
    if contribution.bounded:
        return contribution
    test = apply("is_zero", adjoints[0])
    for adjoint in adjoints[1:]:
        test = apply("logical_and", test, apply("is_zero", adjoint))
    return apply("where", test, contribution.zero(), contribution)


def _is_numeric(arg: Expr) -> bool:
    return arg.value.type is not bool_ and (is_scalar(arg.value.type) or hasattr(arg.value.type, "scalar"))


class _Functions:
    """Attribute access to every builtin for use in rules: `f.cos(x)`."""

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        def function(*args: Expr | float) -> Expr:
            return apply(name, *args)

        return function


f = _Functions()
__all__ = ["Expr", "apply", "f", "guarded"]
