"""Decompositions of 2 x 2 and 3 x 3 matrices.

Computed in float32 for float16 and by Jacobi rotations or Gram-Schmidt. Signs of vectors are fixed: the largest element
of each column of V or Q but the last is positive, and the last one makes a rotation. Values are sorted, largest first.

Adjoints divide by the differences between singular values, or eigenvalues. Where two are equal within a relative 1e-6
the vectors are not unique and the term is left out: functions of the values, and of U V^T, keep their right gradients.
"""

# ruff: noqa: N803 - mathematics has these names, and callers use them as keywords

from __future__ import annotations

from typing import Any

import numpy as np

from warp._src.builtins import decomposition_reference as reference
from warp._src.builtins.declare import AdjointRule, Sampling, builtin
from warp._src.builtins.expression import f
from warp._src.builtins.patterns import F, L, Mat, Three, Two, Vec
from warp._src.builtins.reference import Array
from warp._src.builtins.rules import INTERNAL

GROUP = "Decompositions"


def _has_distinct_values(matrix: Array) -> bool:
    sigma = np.linalg.svd(matrix.astype(float), compute_uv=False)
    return (
        float(np.min(-np.diff(sigma))) > 0.15
        and float(sigma[-1]) > 0.15
        and _has_clear_signs(np.linalg.svd(matrix.astype(float))[2].T)
    )


def _has_clear_signs(columns: Array) -> bool:
    """Tell whether the largest element of each column is clearly the largest, which decides about its sign."""
    sizes = np.sort(np.abs(columns), axis=0)
    return bool(np.min(sizes[-1] - sizes[-2]) > 0.05)


def _has_distinct_eigenvalues(matrix: Array) -> bool:
    d, q = np.linalg.eigh((matrix + matrix.T).astype(float) / 2)
    return float(np.min(np.diff(d))) > 0.2 and _has_clear_signs(q)


_REGULAR = Sampling(condition=lambda A, *rest: _has_distinct_values(A))
_DISTINCT = Sampling(condition=lambda A, *rest: _has_distinct_eigenvalues(A))

_SVD: dict[str, AdjointRule] = {
    "A": lambda ret0, ret1, ret2, adj0, adj1, adj2: f.svd_adjoint(ret0, ret1, ret2, adj0, adj1, adj2)
}
_QR: dict[str, AdjointRule] = {"A": lambda ret0, ret1, adj0, adj1: f.qr_adjoint(ret0, ret1, adj0, adj1)}
_EIG: dict[str, AdjointRule] = {"A": lambda ret0, ret1, adj0, adj1: f.eig_adjoint(ret0, ret1, adj0, adj1)}


def _ignoring(rules: dict[str, AdjointRule], *names: str) -> dict[str, AdjointRule]:
    """Add rules for parameters that are only written to."""
    zeros: dict[str, AdjointRule] = {name: _ZERO[name] for name in names}
    return {**rules, **zeros}


_ZERO: dict[str, AdjointRule] = {
    "U": lambda U: U.zero(),
    "sigma": lambda sigma: sigma.zero(),
    "V": lambda V: V.zero(),
    "Q": lambda Q: Q.zero(),
    "R": lambda R: R.zero(),
    "d": lambda d: d.zero(),
}


def _of_first(function: Any) -> Any:
    """Make the reference of an overload that writes to its arguments after the first."""
    return lambda A, *outputs: function(A)


@builtin(
    "svd3",
    cpp="wp::svd3({A}, {ret0}, {ret1}, {ret2})",
    adjoint=_SVD,
    reference=reference.svd3,
    group=GROUP,
    sampling=_REGULAR,
)
def svd3(A: Mat[Three, Three, F]) -> tuple[Mat[Three, Three, F], Vec[Three, F], Mat[Three, Three, F]]:
    """Singular values: A = U diag(sigma) V^T with rotations U and V; the last of sigma has the sign of the determinant.

    Example: `U, sigma, V = wp.svd3(F)`; then `U @ wp.transpose(V)` is the rotation nearest to F.
    """


@builtin(
    "svd3",
    cpp="wp::svd3({A}, {ret0}, {ret1}, {ret2})",
    adjoint=_ignoring(_SVD, "U", "sigma", "V"),
    reference=_of_first(reference.svd3),
    group=GROUP,
    sampling=_REGULAR,
    updates=("U", "sigma", "V"),
)
def svd3_into(A: Mat[Three, Three, F], U: Mat[Three, Three, F], sigma: Vec[Three, F], V: Mat[Three, Three, F]) -> None:
    """As `svd3(A)`, but assigns the variables U, sigma and V.

    Example: `wp.svd3(F, U, sigma, V)`.
    """


@builtin(
    "svd2",
    cpp="wp::svd2({A}, {ret0}, {ret1}, {ret2})",
    adjoint=_SVD,
    reference=reference.svd2,
    group=GROUP,
    sampling=_REGULAR,
)
def svd2(A: Mat[Two, Two, F]) -> tuple[Mat[Two, Two, F], Vec[Two, F], Mat[Two, Two, F]]:
    """Singular values: A = U diag(sigma) V^T with orthogonal U, a rotation V and sigma not negative.

    Example: `U, sigma, V = wp.svd2(F)`.
    """


@builtin(
    "svd2",
    cpp="wp::svd2({A}, {ret0}, {ret1}, {ret2})",
    adjoint=_ignoring(_SVD, "U", "sigma", "V"),
    reference=_of_first(reference.svd2),
    group=GROUP,
    sampling=_REGULAR,
    updates=("U", "sigma", "V"),
)
def svd2_into(A: Mat[Two, Two, F], U: Mat[Two, Two, F], sigma: Vec[Two, F], V: Mat[Two, Two, F]) -> None:
    """As `svd2(A)`, but assigns the variables U, sigma and V.

    Example: `wp.svd2(F, U, sigma, V)`.
    """


@builtin(
    "qr3",
    cpp="wp::qr3({A}, {ret0}, {ret1})",
    adjoint=_QR,
    reference=reference.qr3,
    group=GROUP,
    sampling=_REGULAR,
)
def qr3(A: Mat[Three, Three, F]) -> tuple[Mat[Three, Three, F], Mat[Three, Three, F]]:
    """Factors A = Q R: Q is a rotation, R upper triangular, its first two diagonal elements not negative.

    The adjoint is 0 where R is singular. Example: `Q, R = wp.qr3(m)`.
    """


@builtin(
    "qr3",
    cpp="wp::qr3({A}, {ret0}, {ret1})",
    adjoint=_ignoring(_QR, "Q", "R"),
    reference=_of_first(reference.qr3),
    group=GROUP,
    sampling=_REGULAR,
    updates=("Q", "R"),
)
def qr3_into(A: Mat[Three, Three, F], Q: Mat[Three, Three, F], R: Mat[Three, Three, F]) -> None:
    """As `qr3(A)`, but assigns the variables Q and R.

    Example: `wp.qr3(m, Q, R)`.
    """


@builtin(
    "eig3",
    cpp="wp::eig3({A}, {ret0}, {ret1})",
    adjoint=_EIG,
    reference=reference.eig3,
    group=GROUP,
    sampling=_DISTINCT,
)
def eig3(A: Mat[Three, Three, F]) -> tuple[Mat[Three, Three, F], Vec[Three, F]]:
    """Eigenvectors, the columns of the rotation Q, and eigenvalues d of the symmetric part of A: Q diag(d) Q^T.

    Example: `Q, d = wp.eig3(m)`.
    """


@builtin(
    "eig3",
    cpp="wp::eig3({A}, {ret0}, {ret1})",
    adjoint=_ignoring(_EIG, "Q", "d"),
    reference=_of_first(reference.eig3),
    group=GROUP,
    sampling=_DISTINCT,
    updates=("Q", "d"),
)
def eig3_into(A: Mat[Three, Three, F], Q: Mat[Three, Three, F], d: Vec[Three, F]) -> None:
    """As `eig3(A)`, but assigns the variables Q and d.

    Example: `wp.eig3(m, Q, d)`.
    """


@builtin(
    "svd_adjoint",
    cpp="wp::svd_adjoint({u}, {sigma}, {v}, {adj_u}, {adj_sigma}, {adj_v})",
    adjoint=INTERNAL,
    reference=reference.svd_adjoint,
    group=GROUP,
    internal=True,
)
def svd_adjoint(
    u: Mat[L, L, F], sigma: Vec[L, F], v: Mat[L, L, F], adj_u: Mat[L, L, F], adj_sigma: Vec[L, F], adj_v: Mat[L, L, F]
) -> Mat[L, L, F]:
    """Adjoint of `svd2` and `svd3`."""


@builtin(
    "qr_adjoint",
    cpp="wp::qr_adjoint({q}, {r}, {adj_q}, {adj_r})",
    adjoint=INTERNAL,
    reference=reference.qr_adjoint,
    group=GROUP,
    sampling=Sampling(condition=lambda q, r, adj_q, adj_r: float(np.min(np.abs(np.diag(r)))) > 0.5),
    internal=True,
)
def qr_adjoint(
    q: Mat[Three, Three, F], r: Mat[Three, Three, F], adj_q: Mat[Three, Three, F], adj_r: Mat[Three, Three, F]
) -> Mat[Three, Three, F]:
    """Adjoint of `qr3`."""


@builtin(
    "eig_adjoint",
    cpp="wp::eig_adjoint({q}, {d}, {adj_q}, {adj_d})",
    adjoint=INTERNAL,
    reference=reference.eig_adjoint,
    group=GROUP,
    internal=True,
)
def eig_adjoint(
    q: Mat[Three, Three, F], d: Vec[Three, F], adj_q: Mat[Three, Three, F], adj_d: Vec[Three, F]
) -> Mat[Three, Three, F]:
    """Adjoint of `eig3`."""


__all__ = ["GROUP"]
