"""Internal builtins that only adjoint code calls.

The strong products implement the strong zero: where the adjoint, always the first argument, is 0, the product is 0
even if the partial derivative is inf or nan. They are differentiated again where `wp.grad` is; the others are not.
"""

from __future__ import annotations

from warp._src.builtins.declare import Sampling, builtin
from warp._src.builtins.expression import f
from warp._src.builtins.patterns import F, Four, Quat, S, Six, Ten, Three, Transf, Vec, X
from warp._src.builtins.reference import Array, Number, choose, componentwise, pack, scalars, total
from warp._src.builtins.rules import BOOLEAN, strong
from warp._src.builtins.rules import strong_dot as strong_sum
from warp._src.types.scalars import bool_

GROUP = "Internal"

_NOT_NULL = Sampling(ranges={"divisor": (0.5, 2.0)})


def _strong_product(adj: Number, partial: Number) -> Number:
    return adj if adj == 0 else adj * partial


def _strong_quotient(adj: Number, divisor: Number) -> Number:
    return adj if adj == 0 else adj / divisor


def _strong_sum(adj: Array, partial: Array) -> Number:
    return total([_strong_product(a, p) for a, p in zip(scalars(adj), scalars(partial), strict=True)])


_products = componentwise(_strong_product)
_quotients = componentwise(_strong_quotient)


@builtin(
    cpp="wp::strong_mul({cotangent}, {partial})",
    adjoint={"cotangent": lambda partial, adj: adj * partial, "partial": lambda cotangent, adj: adj * cotangent},
    reference=_strong_product,
    group=GROUP,
    internal=True,
)
def strong_mul(cotangent: F, partial: F) -> F:
    """Multiply, with the strong zero."""


@builtin(
    "strong_mul",
    cpp="wp::tensor_strong_mul({cotangent}, {partial})",
    adjoint={
        "cotangent": lambda partial, adj: adj * partial,
        "partial": lambda cotangent, adj: strong_sum(adj, cotangent),
    },
    reference=_products,
    group=GROUP,
    internal=True,
)
def strong_mul_tensor_scalar(cotangent: Ten[X, F], partial: F) -> Ten[X, F]:
    """Multiply a tensor of adjoints by a scalar."""


@builtin(
    "strong_mul",
    cpp="wp::tensor_strong_scale<{X}>({cotangent}, {partial})",
    adjoint={
        "cotangent": lambda partial, adj: strong_sum(adj, partial),
        "partial": lambda cotangent, adj: adj * cotangent,
    },
    reference=_products,
    group=GROUP,
    internal=True,
)
def strong_mul_scalar_tensor(cotangent: F, partial: Ten[X, F]) -> Ten[X, F]:
    """Multiply a scalar adjoint by a tensor."""


@builtin(
    "strong_mul",
    cpp="wp::tensor_strong_products({cotangent}, {partial})",
    adjoint={
        "cotangent": lambda partial, adj: strong(adj, partial),
        "partial": lambda cotangent, adj: strong(adj, cotangent),
    },
    reference=_products,
    group=GROUP,
    internal=True,
)
def strong_mul_tensors(cotangent: Ten[X, F], partial: Ten[X, F]) -> Ten[X, F]:
    """Multiply component by component."""


@builtin(
    cpp="wp::tensor_strong_dot({cotangent}, {partial})",
    adjoint={"cotangent": lambda partial, adj: adj * partial, "partial": lambda cotangent, adj: adj * cotangent},
    reference=_strong_sum,
    group=GROUP,
    internal=True,
)
def strong_dot(cotangent: Ten[X, F], partial: Ten[X, F]) -> F:
    """Sum the strong products of all components."""


@builtin(
    cpp="wp::strong_div({cotangent}, {divisor})",
    adjoint={
        "cotangent": lambda divisor, adj: adj / divisor,
        "divisor": lambda divisor, ret, adj: -(adj * ret) / divisor,
    },
    reference=_strong_quotient,
    group=GROUP,
    internal=True,
    sampling=_NOT_NULL,
)
def strong_div(cotangent: F, divisor: F) -> F:
    """Divide, with the strong zero."""


@builtin(
    "strong_div",
    cpp="wp::tensor_strong_div({cotangent}, {divisor})",
    adjoint={
        "cotangent": lambda divisor, adj: adj / divisor,
        "divisor": lambda divisor, ret, adj: -strong_sum(adj, ret) / divisor,
    },
    reference=_quotients,
    group=GROUP,
    internal=True,
    sampling=_NOT_NULL,
)
def strong_div_tensor_scalar(cotangent: Ten[X, F], divisor: F) -> Ten[X, F]:
    """Divide a tensor of adjoints by a scalar."""


@builtin(
    "strong_div",
    cpp="wp::tensor_strong_quotients({cotangent}, {divisor})",
    adjoint={
        "cotangent": lambda divisor, adj: adj / divisor,
        "divisor": lambda divisor, ret, adj: -strong(adj, ret) / divisor,
    },
    reference=_quotients,
    group=GROUP,
    internal=True,
    sampling=_NOT_NULL,
)
def strong_div_tensors(cotangent: Ten[X, F], divisor: Ten[X, F]) -> Ten[X, F]:
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
    adjoint={
        "if_less": lambda a, b, adj: f.select_lt(a, b, adj, adj.zero()),
        "otherwise": lambda a, b, adj: f.select_lt(a, b, adj.zero(), adj),
    },
    reference=componentwise(lambda a, b, if_less, otherwise: choose(a < b, if_less, otherwise)),
    group=GROUP,
    internal=True,
    bounded=True,
)
def select_lt(a: Ten[X, S], b: Ten[X, S], if_less: Ten[X, S], otherwise: Ten[X, S]) -> Ten[X, S]:
    """Choose component by component: `if_less` where a < b, else `otherwise`."""


@builtin(
    cpp="wp::quat_join({v}, {w})",
    adjoint={"v": lambda adj: f.quat_vector(adj), "w": lambda adj: adj[3]},
    reference=lambda v, w: pack([*v, w]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def quat_join(v: Vec[Three, F], w: F) -> Quat[F]:
    """Make a quaternion from vector and real part."""


@builtin(
    cpp="wp::quat_vector({q})",
    adjoint={"q": lambda adj: f.quat_join(adj, adj[0].zero())},
    reference=lambda q: q[:3].copy(),
    group=GROUP,
    internal=True,
    bounded=True,
)
def quat_vector(q: Quat[F]) -> Vec[Three, F]:
    """Vector part of a quaternion."""


@builtin(
    cpp="wp::transform_join({p}, {q})",
    adjoint={"p": lambda adj: f.transform_get_translation(adj), "q": lambda adj: f.transform_get_rotation(adj)},
    reference=lambda p, q: pack([*p, *q]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def transform_join(p: Vec[Three, F], q: Quat[F]) -> Transf[F]:
    """Make a transform from translation and rotation."""


@builtin(
    cpp="wp::vector_join({a}, {b})",
    adjoint={"a": lambda adj: f.spatial_top(adj), "b": lambda adj: f.spatial_bottom(adj)},
    reference=lambda a, b: pack([*a, *b]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def spatial_join(a: Vec[Three, F], b: Vec[Three, F]) -> Vec[Six, F]:
    """Make a spatial vector from its halves."""


@builtin(
    cpp="wp::homogeneous({v}, {w})",
    adjoint={"v": lambda adj: f.vector_head(adj), "w": lambda adj: adj[3]},
    reference=lambda v, w: pack([*v, w]),
    group=GROUP,
    internal=True,
    bounded=True,
)
def homogeneous(v: Vec[Three, F], w: F) -> Vec[Four, F]:
    """Append a fourth component."""


__all__ = ["GROUP"]
