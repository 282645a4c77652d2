"""Spatial algebra: twists (angular, linear) and wrenches (torque, force)."""

from __future__ import annotations

from warp._src.builtins.declare import builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F, Mat, Six, Three, Transf, Vec
from warp._src.builtins.reference import Array, constant, pack
from warp._src.builtins.rotation import rotation_adjoint
from warp._src.builtins.rotation_reference import cross, rotate

GROUP = "Spatial math"


def _halves(x: Expr) -> tuple[Expr, Expr]:
    return f.spatial_top(x), f.spatial_bottom(x)


def _frame(t: Expr) -> tuple[Expr, Expr]:
    return f.transform_get_translation(t), f.transform_get_rotation(t)


def _blocks(r: Array, s: Array) -> Array:
    zero = [r[0, 0] * constant(0, r[0, 0])] * 3
    rows = [[*r[i], *zero] for i in range(3)] + [[*s[i], *r[i]] for i in range(3)]
    return pack([c for row in rows for c in row], (6, 6))


def _cross(a: Array, b: Array) -> Array:
    return pack([*cross(a[:3], b[:3]), *(cross(a[3:], b[:3]) + cross(a[:3], b[3:]))])


def _cross_dual(a: Array, b: Array) -> Array:
    return pack([*(cross(a[:3], b[:3]) + cross(a[3:], b[3:])), *cross(a[:3], b[3:])])


def _twist(t: Array, x: Array) -> Array:
    w = rotate(t[3:], x[:3])
    return pack([*w, *(rotate(t[3:], x[3:]) + cross(t[:3], w))])


def _wrench(t: Array, x: Array) -> Array:
    force = rotate(t[3:], x[3:])
    return pack([*(rotate(t[3:], x[:3]) + cross(t[:3], force)), *force])


def _cross_by_a(b: Expr, adj: Expr) -> Expr:
    (w, v), (adj_w, adj_v) = _halves(b), _halves(adj)
    return f.spatial_join(f.cross(w, adj_w) + f.cross(v, adj_v), f.cross(w, adj_v))


def _cross_by_b(a: Expr, adj: Expr) -> Expr:
    (w, v), (adj_w, adj_v) = _halves(a), _halves(adj)
    return f.spatial_join(f.cross(adj_w, w) + f.cross(adj_v, v), f.cross(adj_v, w))


def _dual_by_a(b: Expr, adj: Expr) -> Expr:
    (torque, force), (adj_torque, adj_force) = _halves(b), _halves(adj)
    return f.spatial_join(f.cross(torque, adj_torque) + f.cross(force, adj_force), f.cross(force, adj_torque))


def _dual_by_b(a: Expr, adj: Expr) -> Expr:
    (w, v), (adj_torque, adj_force) = _halves(a), _halves(adj)
    return f.spatial_join(f.cross(adj_torque, w), f.cross(adj_torque, v) + f.cross(adj_force, w))


def _moved_adjoint(t: Expr, lever: Expr, other: Expr, adj_lever: Expr, adj_other: Expr) -> Expr:
    """Adjoint of the frame where a turned vector `lever` also enters `other` with the cross product p x lever."""
    p, q = _frame(t)
    turned, total = f.quat_rotate(q, lever), adj_lever + f.cross(adj_other, p)
    by_rotation = rotation_adjoint(q, lever, total) + rotation_adjoint(q, other, adj_other)
    return f.transform_join(f.cross(turned, adj_other), by_rotation)


def _twist_by_t(t: Expr, x: Expr, adj: Expr) -> Expr:
    (w, v), (adj_w, adj_v) = _halves(x), _halves(adj)
    return _moved_adjoint(t, w, v, adj_w, adj_v)


def _twist_by_x(t: Expr, adj: Expr) -> Expr:
    (p, q), (adj_w, adj_v) = _frame(t), _halves(adj)
    return f.spatial_join(f.quat_rotate_inv(q, adj_w + f.cross(adj_v, p)), f.quat_rotate_inv(q, adj_v))


def _wrench_by_t(t: Expr, x: Expr, adj: Expr) -> Expr:
    (torque, force), (adj_torque, adj_force) = _halves(x), _halves(adj)
    return _moved_adjoint(t, force, torque, adj_force, adj_torque)


def _wrench_by_x(t: Expr, adj: Expr) -> Expr:
    (p, q), (adj_torque, adj_force) = _frame(t), _halves(adj)
    return f.spatial_join(f.quat_rotate_inv(q, adj_torque), f.quat_rotate_inv(q, adj_force + f.cross(adj_torque, p)))


@builtin(
    cpp="wp::spatial_adjoint({r}, {s})",
    adjoint={
        "r": lambda adj: f.spatial_diagonal_blocks(adj),
        "s": lambda adj: f.spatial_lower_block(adj),
    },
    reference=_blocks,
    group=GROUP,
)
def spatial_adjoint(r: Mat[Three, Three, F], s: Mat[Three, Three, F]) -> Mat[Six, Six, F]:
    """Matrix of the blocks [[r, 0], [s, r]], which maps twists if s is skew(p) * r.

    Example: `ad = wp.spatial_adjoint(R, wp.skew(p) * R)`.
    """


@builtin(
    cpp="wp::spatial_cross({a}, {b})",
    adjoint={"a": _cross_by_a, "b": _cross_by_b},
    reference=_cross,
    group=GROUP,
)
def spatial_cross(a: Vec[Six, F], b: Vec[Six, F]) -> Vec[Six, F]:
    """Cross product of two twists: (wa x wb, va x wb + wa x vb).

    Example: `c = wp.spatial_cross(twist, other)`.
    """


@builtin(
    cpp="wp::spatial_cross_dual({a}, {b})",
    adjoint={"a": _dual_by_a, "b": _dual_by_b},
    reference=_cross_dual,
    group=GROUP,
)
def spatial_cross_dual(a: Vec[Six, F], b: Vec[Six, F]) -> Vec[Six, F]:
    """Cross product of a twist (w, v) with a wrench (n, f): (w x n + v x f, w x f).

    Example: `f = wp.spatial_cross_dual(twist, momentum)`.
    """


@builtin(
    cpp="wp::velocity_at_point({qd}, {r})",
    adjoint={
        "qd": lambda r, adj: f.spatial_join(f.cross(r, adj), adj),
        "r": lambda qd, adj: f.cross(adj, f.spatial_top(qd)),
    },
    reference=lambda qd, r: qd[3:] + cross(qd[:3], r),
    group=GROUP,
)
def velocity_at_point(qd: Vec[Six, F], r: Vec[Three, F]) -> Vec[Three, F]:
    """Linear velocity at an offset `r` from the origin of a twist (w, v): v + w x r.

    Example: `point_qd = wp.velocity_at_point(body_qd[i], r)`.
    """


@builtin(
    cpp="wp::transform_twist({t}, {x})",
    adjoint={"t": _twist_by_t, "x": _twist_by_x},
    reference=_twist,
    group=GROUP,
)
def transform_twist(t: Transf[F], x: Vec[Six, F]) -> Vec[Six, F]:
    """Twist (w, v) in another frame: (R w, R v + p x R w) for the transform (p, R).

    Example: `world = wp.transform_twist(body, twist)`.
    """


@builtin(
    cpp="wp::transform_wrench({t}, {x})",
    adjoint={"t": _wrench_by_t, "x": _wrench_by_x},
    reference=_wrench,
    group=GROUP,
)
def transform_wrench(t: Transf[F], x: Vec[Six, F]) -> Vec[Six, F]:
    """Wrench (n, f) in another frame: (R n + p x R f, R f) for the transform (p, R).

    Example: `world = wp.transform_wrench(body, wrench)`.
    """


@builtin(
    cpp="wp::tensor_add(wp::spatial_block<0, 0>({m}), wp::spatial_block<3, 3>({m}))",
    adjoint={"m": lambda adj: f.spatial_adjoint(adj, adj.zero())},
    reference=lambda m: m[:3, :3] + m[3:, 3:],
    group="Internal",
    internal=True,
    bounded=True,
)
def spatial_diagonal_blocks(m: Mat[Six, Six, F]) -> Mat[Three, Three, F]:
    """Sum of the two diagonal 3 x 3 blocks."""


@builtin(
    cpp="wp::spatial_block<3, 0>({m})",
    adjoint={"m": lambda adj: f.spatial_adjoint(adj.zero(), adj)},
    reference=lambda m: m[3:, :3].copy(),
    group="Internal",
    internal=True,
    bounded=True,
)
def spatial_lower_block(m: Mat[Six, Six, F]) -> Mat[Three, Three, F]:
    """Lower left 3 x 3 block."""


__all__ = ["GROUP"]
