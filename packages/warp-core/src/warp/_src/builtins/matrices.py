"""Square and rectangular matrices."""

from __future__ import annotations

from itertools import product

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import C, F, L, Mat, N, R, S, Three, Vec
from warp._src.builtins.reference import Array, Number, constant, pack, total

GROUP = "Matrix math"

REGULAR = Sampling(condition=lambda m: abs(float(determinant_of(m))) > 0.3)


def cofactors(m: Array) -> Array:
    """Give the matrix of cofactors, the derivative of the determinant."""
    size = len(m)
    return pack((_cofactor(m, row, column) for row, column in product(range(size), repeat=2)), m.shape)


def _cofactor(m: Array, row: int, column: int) -> Number:
    size = len(m)
    # Rows and columns in cyclic order carry the sign, except in even sizes.
    rows = [(row + step) % size for step in range(1, size)]
    columns = [(column + step) % size for step in range(1, size)]
    minor = _minor(m, rows, columns)
    return -minor if size % 2 == 0 and (row + column) % 2 else minor


def _minor(m: Array, rows: list[int], columns: list[int]) -> Number:
    if len(rows) == 1:
        return m[rows[0], columns[0]]
    if len(rows) == 2:
        (i, j), (a, b) = rows, columns
        return m[i, a] * m[j, b] - m[i, b] * m[j, a]
    i, j, k = rows
    a, b, c = columns
    return (
        m[i, a] * (m[j, b] * m[k, c] - m[j, c] * m[k, b])
        - m[i, b] * (m[j, a] * m[k, c] - m[j, c] * m[k, a])
        + m[i, c] * (m[j, a] * m[k, b] - m[j, b] * m[k, a])
    )


def cofactors_along(m: Array, d: Array) -> Array:
    """Give the derivative of the cofactors along a direction: with one row after the other replaced by it."""
    size = len(m)
    found = [constant(0, m[0, 0])] * m.size
    for row in range(size):
        replaced = m.copy()
        replaced[row] = d[row]
        for i, j in product(range(size), repeat=2):
            if i != row:
                found[i * size + j] = found[i * size + j] + _cofactor(replaced, i, j)
    return pack(found, m.shape)


def _third_derivative(m: Expr, d: Expr, adj: Expr) -> Expr:
    """Contract the third derivative of the determinant, a form in `m` of degree size - 3, with two directions."""
    size = m.value.type.shape[0]
    if size == 2:
        return m.zero()
    if size == 3:
        return f.cofactor_along(d, adj)
    return f.cofactor_along(m + d, adj) - f.cofactor_along(m, adj) - f.cofactor_along(d, adj)


def determinant_of(m: Array) -> Number:
    """Expand the determinant along the first row."""
    return total([m[0, column] * _cofactor(m, 0, column) for column in range(len(m))])


def inverse_of(m: Array) -> Array:
    """Invert a matrix by its cofactors; a singular one gives 0."""
    scale = determinant_of(m)
    if scale == 0:
        return pack([constant(0, scale)] * m.size, m.shape)
    cofactor = cofactors(m)
    return pack((cofactor[j, i] / scale for i, j in product(range(len(m)), repeat=2)), m.shape)


def _diagonal(v: Array, shape: tuple[int, int]) -> Array:
    return pack((v[i] if i == j else constant(0, v[i]) for i, j in product(range(v.size), repeat=2)), shape)


@builtin(
    cpp="wp::transpose({a})",
    adjoint={"a": lambda adj: f.transpose(adj)},
    reference=lambda a: a.T.copy(),
    group=GROUP,
)
def transpose(a: Mat[R, C, S]) -> Mat[C, R, S]:
    """Swap rows and columns.

    Example: `wp.transpose(wp.mat22(1.0, 2.0, 3.0, 4.0))` is [[1, 3], [2, 4]].
    """


@builtin(
    cpp="wp::trace({a})",
    adjoint={"a": lambda a, adj: f.scaled_identity(adj, a)},
    reference=lambda a: total([a[i, i] for i in range(len(a))]),
    group=GROUP,
)
def trace(a: Mat[N, N, S]) -> S:
    """Sum of the diagonal.

    Example: `wp.trace(wp.mat22(1.0, 2.0, 3.0, 4.0))` is 5.
    """


@builtin(
    cpp="wp::diag({vec})",
    adjoint={"vec": lambda adj: f.get_diag(adj)},
    reference=lambda vec: _diagonal(vec, (vec.size, vec.size)),
    group=GROUP,
)
def diag(vec: Vec[N, S]) -> Mat[N, N, S]:
    """Matrix with the given diagonal and 0 elsewhere.

    Example: `wp.diag(wp.vec3(1.0, 2.0, 3.0))` is [[1, 0, 0], [0, 2, 0], [0, 0, 3]].
    """


@builtin(
    cpp="wp::get_diag({mat})",
    adjoint={"mat": lambda adj: f.diag(adj)},
    reference=lambda mat: pack(mat[i, i] for i in range(len(mat))),
    group=GROUP,
)
def get_diag(mat: Mat[N, N, S]) -> Vec[N, S]:
    """Diagonal of a square matrix.

    Example: `wp.get_diag(wp.mat22(1.0, 2.0, 3.0, 4.0))` is [1, 4].
    """


@builtin(
    cpp="wp::determinant({a})",
    adjoint={"a": lambda a, adj: adj * f.cofactor(a)},
    reference=determinant_of,
    group=GROUP,
)
def determinant(a: Mat[L, L, F]) -> F:
    """Determinant of a matrix of size 2, 3 or 4.

    Example: `wp.determinant(wp.mat22(1.0, 2.0, 3.0, 4.0))` is -2.
    """


@builtin(
    cpp="wp::inverse({a})",
    adjoint={"a": lambda ret, adj: -f.mul(f.mul(f.transpose(ret), adj), f.transpose(ret))},
    reference=inverse_of,
    group=GROUP,
    sampling=REGULAR,
)
def inverse(a: Mat[L, L, F]) -> Mat[L, L, F]:
    """Inverse of a matrix of size 2, 3 or 4; 0 if the determinant is 0.

    Example: `wp.inverse(wp.mat22(1.0, 2.0, 3.0, 4.0))` is [[-2, 1], [1.5, -0.5]].
    """


@builtin(
    cpp="wp::cofactor({m})",
    adjoint={"m": lambda m, adj: f.cofactor_along(m, adj)},
    reference=cofactors,
    group=GROUP,
    internal=True,
)
def cofactor(m: Mat[L, L, F]) -> Mat[L, L, F]:
    """Matrix of cofactors, the derivative of the determinant."""


@builtin(
    cpp="wp::cofactor_along({m}, {d})",
    adjoint={"m": _third_derivative, "d": lambda m, adj: f.cofactor_along(m, adj)},
    reference=cofactors_along,
    group=GROUP,
    internal=True,
)
def cofactor_along(m: Mat[L, L, F], d: Mat[L, L, F]) -> Mat[L, L, F]:
    """Derivative of the cofactors along `d`, which is symmetric: the second derivative of the determinant."""


@builtin(
    cpp="wp::scaled_identity({s}, {like})",
    adjoint={"s": lambda adj: f.trace(adj)},
    reference=lambda s, like: _diagonal(pack([s] * len(like)), like.shape),
    group=GROUP,
    internal=True,
    bounded=True,
)
def scaled_identity(s: S, like: Mat[N, N, S]) -> Mat[N, N, S]:
    """Matrix of the type of `like` with a scalar on the diagonal."""


@builtin(
    cpp="wp::axial({m})",
    adjoint={"m": lambda adj: f.skew(adj)},
    reference=lambda m: pack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]),
    group=GROUP,
    internal=True,
)
def axial(m: Mat[Three, Three, F]) -> Vec[Three, F]:
    """Adjoint of `skew`: twice the axial vector of a matrix."""


__all__ = ["GROUP", "REGULAR", "cofactors", "determinant_of", "inverse_of"]
