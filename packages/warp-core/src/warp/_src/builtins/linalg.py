"""Vectors, and what works component by component."""

from __future__ import annotations

import operator

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import f
from warp._src.builtins.operators import divide
from warp._src.builtins.patterns import C, F, Mat, N, Quat, R, S, Six, Ten, Three, Vec, X
from warp._src.builtins.reference import Array, componentwise, dot, pack
from warp._src.builtins.rotation_reference import cross as cross_product
from warp._src.builtins.rotation_reference import unit
from warp._src.builtins.rounding import sign_of
from warp._src.builtins.rules import PIECEWISE_CONSTANT, normalized_adjoint, strong, strong_dot

GROUP = "Vector math"

_NOT_NULL = Sampling(condition=lambda a: float(np.sqrt(np.sum(np.square(a)))) > 0.3)
_COMPONENTS_NOT_NULL = Sampling(condition=lambda x: float(np.min(np.abs(x))) > 0.05)


def _sum_products(a: Array, b: Array) -> object:
    return dot(a, b)


@builtin(
    "dot",
    cpp="wp::tensor_dot({a}, {b})",
    adjoint={"a": lambda b, adj: adj * b, "b": lambda a, adj: adj * a},
    reference=_sum_products,
    group=GROUP,
)
def dot_vectors(a: Vec[N, S], b: Vec[N, S]) -> S:
    """Sum of the products of the components.

    Example: `wp.dot(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5))` is 3.5.
    """


@builtin(
    "dot",
    cpp="wp::tensor_dot({a}, {b})",
    adjoint={"a": lambda b, adj: adj * b, "b": lambda a, adj: adj * a},
    reference=_sum_products,
    group="Quaternion math",
)
def dot_quats(a: Quat[F], b: Quat[F]) -> F:
    """Sum of the products of the components.

    Example: `wp.dot(wp.quat(0.0, 0.0, 0.6, 0.8), wp.quat(0.0, 0.6, 0.0, 0.8))` is 0.64.
    """


@builtin(
    cpp="wp::tensor_dot({a}, {b})",
    adjoint={"a": lambda b, adj: adj * b, "b": lambda a, adj: adj * a},
    reference=_sum_products,
    group=GROUP,
)
def ddot(a: Mat[R, C, S], b: Mat[R, C, S]) -> S:
    """Sum of the products of the elements of two matrices.

    Example: `wp.ddot(wp.mat22(1.0, 2.0, 3.0, 4.0), wp.mat22(0.0, 1.0, 1.0, 2.0))` is 13.
    """


@builtin(
    cpp="wp::cross({a}, {b})",
    adjoint={"a": lambda b, adj: f.cross(b, adj), "b": lambda a, adj: f.cross(adj, a)},
    reference=cross_product,
    group=GROUP,
)
def cross(a: Vec[Three, S], b: Vec[Three, S]) -> Vec[Three, S]:
    """Cross product.

    Example: `wp.cross(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5))` is [-2, -0.5, 1].
    """


@builtin(
    "length",
    cpp="wp::length({a})",
    adjoint={"a": lambda a, adj: adj * f.normalize(a)},
    reference=lambda a: np.sqrt(dot(a, a)),
    group=GROUP,
    sampling=_NOT_NULL,
)
def length_vector(a: Vec[N, F]) -> F:
    """Euclidean length; its derivative at 0 is taken as 0.

    Example: `wp.length(wp.vec3(1.0, 2.0, 3.0))` is 3.74166.
    """


@builtin(
    "length",
    cpp="wp::length({a})",
    adjoint={"a": lambda a, adj: adj * f.normalize(a)},
    reference=lambda a: np.sqrt(dot(a, a)),
    group="Quaternion math",
    sampling=_NOT_NULL,
)
def length_quat(a: Quat[F]) -> F:
    """Euclidean length of the four components; its derivative at 0 is taken as 0.

    Example: `wp.length(wp.quat(0.0, 0.0, 0.6, 0.8))` is 1.
    """


@builtin(
    "length_sq",
    cpp="wp::tensor_dot({a}, {a})",
    adjoint={"a": lambda a, adj: adj * a * 2.0},
    reference=lambda a: dot(a, a),
    group=GROUP,
)
def length_sq_vector(a: Vec[N, S]) -> S:
    """Square of the length.

    Example: `wp.length_sq(wp.vec3(1.0, 2.0, 3.0))` is 14.
    """


@builtin(
    "length_sq",
    cpp="wp::tensor_dot({a}, {a})",
    adjoint={"a": lambda a, adj: adj * a * 2.0},
    reference=lambda a: dot(a, a),
    group="Quaternion math",
)
def length_sq_quat(a: Quat[F]) -> F:
    """Square of the length of the four components.

    Example: `wp.length_sq(wp.quat(0.0, 0.0, 0.6, 0.8))` is 1.
    """


@builtin(
    "normalize",
    cpp="wp::normalize({a})",
    adjoint={"a": lambda a, ret, adj: normalized_adjoint(f.length(a), ret, adj)},
    reference=unit,
    group=GROUP,
    bounded=True,
    sampling=_NOT_NULL,
)
def normalize_vector(a: Vec[N, F]) -> Vec[N, F]:
    """Divide by the length; 0 stays 0, and its derivative is taken as 0.

    Example: `wp.normalize(wp.vec3(1.0, 2.0, 3.0))` is [0.267261, 0.534522, 0.801784].
    """


@builtin(
    "normalize",
    cpp="wp::normalize({a})",
    adjoint={"a": lambda a, ret, adj: normalized_adjoint(f.length(a), ret, adj)},
    reference=unit,
    group="Quaternion math",
    bounded=True,
    sampling=_NOT_NULL,
)
def normalize_quat(a: Quat[F]) -> Quat[F]:
    """Divide by the length; 0 stays 0, and its derivative is taken as 0.

    Example: `wp.normalize(wp.quat(0.0, 0.0, 0.6, 0.8))` is [0, 0, 0.6, 0.8].
    """


@builtin(
    "abs",
    cpp="wp::tensor_abs({x})",
    adjoint={"x": lambda x, adj: strong(adj, f.sign(x))},
    reference=np.abs,
    group=GROUP,
    sampling=_COMPONENTS_NOT_NULL,
)
def abs_vector(x: Vec[N, S]) -> Vec[N, S]:
    """Absolute value of each component.

    Example: `wp.abs(wp.vec3(-1.0, 2.0, -3.0))` is [1, 2, 3].
    """


@builtin(
    "sign",
    cpp="wp::tensor_sign({x})",
    adjoint=PIECEWISE_CONSTANT,
    reference=componentwise(sign_of),
    group=GROUP,
    bounded=True,
    sampling=_COMPONENTS_NOT_NULL,
)
def sign_vector(x: Vec[N, S]) -> Vec[N, S]:
    """Give -1 for each component below 0, 1 for the others.

    Example: `wp.sign(wp.vec3(-1.0, 2.0, -3.0))` is [-1, 1, -1].
    """


@builtin(
    "cw_mul",
    cpp="wp::tensor_products({a}, {b})",
    adjoint={"a": lambda b, adj: strong(adj, b), "b": lambda a, adj: strong(adj, a)},
    reference=operator.mul,
    group=GROUP,
)
def cw_mul_vectors(a: Vec[N, S], b: Vec[N, S]) -> Vec[N, S]:
    """Multiply component by component.

    Example: `wp.cw_mul(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5))` is [0, 2, 1.5].
    """


@builtin(
    "cw_mul",
    cpp="wp::tensor_products({a}, {b})",
    adjoint={"a": lambda b, adj: strong(adj, b), "b": lambda a, adj: strong(adj, a)},
    reference=operator.mul,
    group=GROUP,
)
def cw_mul_matrices(a: Mat[R, C, S], b: Mat[R, C, S]) -> Mat[R, C, S]:
    """Multiply element by element.

    Example: `wp.cw_mul(wp.mat22(1, 2, 3, 4), wp.mat22(0, 1, 1, 2))` is [[0, 2], [3, 8]].
    """


@builtin(
    "cw_div",
    cpp="wp::tensor_quotients({a}, {b})",
    adjoint={"a": lambda b, adj: adj / b, "b": lambda b, ret, adj: -(strong(adj, ret) / b)},
    reference=componentwise(divide),
    group=GROUP,
    sampling=Sampling(ranges={"b": (0.5, 2.0)}),
)
def cw_div_vectors(a: Vec[N, S], b: Vec[N, S]) -> Vec[N, S]:
    """Divide component by component.

    Example: `wp.cw_div(wp.vec3(1.0, 2.0, 3.0), wp.vec3(4.0, 1.0, 0.5))` is [0.25, 2, 6].
    """


@builtin(
    "cw_div",
    cpp="wp::tensor_quotients({a}, {b})",
    adjoint={"a": lambda b, adj: adj / b, "b": lambda b, ret, adj: -(strong(adj, ret) / b)},
    reference=componentwise(divide),
    group=GROUP,
    sampling=Sampling(ranges={"b": (0.5, 2.0)}),
)
def cw_div_matrices(a: Mat[R, C, S], b: Mat[R, C, S]) -> Mat[R, C, S]:
    """Divide element by element.

    Example: `wp.cw_div(wp.mat22(1, 2, 3, 4), wp.mat22(0, 1, 1, 2))` is [[inf, 2], [3, 2]].
    """


@builtin(
    "lerp",
    cpp="wp::tensor_lerp({a}, {b}, {t})",
    adjoint={
        "a": lambda t, adj: adj * (1.0 - t),
        "b": lambda t, adj: adj * t,
        "t": lambda a, b, adj: strong_dot(adj, b - a),
    },
    reference=lambda a, b, t: a * (1 - t) + b * t,
    group=GROUP,
)
def lerp_tensors(a: Ten[X, F], b: Ten[X, F], t: F) -> Ten[X, F]:
    """Interpolate linearly: a * (1 - t) + b * t.

    Example: `wp.lerp(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5), 0.5)` is [0.5, 1.5, 1.75].
    """


@builtin(
    cpp="wp::outer({a}, {b})",
    adjoint={"a": lambda b, adj: f.mul(adj, b), "b": lambda a, adj: f.mul(a, adj)},
    reference=lambda a, b: pack((x * y for x in a for y in b), (a.size, b.size)),
    group=GROUP,
)
def outer(a: Vec[R, S], b: Vec[C, S]) -> Mat[R, C, S]:
    """Matrix of the products of all pairs of components.

    Example: `wp.outer(wp.vec2(1.0, 2.0), wp.vec2(0.5, 3.0))` is [[0.5, 3], [1, 6]].
    """


@builtin(
    cpp="wp::skew({vec})",
    adjoint={"vec": lambda adj: f.axial(adj)},
    reference=lambda vec: pack(
        [vec[0] * 0, -vec[2], vec[1], vec[2], vec[0] * 0, -vec[0], -vec[1], vec[0], vec[0] * 0], (3, 3)
    ),
    group=GROUP,
)
def skew(vec: Vec[Three, F]) -> Mat[Three, Three, F]:
    """Make the matrix that a cross product with `v` multiplies by.

    Example: `wp.skew(wp.vec3(1.0, 2.0, 3.0))` is [[0, -3, 2], [3, 0, -1], [-2, 1, 0]].
    """


@builtin(
    cpp="wp::spatial_half<0>({svec})",
    adjoint={"svec": lambda adj: f.spatial_join(adj, adj.zero())},
    reference=lambda svec: svec[:3].copy(),
    group="Spatial math",
)
def spatial_top(svec: Vec[Six, F]) -> Vec[Three, F]:
    """First three components of a spatial vector.

    Example: `wp.spatial_top(wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))` is [1, 2, 3].
    """


@builtin(
    cpp="wp::spatial_half<3>({svec})",
    adjoint={"svec": lambda adj: f.spatial_join(adj.zero(), adj)},
    reference=lambda svec: svec[3:].copy(),
    group="Spatial math",
)
def spatial_bottom(svec: Vec[Six, F]) -> Vec[Three, F]:
    """Last three components of a spatial vector.

    Example: `wp.spatial_bottom(wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))` is [4, 5, 6].
    """


@builtin(
    cpp="wp::tensor_dot({a}, {b})",
    adjoint={"a": lambda b, adj: adj * b, "b": lambda a, adj: adj * a},
    reference=_sum_products,
    group="Spatial math",
)
def spatial_dot(a: Vec[Six, F], b: Vec[Six, F]) -> F:
    """Sum of the products of the components of two spatial vectors.

    Example: `wp.spatial_dot(wp.spatial_vector(1, 2, 3, 4, 5, 6), wp.spatial_vector(0, 1, 0, 1, 0, 2))` is
    18.
    """


__all__ = ["GROUP"]
