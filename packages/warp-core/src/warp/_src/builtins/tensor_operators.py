"""Arithmetic operators on vectors, matrices, quaternions and transforms."""

from __future__ import annotations

import operator

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import f
from warp._src.builtins.operators import GROUP, divide
from warp._src.builtins.patterns import C, K, Mat, R, S, Ten, Vec, X
from warp._src.builtins.reference import Array, componentwise, pack, total
from warp._src.builtins.rules import strong, strong_dot

_NONZERO_SCALAR = Sampling(ranges={"s": (0.5, 2.0)})
_NONZERO_TENSOR = Sampling(ranges={"a": (0.5, 2.0)})


def matrix_vector(m: Array, v: Array) -> Array:
    return pack(total([m[i, j] * v[j] for j in range(m.shape[1])]) for i in range(m.shape[0]))


def vector_matrix(v: Array, m: Array) -> Array:
    return pack(total([v[i] * m[i, j] for i in range(m.shape[0])]) for j in range(m.shape[1]))


def matrix_matrix(a: Array, b: Array) -> Array:
    rows, inner, columns = a.shape[0], a.shape[1], b.shape[1]
    return pack(
        (total([a[i, k] * b[k, j] for k in range(inner)]) for i in range(rows) for j in range(columns)),
        (rows, columns),
    )


@builtin(
    "add",
    cpp="wp::tensor_add({a}, {b})",
    adjoint={"a": lambda adj: adj, "b": lambda adj: adj},
    reference=operator.add,
    group=GROUP,
)
def add_tensors(a: Ten[X, S], b: Ten[X, S]) -> Ten[X, S]:
    """Add component by component.

    Example: `wp.add(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5))` is [1, 3, 3.5].
    """


@builtin(
    "sub",
    cpp="wp::tensor_sub({a}, {b})",
    adjoint={"a": lambda adj: adj, "b": lambda adj: -adj},
    reference=operator.sub,
    group=GROUP,
)
def sub_tensors(a: Ten[X, S], b: Ten[X, S]) -> Ten[X, S]:
    """Subtract component by component.

    Example: `wp.sub(wp.vec3(1.0, 2.0, 3.0), wp.vec3(0.0, 1.0, 0.5))` is [1, 1, 2.5].
    """


@builtin(
    "neg",
    cpp="wp::tensor_neg({x})",
    adjoint={"x": lambda adj: -adj},
    reference=operator.neg,
    group=GROUP,
)
def neg_tensor(x: Ten[X, S]) -> Ten[X, S]:
    """Negate every component.

    Example: `wp.neg(wp.vec3(1.0, 2.0, 3.0))` is [-1, -2, -3].
    """


@builtin("pos", cpp="{x}", adjoint={"x": lambda adj: adj}, reference=lambda x: x, group=GROUP)
def pos_tensor(x: Ten[X, S]) -> Ten[X, S]:
    """Give the tensor itself.

    Example: `wp.pos(wp.vec3(1.0, 2.0, 3.0))` is [1, 2, 3].
    """


@builtin(
    "mul",
    cpp="wp::tensor_scale({a}, {s})",
    adjoint={"a": lambda s, adj: adj * s, "s": lambda a, adj: strong_dot(adj, a)},
    reference=operator.mul,
    group=GROUP,
)
def mul_tensor_scalar(a: Ten[X, S], s: S) -> Ten[X, S]:
    """Multiply every component by a scalar.

    Example: `wp.mul(wp.vec3(1.0, 2.0, 3.0), 0.5)` is [0.5, 1, 1.5].
    """


@builtin(
    "mul",
    cpp="wp::tensor_scale({a}, {s})",
    adjoint={"a": lambda s, adj: adj * s, "s": lambda a, adj: strong_dot(adj, a)},
    reference=lambda s, a: a * s,
    group=GROUP,
)
def mul_scalar_tensor(s: S, a: Ten[X, S]) -> Ten[X, S]:
    """Multiply every component by a scalar.

    Example: `wp.mul(0.5, wp.vec3(1.0, 2.0, 3.0))` is [0.5, 1, 1.5].
    """


@builtin(
    "div",
    cpp="wp::tensor_div({a}, {s})",
    adjoint={"a": lambda s, adj: adj / s, "s": lambda s, ret, adj: -(strong_dot(adj, ret) / s)},
    reference=componentwise(divide),
    group=GROUP,
    sampling=_NONZERO_SCALAR,
)
def div_tensor_scalar(a: Ten[X, S], s: S) -> Ten[X, S]:
    """Divide every component by a scalar.

    Example: `wp.div(wp.vec3(1.0, 2.0, 3.0), 0.5)` is [2, 4, 6].
    """


@builtin(
    "div",
    cpp="wp::tensor_div_into<{X}>({s}, {a})",
    adjoint={
        "s": lambda a, adj: strong_dot(adj, f.div(a.constant(1.0), a)),
        "a": lambda a, ret, adj: -(strong(adj, ret) / a),
    },
    reference=componentwise(divide),
    group=GROUP,
    sampling=_NONZERO_TENSOR,
)
def div_scalar_tensor(s: S, a: Ten[X, S]) -> Ten[X, S]:
    """Divide a scalar by every component.

    Example: `wp.div(0.5, wp.vec3(1.0, 2.0, 3.0))` is [0.5, 0.25, 0.166667].
    """


@builtin(
    "mul",
    cpp="wp::mul_matrix_vector({a}, {b})",
    adjoint={"a": lambda b, adj: f.outer(adj, b), "b": lambda a, adj: f.mul(adj, a)},
    reference=matrix_vector,
    group=GROUP,
)
def mul_matrix_vector(a: Mat[R, C, S], b: Vec[C, S]) -> Vec[R, S]:
    """Multiply a matrix by a column vector.

    Example: `wp.mul(wp.mat22(1.0, 2.0, 3.0, 4.0), wp.vec2(1.0, 2.0))` is [5, 11].
    """


@builtin(
    "mul",
    cpp="wp::mul_vector_matrix({a}, {b})",
    adjoint={"a": lambda b, adj: f.mul(b, adj), "b": lambda a, adj: f.outer(a, adj)},
    reference=vector_matrix,
    group=GROUP,
)
def mul_vector_matrix(a: Vec[R, S], b: Mat[R, C, S]) -> Vec[C, S]:
    """Multiply a row vector by a matrix.

    Example: `wp.mul(wp.vec2(1.0, 2.0), wp.mat22(1.0, 2.0, 3.0, 4.0))` is [7, 10].
    """


@builtin(
    "mul",
    cpp="wp::mul_matrices({a}, {b})",
    adjoint={
        "a": lambda b, adj: f.mul(adj, f.transpose(b)),
        "b": lambda a, adj: f.mul(f.transpose(a), adj),
    },
    reference=matrix_matrix,
    group=GROUP,
)
def mul_matrices(a: Mat[R, K, S], b: Mat[K, C, S]) -> Mat[R, C, S]:
    """Multiply two matrices.

    Example: `wp.mul(wp.mat22(1, 2, 3, 4), wp.mat22(0, 1, 1, 2))` is [[2, 5], [4, 11]].
    """


__all__ = ["matrix_matrix", "matrix_vector", "vector_matrix"]
