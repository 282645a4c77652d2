"""Transforms and 4 x 4 matrices: parts, composition with scales, decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import F, Four, Mat, Quat, Three, Transf, Vec
from warp._src.builtins.reference import Array, Number, constant, dot, pack
from warp._src.builtins.rotation import from_matrix_adjoint, is_safe_matrix, matrix_adjoint
from warp._src.builtins.rotation_reference import rotation_matrix, unit, unscaled_from_matrix

GROUP = "Transformations"

_ROTATIONS = Sampling(condition=lambda mat: bool(is_safe_matrix(mat[:3, :3])))


def _affine(linear: Array, translation: Array, corner: Number) -> Array:
    """Give the 4 x 4 matrix of a linear part, a last column and an element in the corner."""
    rows = [[*linear[i], translation[i]] for i in range(3)]
    zero = corner * constant(0, corner)
    return pack([c for row in [*rows, [zero, zero, zero, corner]] for c in row], (4, 4))


def _rotation_of(matrix: Array) -> Array:
    return unit(unscaled_from_matrix(matrix))


def _compose(position: Array, rotation: Array, scale: Array) -> Array:
    return _affine(rotation_matrix(rotation) * scale, position, constant(1, position[0]))


def _column_lengths(m: Array) -> Array:
    return pack(np.sqrt(dot(m[:3, j], m[:3, j])) for j in range(3))


def _decompose(m: Array) -> tuple[Array, Array, Array]:
    scale = _column_lengths(m)
    return m[:3, 3].copy(), _rotation_of(m[:3, :3] / scale), scale


def _is_decomposable(m: Any) -> bool:
    scale = _column_lengths(m)
    return float(np.min(scale)) > 0.5 and bool(is_safe_matrix(m[:3, :3] / scale))


def _from_matrix_rule(mat: Expr, ret: Expr, adj: Expr) -> Expr:
    rotation = from_matrix_adjoint(f.matrix_linear(mat), f.transform_get_rotation(ret), f.transform_get_rotation(adj))
    return f.matrix_affine(rotation, f.transform_get_translation(adj), rotation[0, 0].zero())


def _decompose_rule(m: Expr, ret1: Expr, ret2: Expr, adj0: Expr, adj1: Expr, adj2: Expr) -> Expr:
    """Each column is its length times a unit column."""
    inverse_scale = f.diag(1.0 / ret2)
    unscaled = f.mul(f.matrix_linear(m), inverse_scale)
    adj_rotation = from_matrix_adjoint(unscaled, ret1, adj1)
    along = f.get_diag(f.mul(f.transpose(unscaled), adj_rotation))
    by_columns = f.mul(adj_rotation - f.mul(unscaled, f.diag(along)), inverse_scale) + f.mul(unscaled, f.diag(adj2))
    return f.matrix_affine(by_columns, adj0, by_columns[0, 0].zero())


@builtin(
    cpp="{ret0} = wp::transform_join({p}, wp::transform_get_rotation({xform}))",
    adjoint={
        "xform": lambda adj: f.transform_join(f.transform_get_translation(adj).zero(), f.transform_get_rotation(adj)),
        "p": lambda adj: f.transform_get_translation(adj),
    },
    reference=lambda xform, p: pack([*p, *xform[3:]]),
    group=GROUP,
    updates=("xform",),
)
def transform_set_translation(xform: Transf[F], p: Vec[Three, F]) -> None:
    """Give the variable `xform` another translation; `xform.p = p` does the same.

    Example: `wp.transform_set_translation(xform, wp.vec3(0.0, 0.0, 1.0))`.
    """


@builtin(
    cpp="{ret0} = wp::transform_join(wp::transform_get_translation({xform}), {q})",
    adjoint={
        "xform": lambda adj: f.transform_join(f.transform_get_translation(adj), f.transform_get_rotation(adj).zero()),
        "q": lambda adj: f.transform_get_rotation(adj),
    },
    reference=lambda xform, q: pack([*xform[:3], *q]),
    group=GROUP,
    updates=("xform",),
)
def transform_set_rotation(xform: Transf[F], q: Quat[F]) -> None:
    """Give the variable `xform` another rotation; `xform.q = q` does the same.

    Example: `wp.transform_set_rotation(xform, wp.quat_identity())`.
    """


@builtin(
    cpp="wp::transform_join({p}, wp::transform_get_rotation({xform}))",
    adjoint={
        "xform": lambda adj: f.transform_join(f.transform_get_translation(adj).zero(), f.transform_get_rotation(adj)),
        "p": lambda adj: f.transform_get_translation(adj),
    },
    reference=lambda xform, p: pack([*p, *xform[3:]]),
    group=GROUP,
)
def transform_set_translation_copy(xform: Transf[F], p: Vec[Three, F]) -> Transf[F]:
    """Transform with the rotation of `xform` and another translation.

    Example: `moved = wp.transform_set_translation_copy(xform, p)`.
    """


@builtin(
    cpp="wp::transform_join(wp::transform_get_translation({xform}), {q})",
    adjoint={
        "xform": lambda adj: f.transform_join(f.transform_get_translation(adj), f.transform_get_rotation(adj).zero()),
        "q": lambda adj: f.transform_get_rotation(adj),
    },
    reference=lambda xform, q: pack([*xform[:3], *q]),
    group=GROUP,
)
def transform_set_rotation_copy(xform: Transf[F], q: Quat[F]) -> Transf[F]:
    """Transform with the translation of `xform` and another rotation.

    Example: `turned = wp.transform_set_rotation_copy(xform, q)`.
    """


@builtin(
    "quat_from_matrix",
    cpp="wp::normalize(wp::quat_unscaled_from_matrix(wp::matrix_linear({mat})))",
    adjoint={
        "mat": lambda mat, ret, adj: f.matrix_affine(
            from_matrix_adjoint(f.matrix_linear(mat), ret, adj), f.quat_vector(adj).zero(), adj[3].zero()
        )
    },
    reference=lambda mat: _rotation_of(mat[:3, :3]),
    group="Quaternion math",
    sampling=_ROTATIONS,
)
def quat_from_affine(mat: Mat[Four, Four, F]) -> Quat[F]:
    """Quaternion of length 1 of the rotation in the upper left 3 x 3 part of a matrix.

    Example: `q = wp.quat_from_matrix(m)`.
    """


@builtin(
    cpp="wp::transform_from_matrix({mat})",
    adjoint={"mat": _from_matrix_rule},
    reference=lambda mat: pack([*mat[:3, 3], *_rotation_of(mat[:3, :3])]),
    group=GROUP,
    sampling=_ROTATIONS,
)
def transform_from_matrix(mat: Mat[Four, Four, F]) -> Transf[F]:
    """Transform of a matrix that rotates in its upper left 3 x 3 part and translates by its last column.

    Example: `xform = wp.transform_from_matrix(m)`.
    """


@builtin(
    cpp="wp::transform_to_matrix({xform})",
    adjoint={
        "xform": lambda xform, adj: f.transform_join(
            f.matrix_translation(adj), matrix_adjoint(f.transform_get_rotation(xform), f.matrix_linear(adj))
        )
    },
    reference=lambda xform: _affine(rotation_matrix(xform[3:]), xform[:3], constant(1, xform[0])),
    group=GROUP,
)
def transform_to_matrix(xform: Transf[F]) -> Mat[Four, Four, F]:
    """Matrix that transforms a point with a 1 appended as `xform` does.

    Example: `m = wp.transform_to_matrix(xform)`.
    """


@builtin(
    cpp="wp::transform_compose({position}, {rotation}, {scale})",
    adjoint={
        "position": lambda adj: f.matrix_translation(adj),
        "rotation": lambda rotation, scale, adj: matrix_adjoint(rotation, f.mul(f.matrix_linear(adj), f.diag(scale))),
        "scale": lambda rotation, adj: f.get_diag(f.mul(f.transpose(f.quat_to_matrix(rotation)), f.matrix_linear(adj))),
    },
    reference=_compose,
    group=GROUP,
)
def transform_compose(position: Vec[Three, F], rotation: Quat[F], scale: Vec[Three, F]) -> Mat[Four, Four, F]:
    """Matrix that scales along the axes, then rotates, then translates.

    Example: `m = wp.transform_compose(p, q, wp.vec3(1.0, 1.0, 2.0))`.
    """


@builtin(
    cpp="wp::transform_decompose({m}, {ret0}, {ret1}, {ret2})",
    adjoint={"m": _decompose_rule},
    reference=_decompose,
    group=GROUP,
    sampling=Sampling(condition=_is_decomposable),
)
def transform_decompose(m: Mat[Four, Four, F]) -> tuple[Vec[Three, F], Quat[F], Vec[Three, F]]:
    """Position, rotation and scale of a matrix made by `transform_compose` with positive scales.

    Example: `p, q, s = wp.transform_decompose(m)`.
    """


@builtin(
    cpp="wp::matrix_affine({linear}, {translation}, {corner})",
    adjoint={
        "linear": lambda adj: f.matrix_linear(adj),
        "translation": lambda adj: f.matrix_translation(adj),
        "corner": lambda adj: adj[3, 3],
    },
    reference=_affine,
    group="Internal",
    internal=True,
    bounded=True,
)
def matrix_affine(linear: Mat[Three, Three, F], translation: Vec[Three, F], corner: F) -> Mat[Four, Four, F]:
    """Matrix of a linear part, a last column and a last element; the rest of the last row is 0."""


@builtin(
    cpp="wp::matrix_linear({m})",
    adjoint={"m": lambda adj: f.matrix_affine(adj, f.get_diag(adj).zero(), adj[0, 0].zero())},
    reference=lambda m: m[:3, :3].copy(),
    group="Internal",
    internal=True,
    bounded=True,
)
def matrix_linear(m: Mat[Four, Four, F]) -> Mat[Three, Three, F]:
    """Upper left 3 x 3 part of a matrix."""


@builtin(
    cpp="wp::matrix_translation({m})",
    adjoint={"m": lambda adj: f.matrix_affine(f.skew(adj).zero(), adj, adj[0].zero())},
    reference=lambda m: m[:3, 3].copy(),
    group="Internal",
    internal=True,
    bounded=True,
)
def matrix_translation(m: Mat[Four, Four, F]) -> Vec[Three, F]:
    """First three elements of the last column."""


__all__ = ["GROUP"]
