"""Decompositions of small matrices by NumPy, with the signs and the order that the C++ text gives.

Columns that belong together may be negated together: `aligned` fixes the signs, so that references and compiled code
agree where the decomposition is unique but for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warp._src.builtins.reference import Array
from warp._src.ir.dual import Dual

_STEP = 1e-6

GAP = 1e-6
"""Relative gap below which singular values or eigenvalues count as equal in adjoints."""


def _oriented(matrix: Array) -> Array:
    """Negate columns until the largest element of all but the last is positive and the determinant is."""
    result = matrix.copy()
    for column in range(len(result) - 1):
        if result[np.argmax(np.abs(result[:, column])), column] < 0:
            result[:, column] = -result[:, column]
    if np.linalg.det(result) < 0:
        result[:, -1] = -result[:, -1]
    return result


def _typed(source: Array, *results: Array) -> tuple[Array, ...]:
    return tuple(np.ascontiguousarray(result).astype(source.dtype) for result in results)


def with_duals(function: Callable[[Array], tuple[Array, ...]]) -> Callable[[Array], tuple[Array, ...]]:
    """Extend a decomposition to dual numbers, whose derivatives are taken by central differences."""

    def reference(a: Array) -> tuple[Array, ...]:
        if a.dtype != object:
            return function(a)
        values = np.array([x.value for x in a.flat]).reshape(a.shape)
        count = max(np.size(x.d) for x in a.flat)
        slopes = np.array([np.broadcast_to(x.d, count) for x in a.flat]).reshape(*a.shape, count)
        ends = [[function(values + step * slopes[..., k]) for step in (_STEP, -_STEP)] for k in range(count)]
        found = []
        for number, result in enumerate(function(values)):
            d = np.stack([(high[number] - low[number]) / (2 * _STEP) for high, low in ends], axis=-1)
            duals = np.empty(result.shape, dtype=object)
            for index in np.ndindex(result.shape):
                duals[index] = Dual(result[index], d[index])
            found.append(duals)
        return tuple(found)

    return reference


@with_duals
def svd3(a: Array) -> tuple[Array, ...]:
    """Give U, sigma and V with rotations U and V; the last singular value has the sign of the determinant."""
    wide = a.astype(float)
    u, sigma, vt = np.linalg.svd(wide)
    v = _oriented(vt.T)
    u = u * np.sum(v * vt.T, axis=0).round()
    if np.linalg.det(u) < 0:
        u[:, -1], sigma[-1] = -u[:, -1], -sigma[-1]
    return _typed(a, u, sigma, v)


@with_duals
def svd2(a: Array) -> tuple[Array, ...]:
    """Give U, sigma and V with a rotation V and singular values that are not negative."""
    wide = a.astype(float)
    u, sigma, vt = np.linalg.svd(wide)
    v = _oriented(vt.T)
    return _typed(a, u * np.sum(v * vt.T, axis=0).round(), sigma, v)


@with_duals
def qr3(a: Array) -> tuple[Array, ...]:
    """Give a rotation Q and R, whose first two diagonal elements are not negative."""
    q, r = np.linalg.qr(a.astype(float))
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    signs[2] *= np.sign(np.linalg.det(q * signs))
    return _typed(a, q * signs, r * signs[:, None])


@with_duals
def eig3(a: Array) -> tuple[Array, ...]:
    """Give a rotation Q of eigenvectors and the eigenvalues of the symmetric part, largest first."""
    wide = a.astype(float)
    d, q = np.linalg.eigh((wide + wide.T) / 2)
    return _typed(a, _oriented(q[:, ::-1]), d[::-1])


def _inverse(differences: Array, scale: Any) -> Array:
    """Invert, but give 0 for what is 0 within `GAP` of a scale."""
    is_apart = np.abs(differences) > GAP * scale
    return np.where(is_apart, 1 / np.where(is_apart, differences, 1), 0)


def svd_adjoint(u: Array, sigma: Array, v: Array, adj_u: Array, adj_sigma: Array, adj_v: Array) -> Any:
    """Give the adjoint of U, sigma and V (Townsend 2016), split into differences and sums of singular values.

    What depends on U V^T alone passes through the sums, which equal singular values do not disturb.
    """
    dtype = u.dtype
    u, sigma, v, adj_u, adj_sigma, adj_v = (x.astype(float) for x in (u, sigma, v, adj_u, adj_sigma, adj_v))
    left, right = u.T @ adj_u, v.T @ adj_v
    left, right = left - left.T, right - right.T
    scale = np.max(np.abs(sigma))
    inner = np.diag(adj_sigma) + (left + right) / 2 * _inverse(sigma[None, :] - sigma[:, None], scale)
    inner = inner + (left - right) / 2 * _inverse(sigma[None, :] + sigma[:, None], scale)
    return (u @ inner @ v.T).astype(dtype)


def eig_adjoint(q: Array, d: Array, adj_q: Array, adj_d: Array) -> Any:
    """Give the symmetric Q (diag(adj_d) + gaps * Q^T adj_q) Q^T, gaps guarded."""
    dtype = q.dtype
    q, d, adj_q, adj_d = (x.astype(float) for x in (q, d, adj_q, adj_d))
    inner = np.diag(adj_d) + _inverse(d[None, :] - d[:, None], np.max(np.abs(d))) * (q.T @ adj_q)
    full = q @ inner @ q.T
    return ((full + full.T) / 2).astype(dtype)


def qr_adjoint(q: Array, r: Array, adj_q: Array, adj_r: Array) -> Any:
    """Give (adj_q + Q copyltu(R adj_r^T - adj_q^T Q)) R^-T; 0 if R is singular (Walter and Lehmann 2018)."""
    dtype = q.dtype
    q, r, adj_q, adj_r = (x.astype(float) for x in (q, r, adj_q, adj_r))
    if np.prod(np.diag(r)) == 0:
        return np.zeros((3, 3), dtype)
    m = r @ np.triu(adj_r).T - adj_q.T @ q
    lower = np.tril(m)
    copied = lower + np.tril(m, -1).T
    return np.linalg.solve(np.triu(r), (adj_q + q @ copied).T).T.astype(dtype)


__all__ = ["GAP", "eig3", "eig_adjoint", "qr3", "qr_adjoint", "svd2", "svd3", "svd_adjoint"]
