"""Operators on bits, remainders and classification of whole tensors, and operators under their names."""

from __future__ import annotations

import operator
from functools import partial

import numpy as np

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import f
from warp._src.builtins.logic import shift_left, shift_right
from warp._src.builtins.matrices import REGULAR, inverse_of
from warp._src.builtins.operators import divide, modulo
from warp._src.builtins.patterns import B, F, I, L, Mat, N, S, Ten, Vec, X
from warp._src.builtins.reference import componentwise
from warp._src.builtins.rules import BOOLEAN, INTEGER, PIECEWISE_CONSTANT, strong, strong_dot
from warp._src.types.scalars import bool_

GROUP = "Operators"

_integers = partial(builtin, adjoint=INTEGER, group=GROUP)
_tests = partial(builtin, adjoint=BOOLEAN, group="Scalar math")
_quotient = partial(builtin, "div_approx", group=GROUP, sampling=Sampling(ranges={"b": (0.5, 2.0)}))

_AWAY_FROM_JUMPS = Sampling(
    ranges={"b": (0.5, 2.0)}, condition=lambda a, b: bool(np.all(np.abs(a / b - np.round(a / b)) > 0.05))
)


@_integers("bit_and", cpp="wp::tensor_and({a}, {b})", reference=operator.and_)
def bit_and_tensors(a: Ten[X, I], b: Ten[X, I]) -> Ten[X, I]:
    """And, bit by bit, of each pair of components.

    Example: `wp.bit_and(wp.vec3i(1, 2, 3), wp.vec3i(0, 1, 2))` is [0, 0, 2].
    """


@_integers("bit_or", cpp="wp::tensor_or({a}, {b})", reference=operator.or_)
def bit_or_tensors(a: Ten[X, I], b: Ten[X, I]) -> Ten[X, I]:
    """Or, bit by bit, of each pair of components.

    Example: `wp.bit_or(wp.vec3i(1, 2, 3), wp.vec3i(0, 1, 2))` is [1, 3, 3].
    """


@_integers("bit_xor", cpp="wp::tensor_xor({a}, {b})", reference=operator.xor)
def bit_xor_tensors(a: Ten[X, I], b: Ten[X, I]) -> Ten[X, I]:
    """Exclusive or, bit by bit, of each pair of components.

    Example: `wp.bit_xor(wp.vec3i(1, 2, 3), wp.vec3i(0, 1, 2))` is [1, 3, 1].
    """


@_integers("invert", cpp="wp::tensor_invert({a})", reference=operator.invert)
def invert_tensor(a: Ten[X, I]) -> Ten[X, I]:
    """Flip all bits of each component.

    Example: `wp.invert(wp.vec3i(1, 2, 3))` is [-2, -3, -4].
    """


@_integers("shl", cpp="wp::tensor_shl({a}, {b})", reference=componentwise(shift_left), internal=True)
def shl_tensors(a: Ten[X, I], b: Ten[X, I]) -> Ten[X, I]:
    """Shift each component left by the component of `b`."""


@_integers("shr", cpp="wp::tensor_shr({a}, {b})", reference=componentwise(shift_right), internal=True)
def shr_tensors(a: Ten[X, I], b: Ten[X, I]) -> Ten[X, I]:
    """Shift each component right by the component of `b`."""


@_integers("lshift", cpp="wp::shl({a}, {b})", reference=shift_left)
def lshift(a: I, b: I) -> I:
    """Shift left; 0 if `b` is negative or not less than the width.

    Example: `wp.lshift(6, 3)` is 48.
    """


@_integers("lshift", cpp="wp::tensor_shl({a}, {b})", reference=componentwise(shift_left))
def lshift_tensors(a: Ten[X, I], b: Ten[X, I]) -> Ten[X, I]:
    """Shift each component left, by the component of `b`.

    Example: `wp.lshift(wp.vec3i(1, 2, 3), wp.vec3i(0, 1, 2))` is [1, 4, 12].
    """


@_integers("rshift", cpp="wp::shr({a}, {b})", reference=shift_right)
def rshift(a: I, b: I) -> I:
    """Shift right and fill with the sign; the sign alone if `b` is negative or not less than the width.

    Example: `wp.rshift(-6, 1)` is -3.
    """


@_integers("rshift", cpp="wp::tensor_shr({a}, {b})", reference=componentwise(shift_right))
def rshift_tensors(a: Ten[X, I], b: Ten[X, I]) -> Ten[X, I]:
    """Shift each component right and fill with the sign, by the component of `b`.

    Example: `wp.rshift(wp.vec3i(1, 2, 3), wp.vec3i(0, 1, 2))` is [1, 1, 0].
    """


@builtin(
    "unot",
    cpp="!{a}",
    adjoint=BOOLEAN,
    reference=lambda a: np.bool_(not a),
    group=GROUP,
)
def unot(a: B) -> bool_:
    """Tell whether a bool is false, or an integer 0: `not a`.

    Example: `wp.unot(True)` is False.
    """


@builtin(
    "mod",
    cpp="wp::tensor_mod({a}, {b})",
    adjoint={"a": lambda adj: adj, "b": lambda a, b, adj: strong(adj, f.tensor_whole_quotients(a, b))},
    reference=componentwise(modulo),
    group=GROUP,
    sampling=_AWAY_FROM_JUMPS,
)
def mod_vectors(a: Vec[N, S], b: Vec[N, S]) -> Vec[N, S]:
    """Remainder of each pair of components, with the sign of that of `a`.

    Example: `wp.mod(wp.vec3(5.0, 2.0, -3.0), wp.vec3(2.0, 1.0, 2.0))` is [1, 0, -1].
    """


@builtin(
    "tensor_whole_quotients",
    cpp="wp::tensor_whole_quotients({a}, {b})",
    adjoint=PIECEWISE_CONSTANT,
    reference=componentwise(lambda a, b: -np.trunc(a / b)),
    group="Internal",
    internal=True,
)
def tensor_whole_quotients(a: Vec[N, F], b: Vec[N, F]) -> Vec[N, F]:
    """Minus the quotients rounded toward zero, the slopes of `mod`."""


@_tests("isfinite", cpp="wp::tensor_is_finite({a})", reference=lambda a: np.isfinite(a).all())
def isfinite_tensor(a: Ten[X, S]) -> bool_:
    """Tell whether all components are neither infinite nor nan.

    Example: `wp.isfinite(wp.vec3(1.0, 2.0, 3.0))` is True.
    """


@_tests("isnan", cpp="wp::tensor_has_nan({a})", reference=lambda a: np.isnan(a).any())
def isnan_tensor(a: Ten[X, S]) -> bool_:
    """Tell whether any component is nan.

    Example: `wp.isnan(wp.vec3(1.0, wp.nan, 3.0))` is True.
    """


@_tests("isinf", cpp="wp::tensor_has_inf({a})", reference=lambda a: np.isinf(a).any())
def isinf_tensor(a: Ten[X, S]) -> bool_:
    """Tell whether any component is inf or -inf.

    Example: `wp.isinf(wp.vec3(1.0, wp.inf, 3.0))` is True.
    """


@_quotient(
    cpp="wp::div({a}, {b})",
    adjoint={"a": lambda b, adj: adj / b, "b": lambda b, ret, adj: -(adj * ret / b)},
    reference=divide,
)
def div_approx(a: F, b: F) -> F:
    """Divide; where a device has a faster, less exact division it may be used.

    Example: `wp.div_approx(0.5, 0.25)` is 2.
    """


@_quotient(
    cpp="wp::tensor_div({a}, {b})",
    adjoint={"a": lambda b, adj: adj / b, "b": lambda b, ret, adj: -(strong_dot(adj, ret) / b)},
    reference=componentwise(divide),
)
def div_approx_tensor(a: Ten[X, F], b: F) -> Ten[X, F]:
    """Divide each component by a scalar.

    Example: `wp.div_approx(wp.vec3(1.0, 2.0, 3.0), 0.5)` is [2, 4, 6].
    """


@_quotient(
    cpp="wp::tensor_div_into<{X}>({a}, {b})",
    adjoint={
        "a": lambda b, adj: strong_dot(adj, f.div(b.constant(1.0), b)),
        "b": lambda b, ret, adj: -(strong(adj, ret) / b),
    },
    reference=componentwise(divide),
)
def div_approx_into(a: F, b: Ten[X, F]) -> Ten[X, F]:
    """Divide a scalar by each component.

    Example: `wp.div_approx(0.5, wp.vec3(1.0, 2.0, 3.0))` is [0.5, 0.25, 0.166667].
    """


@builtin(
    "inverse_approx",
    cpp="wp::inverse({a})",
    adjoint={"a": lambda ret, adj: -f.mul(f.mul(f.transpose(ret), adj), f.transpose(ret))},
    reference=inverse_of,
    group="Matrix math",
    sampling=REGULAR,
)
def inverse_approx(a: Mat[L, L, F]) -> Mat[L, L, F]:
    """Inverse of a matrix; where a device has a faster, less exact division it may be used.

    Example: `wp.inverse_approx(wp.mat22(1.0, 2.0, 3.0, 4.0))` is [[-2, 1], [1.5, -0.5]].
    """


__all__ = ["GROUP"]
