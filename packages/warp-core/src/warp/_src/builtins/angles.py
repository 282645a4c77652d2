"""Angles of rotations: axis and angle, Euler angles, twists, and the rotation between two vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.builtins import angles_reference as reference
from warp._src.builtins.declare import AdjointRule, Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F, Quat, Three, Vec
from warp._src.builtins.rules import INTERNAL, normalized_adjoint, strong
from warp._src.types.scalars import int32

GROUP = "Quaternion math"


def _is_away_from_poles(quat: Any, *_: Any) -> bool:
    size = float(np.sqrt(np.sum(np.square(quat[:3]))))
    return size > 0.3 and abs(float(quat[3])) > 0.3


def _is_sequence(i: Any, j: Any, k: Any) -> bool:
    return bool(i != j and j != k)


def _is_unlocked(q: Any, i: Any, j: Any, k: Any, *_: Any) -> bool:
    if not _is_sequence(i, j, k):
        return False
    angles = reference.to_euler(q.astype(float), i, j, k)
    limit = float(angles[int(j)]) + (0.0 if i == k else np.pi / 2)
    length = float(np.sum(np.square(q)))
    return 0.3 < limit < np.pi - 0.3 and length > 0.5 and bool(np.all(np.abs(np.abs(angles) - np.pi) > 0.1))


_AXES = {"i": (0, 3), "j": (0, 3), "k": (0, 3)}
_FROM_EULER = Sampling(ranges=_AXES, condition=lambda e, i, j, k, *rest: _is_sequence(i, j, k))
_TO_EULER = Sampling(ranges=_AXES, condition=_is_unlocked)
_TWIST = Sampling(
    condition=lambda axis, q: abs(float(np.dot(axis, q[:3]))) > 0.3 and abs(float(q[3])) > 0.3,
)
_BETWEEN = Sampling(
    condition=lambda a, b: (
        min(float(np.dot(a, a)), float(np.dot(b, b))) > 0.5
        and float(np.dot(a, b)) / np.sqrt(float(np.dot(a, a)) * float(np.dot(b, b))) > -0.8
    )
)


def _axis_angle_adjoint(quat: Expr, adj0: Expr, adj1: Expr) -> Expr:
    v, w = f.quat_vector(quat), quat[3]
    sign = f.where(w < 0.0, w.constant(-1.0), w.constant(1.0))
    size, unit = f.length(v), f.normalize(v)
    square = size * size + w * w
    by_axis = normalized_adjoint(size, unit, adj0) * sign
    by_angle = strong(adj1 * (sign * w * 2.0 / square), unit)
    return f.quat_join(by_axis + by_angle, -(adj1 * (sign * size * 2.0 / square)))


_AXIS_ANGLE: dict[str, AdjointRule] = {"quat": _axis_angle_adjoint}


def _axis_numbers(like: Expr) -> list[Expr]:
    """Give the constants 0, 1 and 2."""
    return [Expr(like.builder, like.builder.const(int32, number)) for number in range(3)]


def _twist_by_q(axis: Expr, q: Expr, ret: Expr, adj: Expr) -> Expr:
    inner = normalized_adjoint(f.length(f.quat_unscaled_twist(axis, q)), ret, adj)
    return f.quat_join(axis * f.dot(axis, f.quat_vector(inner)), inner[3])


def _twist_by_axis(axis: Expr, q: Expr, ret: Expr, adj: Expr) -> Expr:
    inner = f.quat_vector(normalized_adjoint(f.length(f.quat_unscaled_twist(axis, q)), ret, adj))
    v = f.quat_vector(q)
    return inner * f.dot(axis, v) + v * f.dot(axis, inner)


def _angle_slopes(axis: Expr, q: Expr, adj: Expr) -> tuple[Expr, Expr]:
    """Give the adjoints of axis . v and of w through 2 atan2(axis . v, w)."""
    along, w = f.dot(axis, f.quat_vector(q)), q[3]
    square = along * along + w * w
    return adj * (w * 2.0 / square), -(adj * (along * 2.0 / square))


def _angle_by_axis(axis: Expr, q: Expr, adj: Expr) -> Expr:
    return strong(_angle_slopes(axis, q, adj)[0], f.quat_vector(q))


def _angle_by_q(axis: Expr, q: Expr, adj: Expr) -> Expr:
    along, real = _angle_slopes(axis, q, adj)
    return f.quat_join(strong(along, axis), real)


def _size_by_axis(axis: Expr, q: Expr, adj: Expr) -> Expr:
    return _angle_by_axis(axis, q, adj * f.sign(f.dot(axis, f.quat_vector(q))))


def _size_by_q(axis: Expr, q: Expr, adj: Expr) -> Expr:
    along, real = _angle_slopes(axis, q, adj)
    sign = f.sign(f.dot(axis, f.quat_vector(q)))
    return f.quat_join(strong(along * sign, axis), real * sign)


def _between_inner(a: Expr, b: Expr, ret: Expr, adj: Expr) -> Expr:
    unscaled = f.quat_unscaled_between(f.normalize(a), f.normalize(b))
    return normalized_adjoint(f.length(unscaled), ret, adj)


def _between_by_a(a: Expr, b: Expr, ret: Expr, adj: Expr) -> Expr:
    inner, unit = _between_inner(a, b, ret, adj), f.normalize(b)
    by_unit = f.cross(unit, f.quat_vector(inner)) + unit * inner[3]
    return normalized_adjoint(f.length(a), f.normalize(a), by_unit)


def _between_by_b(a: Expr, b: Expr, ret: Expr, adj: Expr) -> Expr:
    inner, unit = _between_inner(a, b, ret, adj), f.normalize(a)
    by_unit = f.cross(f.quat_vector(inner), unit) + unit * inner[3]
    return normalized_adjoint(f.length(b), f.normalize(b), by_unit)


@builtin(
    "quat_to_axis_angle",
    cpp="wp::quat_to_axis_angle({quat}, {ret0}, {ret1})",
    adjoint=_AXIS_ANGLE,
    reference=reference.axis_angle,
    group=GROUP,
    sampling=Sampling(condition=_is_away_from_poles),
)
def quat_to_axis_angle(quat: Quat[F]) -> tuple[Vec[Three, F], F]:
    """Axis of length 1 and angle from 0 to pi of a rotation; without a rotation axis, angle and derivatives are 0.

    Example: `axis, angle = wp.quat_to_axis_angle(q)`.
    """


@builtin(
    "quat_to_axis_angle",
    cpp="wp::quat_to_axis_angle({quat}, {ret0}, {ret1})",
    adjoint={**_AXIS_ANGLE, "axis": lambda axis: axis.zero(), "angle": lambda angle: angle.zero()},
    reference=lambda quat, *outputs: reference.axis_angle(quat),
    group=GROUP,
    sampling=Sampling(condition=_is_away_from_poles),
    updates=("axis", "angle"),
)
def quat_to_axis_angle_into(quat: Quat[F], axis: Vec[Three, F], angle: F) -> None:
    """As `quat_to_axis_angle(quat)`, but assigns the variables `axis` and `angle`.

    Example: `wp.quat_to_axis_angle(q, axis, angle)`.
    """


@builtin(
    cpp="wp::quat_from_euler({e}, {i}, {j}, {k})",
    adjoint={"e": lambda e, i, j, k, adj: f.quat_from_euler_adjoint(e, i, j, k, adj)},
    reference=reference.from_euler,
    group=GROUP,
    bounded=True,
    sampling=_FROM_EULER,
)
def quat_from_euler(e: Vec[Three, F], i: int32, j: int32, k: int32) -> Quat[F]:
    """Rotation by e[i] about the fixed axis i, then by e[j] about j, then by e[k] about k, in radians.

    Example: `wp.quat_from_euler(wp.vec3(roll, pitch, yaw), 0, 1, 2)` is `wp.quat_rpy(roll, pitch, yaw)`.
    """


@builtin(
    cpp="wp::quat_to_euler({q}, {i}, {j}, {k})",
    adjoint={"q": lambda q, i, j, k, adj: f.quat_to_euler_adjoint(q, i, j, k, adj)},
    reference=reference.to_euler,
    group=GROUP,
    bounded=True,
    sampling=_TO_EULER,
)
def quat_to_euler(q: Quat[F], i: int32, j: int32, k: int32) -> Vec[Three, F]:
    """Angles of rotations about the fixed axes i, j, k in that order, each stored at the number of its axis.

    If i equals k the third angle is stored at the number of the axis that is left over. At gimbal lock only the sum or
    difference of first and third is determined. Example: `roll_pitch_yaw = wp.quat_to_euler(q, 0, 1, 2)`.
    """


@builtin(
    cpp="wp::quat_to_rpy({q})",
    adjoint={"q": lambda q, adj: f.quat_to_euler_adjoint(q, *_axis_numbers(q), adj)},
    reference=reference.to_rpy,
    group=GROUP,
    bounded=True,
    sampling=Sampling(condition=lambda q: _is_unlocked(q, 0, 1, 2)),
)
def quat_to_rpy(q: Quat[F]) -> Vec[Three, F]:
    """Roll, pitch and yaw, the inverse of `quat_rpy`; roll and yaw from -pi to pi, pitch from -pi/2 to pi/2.

    Example: `angles = wp.quat_to_rpy(q)`.
    """


@builtin(
    cpp="wp::normalize(wp::unscaled_twist({axis}, {q}))",
    adjoint={"axis": _twist_by_axis, "q": _twist_by_q},
    reference=reference.twist,
    group=GROUP,
    bounded=True,
    sampling=_TWIST,
)
def quat_twist(axis: Vec[Three, F], q: Quat[F]) -> Quat[F]:
    """Part of a rotation that turns about `axis`, of length 1; 0 for a half turn about a perpendicular axis.

    Example: `turn = wp.quat_twist(wp.vec3(0.0, 0.0, 1.0), q)`.
    """


@builtin(
    cpp="wp::abs(wp::quat_twist_angle_signed({axis}, {q}))",
    adjoint={"axis": _size_by_axis, "q": _size_by_q},
    reference=lambda axis, q: abs(reference.twist_angle(axis, q)),
    group=GROUP,
    bounded=True,
    sampling=_TWIST,
)
def quat_twist_angle(axis: Vec[Three, F], q: Quat[F]) -> F:
    """Angle of the twist about `axis`, of length 1: from 0 to pi, or to 2 pi if the real part of q is negative.

    Example: `angle = wp.quat_twist_angle(wp.vec3(0.0, 0.0, 1.0), q)`.
    """


@builtin(
    cpp="wp::quat_twist_angle_signed({axis}, {q})",
    adjoint={"axis": _angle_by_axis, "q": _angle_by_q},
    reference=reference.twist_angle,
    group=GROUP,
    bounded=True,
    sampling=_TWIST,
)
def quat_twist_angle_signed(axis: Vec[Three, F], q: Quat[F]) -> F:
    """Angle of the twist about `axis`, of length 1, positive by the right-hand rule.

    Example: `angle = wp.quat_twist_angle_signed(wp.vec3(0.0, 0.0, 1.0), q)`.
    """


@builtin(
    cpp="wp::quat_between_vectors({a}, {b})",
    adjoint={"a": _between_by_a, "b": _between_by_b},
    reference=reference.between,
    group=GROUP,
    bounded=True,
    sampling=_BETWEEN,
)
def quat_between_vectors(a: Vec[Three, F], b: Vec[Three, F]) -> Quat[F]:
    """Shortest rotation from the direction of `a` to that of `b`; some half turn if they are opposite.

    Example: `q = wp.quat_between_vectors(wp.vec3(0.0, 0.0, 1.0), normal)`.
    """


@builtin(
    cpp="wp::quat_from_euler_adjoint({e}, {i}, {j}, {k}, {adj})",
    adjoint=INTERNAL,
    reference=reference.from_euler_adjoint,
    group=GROUP,
    internal=True,
    sampling=_FROM_EULER,
)
def quat_from_euler_adjoint(e: Vec[Three, F], i: int32, j: int32, k: int32, adj: Quat[F]) -> Vec[Three, F]:
    """Adjoint of `quat_from_euler`."""


@builtin(
    cpp="wp::quat_to_euler_adjoint({q}, {i}, {j}, {k}, {adj})",
    adjoint=INTERNAL,
    reference=reference.to_euler_adjoint,
    group=GROUP,
    internal=True,
    sampling=_TO_EULER,
)
def quat_to_euler_adjoint(q: Quat[F], i: int32, j: int32, k: int32, adj: Vec[Three, F]) -> Quat[F]:
    """Adjoint of `quat_to_euler`."""


@builtin(
    cpp="wp::unscaled_twist({axis}, {q})",
    adjoint=INTERNAL,
    reference=reference.unscaled_twist,
    group=GROUP,
    internal=True,
)
def quat_unscaled_twist(axis: Vec[Three, F], q: Quat[F]) -> Quat[F]:
    """Multiple of the twist about `axis`."""


@builtin(
    cpp="wp::unscaled_between({a}, {b})",
    adjoint=INTERNAL,
    reference=reference.unscaled_between,
    group=GROUP,
    internal=True,
)
def quat_unscaled_between(a: Vec[Three, F], b: Vec[Three, F]) -> Quat[F]:
    """Multiple of the shortest rotation between two vectors of length 1."""


__all__ = ["GROUP"]
