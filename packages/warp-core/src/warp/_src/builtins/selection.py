"""Choosing between values: minima, maxima, clamping and where."""

from __future__ import annotations

import typing

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import B, N, S, T, Vec
from warp._src.builtins.reference import Array, Number, choose, componentwise, scalars
from warp._src.builtins.rules import INTEGER, first_if, first_unless, placed
from warp._src.types.scalars import uint32

GROUP = "Scalar math"
VECTORS = "Vector math"


def minimum(a: Number, b: Number) -> Number:
    return a if a < b else b


def maximum(a: Number, b: Number) -> Number:
    return a if a > b else b


def limited(x: Number, low: Number, high: Number) -> Number:
    """Clamp: first from below, then from above."""
    raised = low if x < low else x
    return high if raised > high else raised


def first_best(better: typing.Callable[[Number, Number], bool]) -> typing.Callable[[Array], int]:
    """Make the search for the first component that no other is better than."""

    def search(vector: Array) -> int:
        components = scalars(vector)
        best = 0
        for index, component in enumerate(components):
            if better(component, components[best]):
                best = index
        return best

    return search


lowest = first_best(lambda a, b: bool(a < b))
highest = first_best(lambda a, b: bool(a > b))

_APART = Sampling(condition=lambda a, b: bool(np.all(np.abs(a - b) > 0.05)))
_DISTINCT = Sampling(condition=lambda v: bool(np.min(np.diff(np.sort(v)), initial=1.0) > 0.05))
_CLAMP_SAMPLES = Sampling(
    ranges={"low": (-1.0, -0.2), "high": (0.2, 1.0)},
    condition=lambda x, low, high: abs(x - low) > 0.05 and abs(x - high) > 0.05,
)


def _clamp_rules() -> dict[str, typing.Callable[..., Expr]]:
    def by_x(x: Expr, low: Expr, high: Expr, adj: Expr) -> Expr:
        return first_unless(f.logical_or(x < low, x > high), adj)

    def by_low(x: Expr, low: Expr, high: Expr, adj: Expr) -> Expr:
        return first_if(f.logical_and(x < low, low <= high), adj)

    def by_high(x: Expr, low: Expr, high: Expr, adj: Expr) -> Expr:
        return first_if(f.where(x < low, low, x) > high, adj)

    return {"x": by_x, "low": by_low, "high": by_high}


@builtin(
    "min",
    cpp="wp::min({a}, {b})",
    adjoint={
        "a": lambda a, b, adj: first_if(a < b, adj),
        "b": lambda a, b, adj: first_unless(a < b, adj),
    },
    reference=minimum,
    group=GROUP,
    sampling=_APART,
)
def min_scalars(a: S, b: S) -> S:
    """Give `a` if a < b, else `b`: the second at a tie, and whenever one is nan.

    Example: `wp.min(0.5, 0.25)` is 0.25.
    """


@builtin(
    "max",
    cpp="wp::max({a}, {b})",
    adjoint={
        "a": lambda a, b, adj: first_if(a > b, adj),
        "b": lambda a, b, adj: first_unless(a > b, adj),
    },
    reference=maximum,
    group=GROUP,
    sampling=_APART,
)
def max_scalars(a: S, b: S) -> S:
    """Give `a` if a > b, else `b`: the second at a tie, and whenever one is nan.

    Example: `wp.max(0.5, 0.25)` is 0.5.
    """


@builtin(
    "min",
    cpp="wp::tensor_min({a}, {b})",
    adjoint={
        "a": lambda a, b, adj: f.select_lt(a, b, adj, adj.zero()),
        "b": lambda a, b, adj: f.select_lt(a, b, adj.zero(), adj),
    },
    reference=componentwise(minimum),
    group=VECTORS,
    sampling=_APART,
)
def min_vectors(a: Vec[N, S], b: Vec[N, S]) -> Vec[N, S]:
    """Give the lesser of each pair of components.

    Example: `wp.min(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5))` is [0, 1, 0.5].
    """


@builtin(
    "max",
    cpp="wp::tensor_max({a}, {b})",
    adjoint={
        "a": lambda a, b, adj: f.select_lt(b, a, adj, adj.zero()),
        "b": lambda a, b, adj: f.select_lt(b, a, adj.zero(), adj),
    },
    reference=componentwise(maximum),
    group=VECTORS,
    sampling=_APART,
)
def max_vectors(a: Vec[N, S], b: Vec[N, S]) -> Vec[N, S]:
    """Give the greater of each pair of components.

    Example: `wp.max(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5))` is [1, 2, 3].
    """


@builtin(
    "min",
    cpp="{a}.c[wp::argmin({a})]",
    adjoint={"a": lambda a, adj: placed(a, adj, f.argmin(a))},
    reference=lambda a: a[lowest(a)],
    group=VECTORS,
    sampling=_DISTINCT,
)
def min_of_vector(a: Vec[N, S]) -> S:
    """Give the least component.

    Example: `wp.min(wp.vec3(2.0, 1.0, 3.0))` is 1.
    """


@builtin(
    "max",
    cpp="{a}.c[wp::argmax({a})]",
    adjoint={"a": lambda a, adj: placed(a, adj, f.argmax(a))},
    reference=lambda a: a[highest(a)],
    group=VECTORS,
    sampling=_DISTINCT,
)
def max_of_vector(a: Vec[N, S]) -> S:
    """Give the greatest component.

    Example: `wp.max(wp.vec3(2.0, 1.0, 3.0))` is 3.
    """


@builtin(cpp="wp::argmin({a})", adjoint=INTEGER, reference=lambda a: np.uint32(lowest(a)), group=VECTORS)
def argmin(a: Vec[N, S]) -> uint32:
    """Index of the least component, of the first at a tie.

    Example: `wp.argmin(wp.vec3(2.0, 1.0, 3.0))` is 1.
    """


@builtin(cpp="wp::argmax({a})", adjoint=INTEGER, reference=lambda a: np.uint32(highest(a)), group=VECTORS)
def argmax(a: Vec[N, S]) -> uint32:
    """Index of the greatest component, of the first at a tie.

    Example: `wp.argmax(wp.vec3(2.0, 1.0, 3.0))` is 2.
    """


@builtin(
    cpp="wp::clamp({x}, {low}, {high})",
    adjoint=_clamp_rules(),
    reference=limited,
    group=GROUP,
    sampling=_CLAMP_SAMPLES,
)
def clamp(x: S, low: S, high: S) -> S:
    """Limit `x` from below, then from above; nan stays nan. The derivative at a bound is 1.

    Example: `wp.clamp(1.5, 0.0, 1.0)` is 1.
    """


@builtin(
    cpp="({cond} ? {value_if_true} : {value_if_false})",
    adjoint={
        "value_if_true": lambda cond, adj: first_if(cond, adj),
        "value_if_false": lambda cond, adj: first_unless(cond, adj),
    },
    reference=choose,
    group=GROUP,
    bounded=True,
)
def where(cond: B, value_if_true: T, value_if_false: T) -> T:
    """Choose one of two values, which are both computed; an integer condition is true unless it is 0.

    Example: `wp.where(True, 0.5, 0.25)` is 0.5.
    """


@builtin(
    cpp="({cond} ? {value_if_true} : {value_if_false})",
    adjoint={
        "value_if_false": lambda cond, adj: first_unless(cond, adj),
        "value_if_true": lambda cond, adj: first_if(cond, adj),
    },
    reference=lambda cond, value_if_false, value_if_true: choose(cond, value_if_true, value_if_false),
    group=GROUP,
    bounded=True,
)
def select(cond: B, value_if_false: T, value_if_true: T) -> T:
    """Choose one of two values. Deprecated: the order of its arguments surprises, use `where`.

    Example: `wp.select(True, 0.5, 0.25)` is 0.25.
    """


__all__ = ["GROUP", "limited", "maximum", "minimum"]
