"""Rigid transforms (translation p, rotation q) and their action on points and vectors."""

from __future__ import annotations

import numpy as np

from warp._src.builtins.declare import builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F, Four, Mat, Quat, Three, Transf, Vec
from warp._src.builtins.reference import Array, Number, constant, pack
from warp._src.builtins.rotation import rotation_adjoint
from warp._src.builtins.rotation_reference import conjugate, hamilton, rotate
from warp._src.builtins.tensor_operators import matrix_vector
from warp._src.types.scalars import float32

GROUP = "Transformations"


def compose(a: Array, b: Array) -> Array:
    """Compose two transforms: the result applies `b` first."""
    return pack([*(a[:3] + rotate(a[3:], b[:3])), *hamilton(a[3:], b[3:])])


def invert_rigid(t: Array) -> Array:
    """Invert a transform whose quaternion has length 1."""
    inverse = conjugate(t[3:])
    return pack([*-rotate(inverse, t[:3]), *inverse])


def _affine(m: Array, v: Array, w: float) -> Array:
    return matrix_vector(m, pack([*v, constant(w, v[0])]))[:3].copy()


def _translation(t: Expr) -> Expr:
    return f.transform_get_translation(t)


def _rotation(t: Expr) -> Expr:
    return f.transform_get_rotation(t)


def _compose_by_a(a: Expr, b: Expr, adj: Expr) -> Expr:
    p, q = _translation(adj), _rotation(adj)
    by_rotation = rotation_adjoint(_rotation(a), _translation(b), p) + f.mul(q, f.quat_inverse(_rotation(b)))
    return f.transform_join(p, by_rotation)


def _compose_by_b(a: Expr, adj: Expr) -> Expr:
    rotation = _rotation(a)
    return f.transform_join(
        f.quat_rotate_inv(rotation, _translation(adj)), f.mul(f.quat_inverse(rotation), _rotation(adj))
    )


def _invert_adjoint(t: Expr, adj: Expr) -> Expr:
    p, q = -_translation(adj), _rotation(adj)
    inverse = f.quat_inverse(_rotation(t))
    by_inverse = q + rotation_adjoint(inverse, _translation(t), p)
    return f.transform_join(f.quat_rotate_inv(inverse, p), f.quat_inverse(by_inverse))


def _affine_by_matrix(v: Expr, adj: Expr, w: float) -> Expr:
    return f.outer(f.homogeneous(adj, adj.constant(0.0)), f.homogeneous(v, v.constant(w)))


def _affine_by_vector(m: Expr, adj: Expr) -> Expr:
    return f.vector_head(f.mul(f.homogeneous(adj, adj.constant(0.0)), m))


@builtin(
    cpp="wp::transform_identity<float>()",
    adjoint={},
    reference=lambda: np.array([0, 0, 0, 0, 0, 0, 1], dtype=np.float32),
    group=GROUP,
    bounded=True,
)
def transform_identity() -> Transf[float32]:
    """Transform that changes nothing.

    Example: `wp.transform_identity()` is [0, 0, 0, 0, 0, 0, 1].
    """


@builtin(
    cpp="wp::transform_get_translation({xform})",
    adjoint={"xform": lambda xform, adj: f.transform_join(adj, _rotation(xform).zero())},
    reference=lambda xform: xform[:3].copy(),
    group=GROUP,
)
def transform_get_translation(xform: Transf[F]) -> Vec[Three, F]:
    """Translation of a transform.

    Example: `wp.transform_get_translation(wp.transform(1, 2, 3, 0, 0, 0.6, 0.8))` is [1, 2, 3].
    """


@builtin(
    cpp="wp::transform_get_rotation({xform})",
    adjoint={"xform": lambda xform, adj: f.transform_join(_translation(xform).zero(), adj)},
    reference=lambda xform: xform[3:].copy(),
    group=GROUP,
)
def transform_get_rotation(xform: Transf[F]) -> Quat[F]:
    """Rotation of a transform.

    Example: `wp.transform_get_rotation(wp.transform(1, 2, 3, 0, 0, 0.6, 0.8))` is [0, 0, 0.6, 0.8].
    """


@builtin(
    "mul",
    cpp="wp::mul_transforms({a}, {b})",
    adjoint={"a": _compose_by_a, "b": _compose_by_b},
    reference=compose,
    group="Operators",
)
def mul_transforms(a: Transf[F], b: Transf[F]) -> Transf[F]:
    """Compose two transforms: `b`, then `a`.

    Example: `wp.mul(wp.transform(1, 2, 3, 0, 0, 0.6, 0.8), wp.transform(0, 1, 0, 0, 0.6, 0, 0.8))` is
    [0.04, 2.28, 3, -0.36, 0.48, 0.48, 0.64].
    """


@builtin(
    cpp="wp::mul_transforms({a}, {b})",
    adjoint={"a": _compose_by_a, "b": _compose_by_b},
    reference=compose,
    group=GROUP,
)
def transform_multiply(a: Transf[F], b: Transf[F]) -> Transf[F]:
    """Compose two transforms: `b`, then `a`.

    Example: `wp.transform_multiply(wp.transform(1, 2, 3, 0, 0, 0.6, 0.8), wp.transform(0, 1, 0, 0, 0.6, 0, 0.8))` is
    [0.04, 2.28, 3, -0.36, 0.48, 0.48, 0.64].
    """


@builtin(
    cpp="wp::transform_inverse({xform})",
    adjoint={"xform": lambda xform, adj: _invert_adjoint(xform, adj)},
    reference=invert_rigid,
    group=GROUP,
)
def transform_inverse(xform: Transf[F]) -> Transf[F]:
    """Inverse of a transform whose quaternion has length 1.

    Example: `wp.transform_inverse(wp.transform(1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8))` is
    [-2.2, 0.4, -3, 0, 0, -0.6, 0.8].
    """


@builtin(
    "transform_point",
    cpp="wp::transform_point({xform}, {point})",
    adjoint={
        "xform": lambda xform, point, adj: f.transform_join(adj, rotation_adjoint(_rotation(xform), point, adj)),
        "point": lambda xform, adj: f.quat_rotate_inv(_rotation(xform), adj),
    },
    reference=lambda xform, point: xform[:3] + rotate(xform[3:], point),
    group=GROUP,
)
def transform_point_rigid(xform: Transf[F], point: Vec[Three, F]) -> Vec[Three, F]:
    """Rotate and translate a point.

    Example: `wp.transform_point(wp.transform(1, 2, 3, 0, 0, 0.6, 0.8), wp.vec3(1, 2, 3))` is
    [-0.64, 3.52, 6].
    """


@builtin(
    "transform_point",
    cpp="wp::transform_affine({mat}, {point}, {F}(1))",
    adjoint={
        "mat": lambda point, adj: _affine_by_matrix(point, adj, 1.0),
        "point": lambda mat, adj: _affine_by_vector(mat, adj),
    },
    reference=lambda mat, point: _affine(mat, point, 1.0),
    group=GROUP,
)
def transform_point_matrix(mat: Mat[Four, Four, F], point: Vec[Three, F]) -> Vec[Three, F]:
    """Multiply a point, with a 1 appended, by a matrix; the fourth component of the result is dropped.

    Example: `wp.transform_point(wp.mat44(1, 0, 0, 5, 0, 1, 0, 6, 0, 0, 1, 7, 0, 0, 0, 1), wp.vec3(1, 2, 3))` is
    [6, 8, 10].
    """


@builtin(
    "transform_vector",
    cpp="wp::quat_rotate(wp::transform_get_rotation({xform}), {vec})",
    adjoint={
        "xform": lambda xform, vec, adj: f.transform_join(adj.zero(), rotation_adjoint(_rotation(xform), vec, adj)),
        "vec": lambda xform, adj: f.quat_rotate_inv(_rotation(xform), adj),
    },
    reference=lambda xform, vec: rotate(xform[3:], vec),
    group=GROUP,
)
def transform_vector_rigid(xform: Transf[F], vec: Vec[Three, F]) -> Vec[Three, F]:
    """Rotate a vector, without translation.

    Example: `wp.transform_vector(wp.transform(1, 2, 3, 0, 0, 0.6, 0.8), wp.vec3(1, 2, 3))` is
    [-1.64, 1.52, 3].
    """


@builtin(
    "transform_vector",
    cpp="wp::transform_affine({mat}, {vec}, {F}(0))",
    adjoint={
        "mat": lambda vec, adj: _affine_by_matrix(vec, adj, 0.0),
        "vec": lambda mat, adj: _affine_by_vector(mat, adj),
    },
    reference=lambda mat, vec: _affine(mat, vec, 0.0),
    group=GROUP,
)
def transform_vector_matrix(mat: Mat[Four, Four, F], vec: Vec[Three, F]) -> Vec[Three, F]:
    """Multiply a vector, with a 0 appended, by a matrix; the fourth component of the result is dropped.

    Example: `wp.transform_vector(wp.mat44(1, 0, 0, 5, 0, 1, 0, 6, 0, 0, 1, 7, 0, 0, 0, 1), wp.vec3(1, 2, 3))` is
    [1, 2, 3].
    """


def _head(v: Array) -> Number:
    return v[:3].copy()


@builtin(
    cpp="wp::vector_head({v})",
    adjoint={"v": lambda adj: f.homogeneous(adj, adj[0].zero())},
    reference=_head,
    group="Internal",
    internal=True,
    bounded=True,
)
def vector_head(v: Vec[Four, F]) -> Vec[Three, F]:
    """Drop the fourth component."""


__all__ = ["GROUP", "compose", "invert_rigid"]
