"""Noise: smooth functions of a point that a seed chooses, periodic ones, and divergence-free vector fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from warp._src.builtins import noise_reference as reference
from warp._src.builtins.declare import AdjointRule, Builtin, Sampling, builtin
from warp._src.builtins.expression import Expr, f
from warp._src.builtins.patterns import D, Four, Six, Three, Two, Vec
from warp._src.builtins.rules import INTERNAL, construct
from warp._src.types.scalars import int32, uint32

GROUP = "Random"
Five = Literal[5]

_FEW = Sampling(count=4)
_SMOOTH = Sampling(ranges={"octaves": (0, 3), "lacunarity": (1.5, 2.5), "gain": (0.3, 0.7)}, count=2)


def _value(state: Any, x: Any, *period: Any) -> Any:
    return reference.value(state, [x] if np.ndim(x) == 0 else list(x), period or reference.NO_PERIOD)


def _slope(state: Any, x: Any, *period: Any) -> Any:
    if np.ndim(x) == 0:
        return reference.slope(state, [x], period or reference.NO_PERIOD)[0]
    return np.array(reference.slope(state, list(x), period or reference.NO_PERIOD))


_values = partial(builtin, reference=_value, group=GROUP, sampling=_FEW)
_slopes = partial(
    builtin, "noise_slope", adjoint=INTERNAL, reference=_slope, group="Internal", sampling=_FEW, internal=True
)


def _rule(names: Sequence[str], rule: Callable[..., Expr]) -> AdjointRule:
    """Make an adjoint rule of the parameters of these names, and of `adj`, from one that takes them in order."""

    def named(*given: Expr) -> Expr:
        return rule(*given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in (*names, "adj")])  # type: ignore[attr-defined]  # what rules are called by
    return named


def _along(point: str, *periods: str) -> dict[str, AdjointRule]:
    """Give the rule of `noise` at a point: its slope."""
    return {point: _rule(("state", point, *periods), lambda *given: given[-1] * f.noise_slope(*given[:-1]))}


def _curl(point: str) -> Callable[[Callable[..., Any]], Builtin]:
    """Declare `curlnoise` at a point; one function computes the adjoints of the point, of lacunarity and of gain."""
    names = ("state", point, "octaves", "lacunarity", "gain")
    size = len(point)

    def part(*given: Expr) -> Expr:
        adjoints = f.curlnoise_adjoint(*given)
        return construct(given[1].value.type, *(adjoints[k] for k in range(size)))

    return builtin(
        "curlnoise",
        cpp=f"wp::curlnoise({{state}}, {{{point}}}, {{octaves}}, {{lacunarity}}, {{gain}})",
        adjoint={
            point: _rule(names, part),
            "lacunarity": _rule(names, lambda *given: f.curlnoise_adjoint(*given)[size]),
            "gain": _rule(names, lambda *given: f.curlnoise_adjoint(*given)[size + 1]),
        },
        reference=reference.curlnoise,
        group=GROUP,
        sampling=_SMOOTH,
        defaults={"octaves": 1, "lacunarity": 2.0, "gain": 0.5},
    )


def _curl_adjoint(point: str) -> Callable[[Callable[..., Any]], Builtin]:
    return builtin(
        "curlnoise_adjoint",
        cpp=f"wp::curlnoise_adjoint({{state}}, {{{point}}}, {{octaves}}, {{lacunarity}}, {{gain}}, {{adj}})",
        adjoint=INTERNAL,
        reference=reference.curlnoise_adjoint,
        group="Internal",
        sampling=_SMOOTH,
        internal=True,
    )


@_values("noise", cpp="wp::noise({state}, {x}, 0)", adjoint=_along("x"))
def noise_one(state: uint32, x: D) -> D:
    """Gradient noise in one dimension, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), 0.1 * x)`.
    """


@_values("noise", cpp="wp::noise({state}, {xy})", adjoint=_along("xy"))
def noise_two(state: uint32, xy: Vec[Two, D]) -> D:
    """Gradient noise in two dimensions, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), wp.vec2(x, y))`.
    """


@_values("noise", cpp="wp::noise({state}, {xyz})", adjoint=_along("xyz"))
def noise_three(state: uint32, xyz: Vec[Three, D]) -> D:
    """Gradient noise in three dimensions, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), wp.vec3(x, y, z))`.
    """


@_values("noise", cpp="wp::noise({state}, {xyzt})", adjoint=_along("xyzt"))
def noise_four(state: uint32, xyzt: Vec[Four, D]) -> D:
    """Gradient noise in four dimensions, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), wp.vec4(x, y, z, t))`.
    """


@_values("pnoise", cpp="wp::noise({state}, {x}, {px})", adjoint=_along("x", "px"))
def pnoise_one(state: uint32, x: D, px: int32) -> D:
    """Gradient noise in one dimension that repeats after `px` units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), x, 4)`.
    """


@_values("pnoise", cpp="wp::noise({state}, {xy}, {px}, {py})", adjoint=_along("xy", "px", "py"))
def pnoise_two(state: uint32, xy: Vec[Two, D], px: int32, py: int32) -> D:
    """Gradient noise in two dimensions that repeats after `px` and so on units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), xy, 4, 4)`.
    """


@_values("pnoise", cpp="wp::noise({state}, {xyz}, {px}, {py}, {pz})", adjoint=_along("xyz", "px", "py", "pz"))
def pnoise_three(state: uint32, xyz: Vec[Three, D], px: int32, py: int32, pz: int32) -> D:
    """Gradient noise in three dimensions that repeats after `px` and so on units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), xyz, 4, 4, 4)`.
    """


@_values(
    "pnoise", cpp="wp::noise({state}, {xyzt}, {px}, {py}, {pz}, {pt})", adjoint=_along("xyzt", "px", "py", "pz", "pt")
)
def pnoise_four(state: uint32, xyzt: Vec[Four, D], px: int32, py: int32, pz: int32, pt: int32) -> D:
    """Gradient noise in four dimensions that repeats after `px` and so on units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), xyzt, 4, 4, 4, 4)`.
    """


@_slopes(cpp="wp::noise_slope({state}, {x}, 0)")
def noise_slope_one(state: uint32, x: D) -> D:
    """Derivative of `noise`."""


@_slopes(cpp="wp::noise_slope({state}, {x}, {px})")
def pnoise_slope_one(state: uint32, x: D, px: int32) -> D:
    """Derivative of `pnoise`."""


@_slopes(cpp="wp::noise_slope({state}, {xy})")
def noise_slope_two(state: uint32, xy: Vec[Two, D]) -> Vec[Two, D]:
    """Derivative of `noise`."""


@_slopes(cpp="wp::noise_slope({state}, {xy}, {px}, {py})")
def pnoise_slope_two(state: uint32, xy: Vec[Two, D], px: int32, py: int32) -> Vec[Two, D]:
    """Derivative of `pnoise`."""


@_slopes(cpp="wp::noise_slope({state}, {xyz})")
def noise_slope_three(state: uint32, xyz: Vec[Three, D]) -> Vec[Three, D]:
    """Derivative of `noise`."""


@_slopes(cpp="wp::noise_slope({state}, {xyz}, {px}, {py}, {pz})")
def pnoise_slope_three(state: uint32, xyz: Vec[Three, D], px: int32, py: int32, pz: int32) -> Vec[Three, D]:
    """Derivative of `pnoise`."""


@_slopes(cpp="wp::noise_slope({state}, {xyzt})")
def noise_slope_four(state: uint32, xyzt: Vec[Four, D]) -> Vec[Four, D]:
    """Derivative of `noise`."""


@_slopes(cpp="wp::noise_slope({state}, {xyzt}, {px}, {py}, {pz}, {pt})")
def pnoise_slope_four(state: uint32, xyzt: Vec[Four, D], px: int32, py: int32, pz: int32, pt: int32) -> Vec[Four, D]:
    """Derivative of `pnoise`."""


@_curl("xy")
def curlnoise_two(state: uint32, xy: Vec[Two, D], octaves: uint32, lacunarity: D, gain: D) -> Vec[Two, D]:
    """Divergence-free field: octave i has frequency lacunarity**i and weight gain**i.

    Example: `velocity = wp.curlnoise(wp.rand_init(seed), p)`.
    """


@_curl_adjoint("xy")
def curlnoise_adjoint_two(
    state: uint32, xy: Vec[Two, D], octaves: uint32, lacunarity: D, gain: D, adj: Vec[Two, D]
) -> Vec[Four, D]:
    """Adjoints of the point, of lacunarity and of gain."""


@_curl("xyz")
def curlnoise_three(state: uint32, xyz: Vec[Three, D], octaves: uint32, lacunarity: D, gain: D) -> Vec[Three, D]:
    """Divergence-free field: octave i has frequency lacunarity**i and weight gain**i.

    Example: `velocity = wp.curlnoise(wp.rand_init(seed), p)`.
    """


@_curl_adjoint("xyz")
def curlnoise_adjoint_three(
    state: uint32, xyz: Vec[Three, D], octaves: uint32, lacunarity: D, gain: D, adj: Vec[Three, D]
) -> Vec[Five, D]:
    """Adjoints of the point, of lacunarity and of gain."""


@_curl("xyzt")
def curlnoise_four(state: uint32, xyzt: Vec[Four, D], octaves: uint32, lacunarity: D, gain: D) -> Vec[Three, D]:
    """Divergence-free field, in x, y and z for each t: octave i has frequency lacunarity**i and weight gain**i.

    Example: `velocity = wp.curlnoise(wp.rand_init(seed), wp.vec4(p[0], p[1], p[2], time))`.
    """


@_curl_adjoint("xyzt")
def curlnoise_adjoint_four(
    state: uint32, xyzt: Vec[Four, D], octaves: uint32, lacunarity: D, gain: D, adj: Vec[Three, D]
) -> Vec[Six, D]:
    """Adjoints of the point, of lacunarity and of gain."""


__all__ = ["GROUP"]
