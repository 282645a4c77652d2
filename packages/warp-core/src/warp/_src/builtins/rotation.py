"""Quaternions (x, y, z, w)."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.builtins import rotation_reference as reference
from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F, Mat, Quat, Three, Vec
from warp._src.builtins.reference import constant, pack
from warp._src.builtins.rules import INTERNAL, construct, normalized_adjoint
from warp._src.types.scalars import float32

GROUP = "Quaternion math"


_ROTATIONS = Sampling(condition=lambda m: bool(is_safe_matrix(m)))
_SLERP_SAMPLES = Sampling(ranges={"t": (0.1, 0.9)}, condition=lambda a, b, t: _is_safe_pair(a, b))


def is_safe_matrix(m: Any) -> bool:
    """Tell whether a small change of a matrix does not change by which case its quaternion is found."""
    diagonal = np.sort([m[0, 0], m[1, 1], m[2, 2]])
    return abs(float(np.sum(diagonal))) > 0.1 and diagonal[2] - diagonal[1] > 0.1


def _is_safe_pair(a: Any, b: Any) -> bool:
    relative = reference.hamilton(reference.conjugate(a), b)
    return abs(float(relative[3])) > 0.2 and float(np.sum(np.square(relative[:3]))) > 0.1


def rotation_adjoint(q: Expr, v: Expr, adj: Expr) -> Expr:
    """Adjoint of v (2 w^2 - 1) + 2 w (u x v) + 2 u (u . v) by q = (u, w)."""
    u, w = f.quat_vector(q), q[3]
    vector = f.cross(v, adj) * w + adj * f.dot(u, v) + v * f.dot(u, adj)
    real = f.dot(v, adj) * w * 2.0 + f.dot(f.cross(u, v), adj)
    return f.quat_join(vector * 2.0, real * 2.0)


def _axis_angle_by_angle(axis: Expr, angle: Expr, adj: Expr) -> Expr:
    half = angle * 0.5
    vector = f.dot(f.quat_vector(adj), axis) * f.cos(half)
    return (vector - adj[3] * f.sin(half)) * 0.5


def matrix_adjoint(q: Expr, adj: Expr) -> Expr:
    """Adjoint of (2 w^2 - 1) I + 2 w skew(u) + 2 u u^T."""
    u, w, axial = f.quat_vector(q), q[3], f.axial(adj)
    vector = axial * w + f.mul(f.add(adj, f.transpose(adj)), u)
    real = f.trace(adj) * w * 2.0 + f.dot(u, axial)
    return f.quat_join(vector * 2.0, real * 2.0)


def from_matrix_adjoint(m: Expr, ret: Expr, adj: Expr) -> Expr:
    """Adjoint of the quaternion `ret` of a rotation matrix."""
    scaled = f.quat_unscaled_from_matrix(m)
    return f.quat_unscaled_from_matrix_adjoint(m, normalized_adjoint(f.length(scaled), ret, adj))


def _from_axis_angle(axis: Any, angle: Any) -> Any:
    half = angle * constant(0.5, angle)
    return pack([*(axis * np.sin(half)), np.cos(half)])


def _slerp(a: Any, b: Any, t: Any) -> Any:
    return reference.hamilton(a, reference.power(reference.hamilton(reference.conjugate(a), b), t))


def _rpy(roll: Any, pitch: Any, yaw: Any) -> Any:
    half = constant(0.5, roll)
    cr, sr = np.cos(roll * half), np.sin(roll * half)
    cp, sp = np.cos(pitch * half), np.sin(pitch * half)
    cy, sy = np.cos(yaw * half), np.sin(yaw * half)
    return pack(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ]
    )


def _roll_adjoint(ret: Expr, adj: Expr) -> Expr:
    """Contract with half of ret times the unit quaternion of x: the roll is applied first."""
    axis = construct(ret.value.type, ret.constant(1.0), ret.constant(0.0), ret.constant(0.0), ret.constant(0.0))
    return f.dot(adj, f.mul(ret, axis)) * 0.5


def _pitch_adjoint(yaw: Expr, ret: Expr, adj: Expr) -> Expr:
    """Contract with half of n times ret, where n is the pitch axis after the yaw."""
    axis = construct(ret.value.type, -f.sin(yaw), f.cos(yaw), ret.constant(0.0), ret.constant(0.0))
    return f.dot(adj, f.mul(axis, ret)) * 0.5


def _yaw_adjoint(ret: Expr, adj: Expr) -> Expr:
    """Contract with half of the unit quaternion of z times ret: the yaw is applied last."""
    axis = construct(ret.value.type, ret.constant(0.0), ret.constant(0.0), ret.constant(1.0), ret.constant(0.0))
    return f.dot(adj, f.mul(axis, ret)) * 0.5


def _slerp_by_a(a: Expr, b: Expr, t: Expr, adj: Expr) -> Expr:
    relative = f.mul(f.quat_inverse(a), b)
    powered = f.quat_power(relative, t)
    inner = f.quat_power_adjoint(relative, t, f.mul(f.quat_inverse(a), adj))
    through_inverse = f.quat_inverse(f.mul(inner, f.quat_inverse(b)))
    return f.mul(adj, f.quat_inverse(powered)) + through_inverse


def _slerp_by_b(a: Expr, b: Expr, t: Expr, adj: Expr) -> Expr:
    inverse = f.quat_inverse(a)
    return f.mul(a, f.quat_power_adjoint(f.mul(inverse, b), t, f.mul(inverse, adj)))


def _slerp_by_t(a: Expr, b: Expr, t: Expr, adj: Expr) -> Expr:
    inverse = f.quat_inverse(a)
    return f.dot(f.mul(inverse, adj), f.quat_power_slope(f.mul(inverse, b), t))


@builtin(
    cpp="wp::quat_identity<float>()",
    adjoint={},
    reference=lambda: np.array([0, 0, 0, 1], dtype=np.float32),
    group=GROUP,
    bounded=True,
)
def quat_identity() -> Quat[float32]:
    """Quaternion of no rotation, (0, 0, 0, 1).

    Example: `wp.quat_identity()` is [0, 0, 0, 1].
    """


@builtin(
    cpp="wp::quat_from_axis_angle({axis}, {angle})",
    adjoint={
        "axis": lambda angle, adj: f.quat_vector(adj) * f.sin(angle * 0.5),
        "angle": _axis_angle_by_angle,
    },
    reference=_from_axis_angle,
    group=GROUP,
)
def quat_from_axis_angle(axis: Vec[Three, F], angle: F) -> Quat[F]:
    """Rotation about an axis of length 1 by an angle in radians.

    Example: `wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), 0.5)` is [0, 0, 0.247404, 0.968912].
    """


@builtin(
    "mul",
    cpp="wp::mul_quats({a}, {b})",
    adjoint={
        "a": lambda b, adj: f.mul(adj, f.quat_inverse(b)),
        "b": lambda a, adj: f.mul(f.quat_inverse(a), adj),
    },
    reference=reference.hamilton,
    group="Operators",
)
def mul_quats(a: Quat[F], b: Quat[F]) -> Quat[F]:
    """Multiply two quaternions: the rotation by `b`, then the one by `a`.

    Example: `wp.mul(wp.quat(0, 0, 0.6, 0.8), wp.quat(0, 0.6, 0, 0.8))` is [-0.36, 0.48, 0.48, 0.64].
    """


@builtin(
    cpp="wp::quat_rotate({quat}, {vec})",
    adjoint={
        "quat": lambda quat, vec, adj: rotation_adjoint(quat, vec, adj),
        "vec": lambda quat, adj: f.quat_rotate_inv(quat, adj),
    },
    reference=reference.rotate,
    group=GROUP,
)
def quat_rotate(quat: Quat[F], vec: Vec[Three, F]) -> Vec[Three, F]:
    """Rotate a vector by a quaternion of length 1.

    Example: `wp.quat_rotate(wp.quat(0, 0, 0.6, 0.8), wp.vec3(1, 2, 3))` is [-1.64, 1.52, 3].
    """


@builtin(
    cpp="wp::quat_rotate(wp::quat_inverse({quat}), {vec})",
    adjoint={
        "quat": lambda quat, vec, adj: f.quat_inverse(rotation_adjoint(f.quat_inverse(quat), vec, adj)),
        "vec": lambda quat, adj: f.quat_rotate(quat, adj),
    },
    reference=lambda q, v: reference.rotate(reference.conjugate(q), v),
    group=GROUP,
)
def quat_rotate_inv(quat: Quat[F], vec: Vec[Three, F]) -> Vec[Three, F]:
    """Rotate a vector back by a quaternion of length 1.

    Example: `wp.quat_rotate_inv(wp.quat(0, 0, 0.6, 0.8), wp.vec3(1, 2, 3))` is [2.2, -0.4, 3].
    """


@builtin(
    cpp="wp::quat_inverse({quat})",
    adjoint={"quat": lambda adj: f.quat_inverse(adj)},
    reference=reference.conjugate,
    group=GROUP,
)
def quat_inverse(quat: Quat[F]) -> Quat[F]:
    """Conjugate of a quaternion: the inverse rotation if its length is 1.

    Example: `wp.quat_inverse(wp.quat(0.0, 0.0, 0.6, 0.8))` is [0, 0, -0.6, 0.8].
    """


@builtin(
    cpp="wp::quat_to_matrix({quat})",
    adjoint={"quat": lambda quat, adj: matrix_adjoint(quat, adj)},
    reference=reference.rotation_matrix,
    group=GROUP,
)
def quat_to_matrix(quat: Quat[F]) -> Mat[Three, Three, F]:
    """Rotation matrix of a quaternion of length 1.

    Example: `wp.quat_to_matrix(wp.quat(0, 0, 0.6, 0.8))` is [[0.28, -0.96, 0], [0.96, 0.28, 0], [0, 0, 1]].
    """


@builtin(
    cpp="wp::normalize(wp::quat_unscaled_from_matrix({mat}))",
    adjoint={"mat": lambda mat, ret, adj: from_matrix_adjoint(mat, ret, adj)},
    reference=lambda m: reference.unit(reference.unscaled_from_matrix(m)),
    group=GROUP,
    sampling=_ROTATIONS,
)
def quat_from_matrix(mat: Mat[Three, Three, F]) -> Quat[F]:
    """Quaternion of length 1 of a rotation matrix.

    Example: `wp.quat_from_matrix(wp.mat33(0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0))` is
    [0, 0, 0.707107, 0.707107].
    """


@builtin(
    cpp="wp::quat_rpy({roll}, {pitch}, {yaw})",
    adjoint={
        "roll": _roll_adjoint,
        "pitch": _pitch_adjoint,
        "yaw": _yaw_adjoint,
    },
    reference=_rpy,
    group=GROUP,
    bounded=True,
)
def quat_rpy(roll: F, pitch: F, yaw: F) -> Quat[F]:
    """Rotation by roll about x, then pitch about y, then yaw about z, in radians.

    Example: `wp.quat_rpy(0.5, 0.25, 0.75)` is [0.18417, 0.202315, 0.323416, 0.905844].
    """


@builtin(
    cpp="wp::quat_slerp({a}, {b}, {t})",
    adjoint={"a": _slerp_by_a, "b": _slerp_by_b, "t": _slerp_by_t},
    reference=_slerp,
    group=GROUP,
    sampling=_SLERP_SAMPLES,
)
def quat_slerp(a: Quat[F], b: Quat[F], t: F) -> Quat[F]:
    """Turn from `a` (t = 0) to `b` (t = 1) at constant speed, the shorter way round.

    Example: `wp.quat_slerp(wp.quat(0.0, 0.0, 0.6, 0.8), wp.quat(0.0, 0.6, 0.0, 0.8), 0.5)` is
    [-1.49012e-08, 0.331295, 0.331295, 0.883452].
    """


@builtin(
    cpp="wp::quat_unscaled_from_matrix({m})",
    adjoint=INTERNAL,
    reference=reference.unscaled_from_matrix,
    group=GROUP,
    internal=True,
)
def quat_unscaled_from_matrix(m: Mat[Three, Three, F]) -> Quat[F]:
    """Positive multiple of the quaternion of a rotation matrix."""


@builtin(
    cpp="wp::quat_unscaled_from_matrix_adjoint({m}, {adj})",
    adjoint=INTERNAL,
    reference=reference.unscaled_from_matrix_adjoint,
    group=GROUP,
    internal=True,
)
def quat_unscaled_from_matrix_adjoint(m: Mat[Three, Three, F], adj: Quat[F]) -> Mat[Three, Three, F]:
    """Adjoint of `quat_unscaled_from_matrix`."""


@builtin(
    cpp="wp::quat_power({q}, {t})",
    adjoint=INTERNAL,
    reference=reference.power,
    group=GROUP,
    internal=True,
)
def quat_power(q: Quat[F], t: F) -> Quat[F]:
    """Rotation by t times the angle of q, the shorter way round."""


@builtin(
    cpp="wp::quat_power_adjoint({q}, {t}, {adj})",
    adjoint=INTERNAL,
    reference=reference.power_adjoint,
    group=GROUP,
    internal=True,
)
def quat_power_adjoint(q: Quat[F], t: F, adj: Quat[F]) -> Quat[F]:
    """Adjoint of `quat_power` by q."""


@builtin(
    cpp="wp::quat_power_slope({q}, {t})",
    adjoint=INTERNAL,
    reference=reference.power_slope,
    group=GROUP,
    internal=True,
)
def quat_power_slope(q: Quat[F], t: F) -> Quat[F]:
    """Derivative of `quat_power` by t."""


__all__ = ["GROUP", "from_matrix_adjoint", "is_safe_matrix", "matrix_adjoint", "rotation_adjoint"]
