"""Internal builtins that only adjoint code calls.

The strong products implement GRADIENTS.md section 5: where the adjoint, always the first argument, is 0, the
product is 0 even if the partial derivative is inf or nan.
"""

from __future__ import annotations

from warp._src.builtins.declare import builtin
from warp._src.builtins.patterns import F, Four, Quat, S, Six, Ten, Three, Transf, Vec, X
from warp._src.builtins.reference import Array, Number, choose, componentwise, pack, scalars, total
from warp._src.builtins.rules import BOOLEAN, INTERNAL
from warp._src.types.scalars import bool_

GROUP = "Internal"


def _strong_product(adj: Number, partial: Number) -> Number:
    return adj if adj == 0 else adj * partial


def _strong_quotient(adj: Number, divisor: Number) -> Number:
    return adj if adj == 0 else adj / divisor


def _strong_sum(adj: Array, partial: Array) -> Number:
    return total([_strong_product(a, p) for a, p in zip(scalars(adj), scalars(partial), strict=True)])


_products = componentwise(_strong_product)
_quotients = componentwise(_strong_quotient)


@builtin(
    cpp="wp::strong_mul({adj}, {partial})",
    adjoint=INTERNAL,
    reference=_strong_product,
    group=GROUP,
    internal=True,
)
def strong_mul(adj: F, partial: F) -> F:
    """Multiply, with the strong zero."""


@builtin(
    "strong_mul",
    cpp="wp::tensor_strong_mul({adj}, {partial})",
    adjoint=INTERNAL,
    reference=_products,
    group=GROUP,
    internal=True,
)
def strong_mul_tensor_scalar(adj: Ten[X, F], partial: F) -> Ten[X, F]:
    """Multiply a tensor of adjoints by a scalar."""


@builtin(
    "strong_mul",
    cpp="wp::tensor_strong_scale<{X}>({adj}, {partial})",
    adjoint=INTERNAL,
    reference=_products,
    group=GROUP,
    internal=True,
)
def strong_mul_scalar_tensor(adj: F, partial: Ten[X, F]) -> Ten[X, F]:
    """Multiply a scalar adjoint by a tensor."""


@builtin(
    "strong_mul",
    cpp="wp::tensor_strong_products({adj}, {partial})",
    adjoint=INTERNAL,
    reference=_products,
    group=GROUP,
    internal=True,
)
def strong_mul_tensors(adj: Ten[X, F], partial: Ten[X, F]) -> Ten[X, F]:
    """Multiply component by component."""


@builtin(
    cpp="wp::tensor_strong_dot({adj}, {partial})",
    adjoint=INTERNAL,
    reference=_strong_sum,
    group=GROUP,
    internal=True,
)
def strong_dot(adj: Ten[X, F], partial: Ten[X, F]) -> F:
    """Sum the strong products of all components."""


@builtin(
    cpp="wp::strong_div({adj}, {divisor})",
    adjoint=INTERNAL,
    reference=_strong_quotient,
    group=GROUP,
    internal=True,
)
def strong_div(adj: F, divisor: F) -> F:
    """Divide, with the strong zero."""


@builtin(
    "strong_div",
    cpp="wp::tensor_strong_div({adj}, {divisor})",
    adjoint=INTERNAL,
    reference=_quotients,
    group=GROUP,
    internal=True,
)
def strong_div_tensor_scalar(adj: Ten[X, F], divisor: F) -> Ten[X, F]:
    """Divide a tensor of adjoints by a scalar."""


@builtin(
    "strong_div",
    cpp="wp::tensor_strong_quotients({adj}, {divisor})",
    adjoint=INTERNAL,
    reference=_quotients,
    group=GROUP,
    internal=True,
)
def strong_div_tensors(adj: Ten[X, F], divisor: Ten[X, F]) -> Ten[X, F]:
    """Divide component by component."""


@builtin(cpp="({x} == {F}(0))", adjoint=BOOLEAN, reference=lambda x: x == 0, group=GROUP, internal=True)
def is_zero(x: F) -> bool_:
    """Tell whether an adjoint is 0."""


@builtin(
    "is_zero",
    cpp="wp::tensor_is_zero({x})",
    adjoint=BOOLEAN,
    reference=lambda x: (x == 0).all(),
    group=GROUP,
    internal=True,
)
def is_zero_tensor(x: Ten[X, F]) -> bool_:
    """Tell whether all components of an adjoint are 0."""


@builtin(
    cpp="wp::tensor_select_lt({a}, {b}, {if_less}, {otherwise})",
    adjoint=INTERNAL,
    reference=componentwise(lambda a, b, if_less, otherwise: choose(a < b, if_less, otherwise)),
    group=GROUP,
    internal=True,
    bounded=True,
)
def select_lt(a: Ten[X, S], b: Ten[X, S], if_less: Ten[X, S], otherwise: Ten[X, S]) -> Ten[X, S]:
    """Choose component by component: `if_less` where a < b, else `otherwise`."""


@builtin(
    cpp="wp::quat_join({v}, {w})",
    adjoint=INTERNAL,
    reference=lambda v, w: pack([*v, w]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def quat_join(v: Vec[Three, F], w: F) -> Quat[F]:
    """Make a quaternion from vector and real part."""


@builtin(
    cpp="wp::quat_vector({q})",
    adjoint=INTERNAL,
    reference=lambda q: q[:3].copy(),
    group=GROUP,
    internal=True,
    bounded=True,
)
def quat_vector(q: Quat[F]) -> Vec[Three, F]:
    """Vector part of a quaternion."""


@builtin(
    cpp="wp::transform_join({p}, {q})",
    adjoint=INTERNAL,
    reference=lambda p, q: pack([*p, *q]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def transform_join(p: Vec[Three, F], q: Quat[F]) -> Transf[F]:
    """Make a transform from translation and rotation."""


@builtin(
    cpp="wp::vector_join({a}, {b})",
    adjoint=INTERNAL,
    reference=lambda a, b: pack([*a, *b]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def spatial_join(a: Vec[Three, F], b: Vec[Three, F]) -> Vec[Six, F]:
    """Make a spatial vector from its halves."""


@builtin(
    cpp="wp::homogeneous({v}, {w})",
    adjoint=INTERNAL,
    reference=lambda v, w: pack([*v, w]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def homogeneous(v: Vec[Three, F], w: F) -> Vec[Four, F]:
    """Append a fourth component."""


__all__ = ["GROUP"]
