"""What `wp.tid` and the like are outside kernels: names with documentation that refuse to be called."""

from __future__ import annotations

from typing import Any

from warp.errors import UnsupportedSyntaxError


class Intrinsic:
    """A function that only means something in a kernel; the front end knows it by `__warp_intrinsic__`."""

    def __init__(self, name: str, doc: str) -> None:
        self.__warp_intrinsic__ = name
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Refuse: there is no work item on the host."""
        raise UnsupportedSyntaxError(f"wp.{self.__name__}() can only be used in kernels and functions for them")

    def __repr__(self) -> str:
        return f"<wp.{self.__name__}>"


class Adjoint(Intrinsic):
    """The gradients that a custom gradient function adds to: `wp.adjoint[x] += ...`."""

    def __getitem__(self, item: Any) -> Any:
        return self()


class Static(Intrinsic):
    """`wp.static(x)` is evaluated while compiling; on the host it gives `x` back."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Give the argument back."""
        (value,) = args
        return value


_ATOMIC = (
    "Replace `arr[i]`, `arr[i, j]`, ... by {}, in one step that no other work item interrupts; give the old value."
)

_DOCS = {
    "tid": "Give the index of the work item; unpack it to as many names as the launch has dimensions, up to four.",
    "atomic_add": _ATOMIC.format("its sum with `value`"),
    "atomic_sub": _ATOMIC.format("its difference to `value`"),
    "atomic_min": _ATOMIC.format("the smaller of it and `value`"),
    "atomic_max": _ATOMIC.format("the larger of it and `value`"),
    "atomic_exch": _ATOMIC.format("`value`"),
    "atomic_cas": _ATOMIC.format("`value` if it equals `compare`"),
    "atomic_and": _ATOMIC.format("its bitwise and with `value`"),
    "atomic_or": _ATOMIC.format("its bitwise or with `value`"),
    "atomic_xor": _ATOMIC.format("its bitwise exclusive or with `value`"),
    "grad": "Make a callable that gives the derivatives of a function that returns one float, by each argument that is "
    "no array.",
    "printf": "Print values in the format of C's printf.",
    "vector": "Make a vector from numbers; `dtype` and `length` may be given.",
    "matrix": "Make a matrix of the given `shape` from numbers in row-major order; `dtype` may be given.",
    "quaternion": "Make a quaternion from x, y, z, w or from a vector and w; `dtype` may be given.",
    "transformation": "Make a transform from a translation `p` and a rotation `q`; `dtype` may be given.",
    "identity": "Make the identity matrix of size `n`; `dtype` may be given.",
    "quat_identity": "Make the quaternion of no rotation; `dtype` may be given.",
    "transform_identity": "Make the transform that changes nothing; `dtype` may be given.",
    "matrix_from_rows": "Make a matrix whose rows are the given vectors.",
    "lower_bound": "Find the first element of a sorted array, or of [arr_begin, arr_end) in it, not less than `value`; "
    "the last if there is none.",
    "sample_cdf": "Draw an index with the probabilities whose running sum, up to 1, is the array `cdf`.",
    "cast": "Reinterpret the bits of `a` as a `dtype` of the same size.",
    "dense_gemm": "Store the m x n product of A and B in C; t1 and t2 tell whether A and B are stored transposed.",
    "dense_gemm_batched": "Multiply as `dense_gemm` does the matrices of this work item.",
    "dense_chol": "Store the Cholesky factor of the n x n matrix A, `regularization` added to its diagonal, in L.",
    "dense_chol_batched": "Factor as `dense_chol` does the matrix of this work item.",
    "dense_subs": "Store the solution of L L^T x = b in x.",
    "dense_solve": "Store the solution of A x = b in x, given the Cholesky factor L of A.",
    "dense_solve_batched": "Solve as `dense_solve` does for the matrix of this work item.",
    "matrix_from_cols": "Make a matrix whose columns are the given vectors.",
    "adjoint": "The gradients that a custom gradient function adds to.",
    "static": "Evaluate a Python expression while the kernel is compiled.",
}

# What is written in kernels; the tests run it.
_EXAMPLES = {
    "tid": "i, j = wp.tid()",
    "atomic_add": "old = wp.atomic_add(total, 0, 0.5)",
    "atomic_sub": "wp.atomic_sub(total, 0, 0.5)",
    "atomic_min": "wp.atomic_min(total, 0, x)",
    "atomic_max": "wp.atomic_max(total, 0, x)",
    "atomic_exch": "old = wp.atomic_exch(counts, 0, 1)",
    "atomic_cas": "old = wp.atomic_cas(counts, 0, 0, 1)",
    "atomic_and": "wp.atomic_and(counts, 0, 6)",
    "atomic_or": "wp.atomic_or(counts, 0, 1)",
    "atomic_xor": "wp.atomic_xor(counts, 0, 1)",
    "grad": "dx, dy = wp.grad(f)(x, y)",
    "printf": 'wp.printf("%d: %f\\n", i, x)',
    "vector": "wp.vector(1.0, 2.0, 3.0, length=3, dtype=float)",
    "matrix": "wp.matrix(1.0, 2.0, 3.0, 4.0, shape=(2, 2), dtype=float)",
    "quaternion": "wp.quaternion(0.0, 0.0, 0.6, 0.8)",
    "transformation": "wp.transformation(p, q, dtype=float)",
    "identity": "wp.identity(n=3, dtype=float)",
    "quat_identity": "wp.quat_identity(dtype=wp.float64)",
    "transform_identity": "wp.transform_identity(dtype=wp.float64)",
    "matrix_from_rows": "wp.matrix_from_rows(wp.vec2(1.0, 2.0), wp.vec2(3.0, 4.0))",
    "matrix_from_cols": "wp.matrix_from_cols(wp.vec2(1.0, 3.0), wp.vec2(2.0, 4.0))",
    "lower_bound": "place = wp.lower_bound(values, 2.5)",
    "sample_cdf": "place = wp.sample_cdf(rng, values)",
    "cast": "bits = wp.cast(x, wp.uint32)",
    "dense_gemm": "wp.dense_gemm(2, 2, 2, 0, 0, values, values, total)",
    "dense_gemm_batched": "wp.dense_gemm_batched(size, size, size, 0, 0, start, start, start, values, values, total)",
    "dense_chol": "wp.dense_chol(1, values, 0.0, total)",
    "dense_chol_batched": "wp.dense_chol_batched(start, size, values, 0.0, total)",
    "dense_subs": "wp.dense_subs(1, values, values, total)",
    "dense_solve": "wp.dense_solve(1, values, values, values, total)",
    "dense_solve_batched": "wp.dense_solve_batched(start, start, size, values, values, values, total)",
    "static": "n = wp.static(2 + 2)",
    "adjoint": "wp.adjoint[x] += 2.0 * adj_ret",
}
_KINDS = {"adjoint": Adjoint, "static": Static}

INTRINSICS: dict[str, Intrinsic] = {
    name: _KINDS.get(name, Intrinsic)(name, f"{doc}\n\nExample: `{_EXAMPLES[name]}`.") for name, doc in _DOCS.items()
}
"""By public name; `wp.zeros` and the like exist on the host as well and carry the attribute themselves."""

adjoint = INTRINSICS["adjoint"]
static = INTRINSICS["static"]
tid = INTRINSICS["tid"]

__all__ = ["INTRINSICS", "Intrinsic", "adjoint", "static", "tid"]
