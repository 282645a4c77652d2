"""Functions of the language that are written in it; their gradients follow from their text.

Arrays are annotated `Any`: the handlers in `library_calls` check them. Dense matrices are stored row by row.
"""

# ruff: noqa: N803, ARG001 - mathematics has these names, and callers use them as keywords
from __future__ import annotations

from typing import Any

from warp._src.lang.stubs import tid


def lower_bound(arr: Any, begin: Any, end: Any, value: Any) -> Any:
    """Find the first of the sorted elements [begin, end) that is not less than a value, else the last."""
    low = int(begin)
    high = int(end) - 1
    while low < high:
        middle = low + (high - low) // 2
        if arr[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def dense_gemm(m: Any, n: Any, p: Any, t1: Any, t2: Any, A: Any, B: Any, C: Any) -> None:
    """Store the m x n product of an m x p matrix A and a p x n matrix B, each stored transposed if asked for, in C."""
    _gemm(m, n, p, t1, t2, 0, 0, 0, A, B, C)


def dense_gemm_batched(
    m: Any, n: Any, p: Any, t1: Any, t2: Any, A_start: Any, B_start: Any, C_start: Any, A: Any, B: Any, C: Any
) -> None:
    """Multiply as `dense_gemm` the matrices of this work item, which start where the arrays say."""
    batch = tid()
    _gemm(m[batch], n[batch], p[batch], t1, t2, A_start[batch], B_start[batch], C_start[batch], A, B, C)


def _gemm(
    m: Any, n: Any, p: Any, t1: Any, t2: Any, a_start: Any, b_start: Any, c_start: Any, A: Any, B: Any, C: Any
) -> None:
    for i in range(m):
        for j in range(n):
            total = type(C[0])(0.0)
            for k in range(p):
                a_index = a_start + i * p + k
                b_index = b_start + k * n + j
                if t1 != 0:
                    a_index = a_start + k * m + i
                if t2 != 0:
                    b_index = b_start + j * p + k
                total = total + A[a_index] * B[b_index]
            C[c_start + i * n + j] = total


def dense_chol(n: Any, A: Any, regularization: Any, L: Any) -> None:
    """Store the Cholesky factor of A with `regularization` added to its diagonal in the lower triangle of L."""
    _chol(n, 0, A, regularization, L)


def dense_chol_batched(A_start: Any, A_dim: Any, A: Any, regularization: Any, L: Any) -> None:
    """Factor as `dense_chol` the matrix of this work item, which starts where `A_start` says."""
    batch = tid()
    _chol(A_dim[batch], A_start[batch], A, regularization, L)


def _chol(n: Any, start: Any, A: Any, regularization: Any, L: Any) -> None:
    for j in range(n):
        square = A[start + j * n + j] + regularization
        for k in range(j):
            square = square - L[start + j * n + k] * L[start + j * n + k]
        root = square**0.5
        L[start + j * n + j] = root
        for i in range(j + 1, n):
            rest = A[start + i * n + j]
            for k in range(j):
                rest = rest - L[start + i * n + k] * L[start + j * n + k]
            L[start + i * n + j] = rest / root


def dense_subs(n: Any, L: Any, b: Any, x: Any) -> None:
    """Store the solution of L L^T x = b in x."""
    _subs(n, 0, 0, L, b, x)


def dense_solve(n: Any, A: Any, L: Any, b: Any, x: Any) -> None:
    """Store the solution of A x = b in x, given the Cholesky factor L of A."""
    _subs(n, 0, 0, L, b, x)


def dense_solve_batched(b_start: Any, A_start: Any, A_dim: Any, A: Any, L: Any, b: Any, x: Any) -> None:
    """Solve as `dense_solve` for the matrix and the right-hand side of this work item."""
    batch = tid()
    _subs(A_dim[batch], A_start[batch], b_start[batch], L, b, x)


def _subs(n: Any, start: Any, b_start: Any, L: Any, b: Any, x: Any) -> None:
    for i in range(n):
        rest = b[b_start + i]
        for k in range(i):
            rest = rest - L[start + i * n + k] * x[b_start + k]
        x[b_start + i] = rest / L[start + i * n + i]
    for step in range(n):
        row = n - 1 - step
        rest = x[b_start + row]
        for k in range(row + 1, n):
            rest = rest - L[start + k * n + row] * x[b_start + k]
        x[b_start + row] = rest / L[start + row * n + row]


__all__ = [
    "dense_chol",
    "dense_chol_batched",
    "dense_gemm",
    "dense_gemm_batched",
    "dense_solve",
    "dense_solve_batched",
    "dense_subs",
    "lower_bound",
]
