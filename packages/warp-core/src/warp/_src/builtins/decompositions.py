"""Decompositions of 2 x 2 and 3 x 3 matrices.

Computed in float32 for float16 and by Jacobi rotations or Gram-Schmidt. Signs of vectors are fixed: the largest element
of each column of V or Q but the last is positive, and the last one makes a rotation. Values are sorted, largest first.

Adjoints divide by the differences between singular values, or eigenvalues. Where two are equal within a relative 1e-6
the vectors are not unique and the term is left out: functions of the values, and of U V^T, keep their right gradients.
"""

# ruff: noqa: N803 - mathematics has these names, and callers use them as keywords

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from warp._src.builtins import decomposition_reference as reference
from warp._src.builtins.declare import AdjointRule, Builtin, Sampling, builtin, register
from warp._src.builtins.expression import Expr, f
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


def _decomposition(
    *outputs: str, adjoint: AdjointRule, reference: Callable[..., Any], sampling: Sampling = _REGULAR
) -> Callable[[Callable[..., Any]], Builtin]:
    """Declare a decomposition that gives its factors, and one that assigns them to variables named `outputs`."""

    def declare(stub: Callable[..., Any]) -> Builtin:
        name = stub.__name__
        places = "".join(f", {{ret{number}}}" for number in range(len(outputs)))
        options: dict[str, Any] = {"cpp": f"wp::{name}({{A}}{places})", "group": GROUP, "sampling": sampling}
        record = builtin(reference=reference, adjoint={"A": adjoint}, **options)(stub)
        zeros = {output: _ZERO[output] for output in outputs}
        register(
            replace(
                record,
                parameters={**record.parameters, **dict(zip(outputs, record.results, strict=True))},
                adjoint={"A": adjoint, **zeros},
                reference=lambda A, *_: reference(A),
                doc=f"As `{name}(A)`, but assigns the variables {', '.join(outputs)}.\n\n"
                f"Example: `wp.{name}(A, {', '.join(outputs)})`.",
                updates=outputs,
            )
        )
        return record

    return declare


# What the variables held before does not matter.
_ZERO: dict[str, AdjointRule] = {
    "U": lambda U: U.zero(),
    "sigma": lambda sigma: sigma.zero(),
    "V": lambda V: V.zero(),
    "Q": lambda Q: Q.zero(),
    "R": lambda R: R.zero(),
    "d": lambda d: d.zero(),
}


def _by_svd(ret0: Expr, ret1: Expr, ret2: Expr, adj0: Expr, adj1: Expr, adj2: Expr) -> Expr:
    return f.svd_adjoint(ret0, ret1, ret2, adj0, adj1, adj2)


def _by_qr(ret0: Expr, ret1: Expr, adj0: Expr, adj1: Expr) -> Expr:
    return f.qr_adjoint(ret0, ret1, adj0, adj1)


def _by_eig(ret0: Expr, ret1: Expr, adj0: Expr, adj1: Expr) -> Expr:
    return f.eig_adjoint(ret0, ret1, adj0, adj1)


@_decomposition("U", "sigma", "V", adjoint=_by_svd, reference=reference.svd3)
def svd3(A: Mat[Three, Three, F]) -> tuple[Mat[Three, Three, F], Vec[Three, F], Mat[Three, Three, F]]:
    """Singular values: A = U diag(sigma) V^T with rotations U and V; the last of sigma has the sign of the determinant.

    Example: `U, sigma, V = wp.svd3(F)`; then `U @ wp.transpose(V)` is the rotation nearest to F.
    """


@_decomposition("U", "sigma", "V", adjoint=_by_svd, reference=reference.svd2)
def svd2(A: Mat[Two, Two, F]) -> tuple[Mat[Two, Two, F], Vec[Two, F], Mat[Two, Two, F]]:
    """Singular values: A = U diag(sigma) V^T with orthogonal U, a rotation V and sigma not negative.

    Example: `U, sigma, V = wp.svd2(F)`.
    """


@_decomposition("Q", "R", adjoint=_by_qr, reference=reference.qr3)
def qr3(A: Mat[Three, Three, F]) -> tuple[Mat[Three, Three, F], Mat[Three, Three, F]]:
    """Factors A = Q R: Q is a rotation, R upper triangular, its first two diagonal elements not negative.

    The adjoint is 0 where R is singular. Example: `Q, R = wp.qr3(m)`.
    """


@_decomposition("Q", "d", adjoint=_by_eig, reference=reference.eig3, sampling=_DISTINCT)
def eig3(A: Mat[Three, Three, F]) -> tuple[Mat[Three, Three, F], Vec[Three, F]]:
    """Eigenvectors, the columns of the rotation Q, and eigenvalues d of the symmetric part of A: Q diag(d) Q^T.

    Example: `Q, d = wp.eig3(m)`.
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
