"""Norms of vectors that are robust to outliers or smooth at 0, and normalisation by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F, N, Vec
from warp._src.builtins.reference import constant, dot, total
from warp._src.builtins.rules import strong, strong_dot

GROUP = "Vector math"

_COMPONENTS_NOT_NULL = Sampling(condition=lambda v: float(np.min(np.abs(v))) > 0.05)
_NOT_NULL = Sampling(condition=lambda v: float(np.sum(np.square(v))) > 0.1)
_APART = Sampling(
    ranges={"delta": (0.5, 2.5)},
    condition=lambda v, delta: abs(float(np.sqrt(np.sum(np.square(v)))) - float(delta)) > 0.05,
)
_POSITIVE_DELTA = Sampling(ranges={"delta": (0.5, 2.5)})


def _huber(v: Any, delta: Any) -> Any:
    square, half = dot(v, v), constant(0.5, delta)
    if square <= delta * delta:
        return half * square
    return delta * (np.sqrt(square) - half * delta)


def _pseudo_huber(v: Any, delta: Any) -> Any:
    return delta * np.sqrt(constant(1, delta) + dot(v, v) / (delta * delta))


def _huber_by_v(v: Expr, delta: Expr, adj: Expr) -> Expr:
    return f.where(f.dot(v, v) <= delta * delta, strong(adj, v), strong(adj * delta, f.normalize(v)))


def _huber_by_delta(v: Expr, delta: Expr, adj: Expr) -> Expr:
    return f.where(f.dot(v, v) <= delta * delta, adj.zero(), adj * (f.length(v) - delta))


def _pseudo_huber_by_delta(delta: Expr, ret: Expr, adj: Expr) -> Expr:
    """The norm is sqrt(delta^2 + v^2)."""
    return adj * (delta / ret)


def _smooth_by_v(v: Expr, delta: Expr, ret: Expr, adj: Expr) -> Expr:
    size = f.norm_pseudo_huber(v, delta)
    return (adj - ret * strong_dot(adj, ret)) / size


def _smooth_by_delta(v: Expr, delta: Expr, ret: Expr, adj: Expr) -> Expr:
    size = f.norm_pseudo_huber(v, delta)
    return -(strong_dot(adj, ret) * (delta / size) / size)


@builtin(
    cpp="wp::norm_l1({v})",
    adjoint={"v": lambda v, adj: adj * f.sign(v)},
    reference=lambda v: total([abs(c) for c in v]),
    group=GROUP,
    sampling=_COMPONENTS_NOT_NULL,
)
def norm_l1(v: Vec[N, F]) -> F:
    """Sum of the absolute values of the components.

    Example: `wp.norm_l1(wp.vec2(3.0, -4.0))` is 7.
    """


@builtin(
    cpp="wp::length({v})",
    adjoint={"v": lambda v, adj: adj * f.normalize(v)},
    reference=lambda v: np.sqrt(dot(v, v)),
    group=GROUP,
    sampling=_NOT_NULL,
)
def norm_l2(v: Vec[N, F]) -> F:
    """Euclidean length, as `length`; its derivative at 0 is taken as 0.

    Example: `wp.norm_l2(wp.vec2(3.0, -4.0))` is 5.
    """


@builtin(
    cpp="wp::norm_huber({v}, {delta})",
    adjoint={"v": _huber_by_v, "delta": _huber_by_delta},
    reference=_huber,
    group=GROUP,
    sampling=_APART,
    defaults={"delta": 1.0},
)
def norm_huber(v: Vec[N, F], delta: F) -> F:
    """Half of the square of the length up to `delta`, from there on delta * (length - delta / 2).

    Example: `wp.norm_huber(wp.vec2(3.0, -4.0), 1.0)` is 4.5.
    """


@builtin(
    cpp="wp::norm_pseudo_huber({v}, {delta})",
    adjoint={
        "v": lambda v, ret, adj: adj * (v / ret),
        "delta": _pseudo_huber_by_delta,
    },
    reference=_pseudo_huber,
    group=GROUP,
    sampling=_POSITIVE_DELTA,
    defaults={"delta": 1.0},
)
def norm_pseudo_huber(v: Vec[N, F], delta: F) -> F:
    """Smooth length: delta * sqrt(1 + length**2 / delta**2), for delta > 0.

    Example: `wp.norm_pseudo_huber(wp.vec2(3.0, -4.0), 1.0)` is 5.099.
    """


@builtin(
    cpp="wp::smooth_normalize({v}, {delta})",
    adjoint={"v": _smooth_by_v, "delta": _smooth_by_delta},
    reference=lambda v, delta: v / _pseudo_huber(v, delta),
    group=GROUP,
    sampling=_POSITIVE_DELTA,
    defaults={"delta": 1.0},
)
def smooth_normalize(v: Vec[N, F], delta: F) -> Vec[N, F]:
    """Divide by `norm_pseudo_huber`, which has a derivative at 0 too.

    Example: `wp.smooth_normalize(wp.vec2(3.0, -4.0), 1.0)` is (0.588, -0.784).
    """


__all__ = ["GROUP"]
