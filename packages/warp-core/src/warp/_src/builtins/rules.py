"""Pieces that adjoint rules share."""

from __future__ import annotations

from warp._src.builtins.declare import NonDifferentiable
from warp._src.builtins.expression import Expr, f
from warp._src.ir.core import Type

PIECEWISE_CONSTANT = NonDifferentiable("piecewise constant: the derivative is 0 wherever it exists")
INTEGER = NonDifferentiable("defined on integers and bools only")
BOOLEAN = NonDifferentiable("the result is a bool")
INTERNAL = NonDifferentiable("appears only in adjoint code, which is not differentiated again")


def strong(adj: Expr, partial: Expr) -> Expr:
    """Multiply componentwise; where the adjoint is 0 the product is 0, whatever the partial derivative."""
    product = f.strong_mul(adj, partial)
    return Expr(product.builder, product.value, True, True)


def strong_dot(adj: Expr, partial: Expr) -> Expr:
    """Sum the componentwise strong products of two tensors."""
    product = f.strong_dot(adj, partial)
    return Expr(product.builder, product.value, True, True)


def construct(type: Type, *parts: Expr) -> Expr:
    """Make a tensor from its scalars."""
    builder = parts[0].builder
    value = builder.construct(type, [part.value for part in parts])
    return Expr(builder, value, any(p.is_adjoint for p in parts), all(p.bounded for p in parts))


def placed(whole: Expr, adj: Expr, index: Expr) -> Expr:
    """Give a vector of the type of `whole` that is 0 but for `adj` at a computed index."""
    builder = adj.builder
    value = builder.insert(whole.zero().value, adj.value, (None,), [index.value])
    return Expr(builder, value, True, adj.bounded)


def first_if(condition: Expr, adj: Expr) -> Expr:
    """Pass an adjoint on where the condition holds."""
    return f.where(condition, adj, adj.zero())


def first_unless(condition: Expr, adj: Expr) -> Expr:
    """Pass an adjoint on where the condition does not hold."""
    return f.where(condition, adj.zero(), adj)


def normalized_adjoint(length: Expr, ret: Expr, adj: Expr) -> Expr:
    """Adjoint of x -> ret = x / length(x); 0 at x = 0."""
    tangential = adj - ret * f.dot(ret, adj)
    return f.where(length > 0.0, tangential / length, adj.zero())


__all__ = [
    "BOOLEAN",
    "INTEGER",
    "INTERNAL",
    "PIECEWISE_CONSTANT",
    "construct",
    "first_if",
    "first_unless",
    "normalized_adjoint",
    "placed",
    "strong",
    "strong_dot",
]
