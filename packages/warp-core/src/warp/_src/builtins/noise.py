"""Noise: smooth functions of a point that a seed chooses, periodic ones, and divergence-free vector fields."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from warp._src.builtins import noise_reference as reference
from warp._src.builtins.declare import Sampling, builtin
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


def _part(adjoints: Expr, like: Expr) -> Expr:
    """Give the adjoint of the point from those of point, lacunarity and gain."""
    return construct(like.value.type, *(adjoints[k] for k in range(like.value.type.length)))


@builtin(
    "noise",
    cpp="wp::noise({state}, {x}, 0)",
    adjoint={"x": lambda state, x, adj: adj * f.noise_slope(state, x)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def noise_one(state: uint32, x: D) -> D:
    """Gradient noise in one dimension, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), 0.1 * x)`.
    """


@builtin(
    "noise",
    cpp="wp::noise({state}, {xy})",
    adjoint={"xy": lambda state, xy, adj: adj * f.noise_slope(state, xy)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def noise_two(state: uint32, xy: Vec[Two, D]) -> D:
    """Gradient noise in two dimensions, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), wp.vec2(x, y))`.
    """


@builtin(
    "noise",
    cpp="wp::noise({state}, {xyz})",
    adjoint={"xyz": lambda state, xyz, adj: adj * f.noise_slope(state, xyz)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def noise_three(state: uint32, xyz: Vec[Three, D]) -> D:
    """Gradient noise in three dimensions, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), wp.vec3(x, y, z))`.
    """


@builtin(
    "noise",
    cpp="wp::noise({state}, {xyzt})",
    adjoint={"xyzt": lambda state, xyzt, adj: adj * f.noise_slope(state, xyzt)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def noise_four(state: uint32, xyzt: Vec[Four, D]) -> D:
    """Gradient noise in four dimensions, about 0; `state` chooses the function and is not changed.

    Example: `height = wp.noise(wp.rand_init(seed), wp.vec4(x, y, z, t))`.
    """


@builtin(
    "pnoise",
    cpp="wp::noise({state}, {x}, {px})",
    adjoint={"x": lambda state, x, px, adj: adj * f.noise_slope(state, x, px)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def pnoise_one(state: uint32, x: D, px: int32) -> D:
    """Gradient noise in one dimension that repeats after `px` units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), x, 4)`.
    """


@builtin(
    "pnoise",
    cpp="wp::noise({state}, {xy}, {px}, {py})",
    adjoint={"xy": lambda state, xy, px, py, adj: adj * f.noise_slope(state, xy, px, py)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def pnoise_two(state: uint32, xy: Vec[Two, D], px: int32, py: int32) -> D:
    """Gradient noise in two dimensions that repeats after `px` and so on units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), xy, 4, 4)`.
    """


@builtin(
    "pnoise",
    cpp="wp::noise({state}, {xyz}, {px}, {py}, {pz})",
    adjoint={"xyz": lambda state, xyz, px, py, pz, adj: adj * f.noise_slope(state, xyz, px, py, pz)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def pnoise_three(state: uint32, xyz: Vec[Three, D], px: int32, py: int32, pz: int32) -> D:
    """Gradient noise in three dimensions that repeats after `px` and so on units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), xyz, 4, 4, 4)`.
    """


@builtin(
    "pnoise",
    cpp="wp::noise({state}, {xyzt}, {px}, {py}, {pz}, {pt})",
    adjoint={"xyzt": lambda state, xyzt, px, py, pz, pt, adj: adj * f.noise_slope(state, xyzt, px, py, pz, pt)},
    reference=_value,
    group=GROUP,
    sampling=_FEW,
)
def pnoise_four(state: uint32, xyzt: Vec[Four, D], px: int32, py: int32, pz: int32, pt: int32) -> D:
    """Gradient noise in four dimensions that repeats after `px` and so on units; a period below 1 is none.

    Example: `height = wp.pnoise(wp.rand_init(seed), xyzt, 4, 4, 4, 4)`.
    """


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {x}, 0)",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def noise_slope_one(state: uint32, x: D) -> D:
    """Derivative of `noise`."""


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {x}, {px})",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def pnoise_slope_one(state: uint32, x: D, px: int32) -> D:
    """Derivative of `pnoise`."""


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {xy})",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def noise_slope_two(state: uint32, xy: Vec[Two, D]) -> Vec[Two, D]:
    """Derivative of `noise`."""


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {xy}, {px}, {py})",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def pnoise_slope_two(state: uint32, xy: Vec[Two, D], px: int32, py: int32) -> Vec[Two, D]:
    """Derivative of `pnoise`."""


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {xyz})",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def noise_slope_three(state: uint32, xyz: Vec[Three, D]) -> Vec[Three, D]:
    """Derivative of `noise`."""


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {xyz}, {px}, {py}, {pz})",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def pnoise_slope_three(state: uint32, xyz: Vec[Three, D], px: int32, py: int32, pz: int32) -> Vec[Three, D]:
    """Derivative of `pnoise`."""


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {xyzt})",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def noise_slope_four(state: uint32, xyzt: Vec[Four, D]) -> Vec[Four, D]:
    """Derivative of `noise`."""


@builtin(
    "noise_slope",
    cpp="wp::noise_slope({state}, {xyzt}, {px}, {py}, {pz}, {pt})",
    adjoint=INTERNAL,
    reference=_slope,
    group="Internal",
    sampling=_FEW,
    internal=True,
)
def pnoise_slope_four(state: uint32, xyzt: Vec[Four, D], px: int32, py: int32, pz: int32, pt: int32) -> Vec[Four, D]:
    """Derivative of `pnoise`."""


@builtin(
    "curlnoise",
    cpp="wp::curlnoise({state}, {xy}, {octaves}, {lacunarity}, {gain})",
    adjoint={
        "xy": lambda state, xy, octaves, lacunarity, gain, adj: _part(
            f.curlnoise_adjoint(state, xy, octaves, lacunarity, gain, adj), xy
        ),
        "lacunarity": lambda state, xy, octaves, lacunarity, gain, adj: f.curlnoise_adjoint(
            state, xy, octaves, lacunarity, gain, adj
        )[2],
        "gain": lambda state, xy, octaves, lacunarity, gain, adj: f.curlnoise_adjoint(
            state, xy, octaves, lacunarity, gain, adj
        )[3],
    },
    reference=reference.curlnoise,
    group=GROUP,
    sampling=_SMOOTH,
    defaults={"octaves": 1, "lacunarity": 2.0, "gain": 0.5},
)
def curlnoise_two(state: uint32, xy: Vec[Two, D], octaves: uint32, lacunarity: D, gain: D) -> Vec[Two, D]:
    """Divergence-free field: octave i has frequency lacunarity**i and weight gain**i.

    Example: `velocity = wp.curlnoise(wp.rand_init(seed), p)`.
    """


@builtin(
    "curlnoise_adjoint",
    cpp="wp::curlnoise_adjoint({state}, {xy}, {octaves}, {lacunarity}, {gain}, {adj})",
    adjoint=INTERNAL,
    reference=reference.curlnoise_adjoint,
    group="Internal",
    sampling=_SMOOTH,
    internal=True,
)
def curlnoise_adjoint_two(
    state: uint32, xy: Vec[Two, D], octaves: uint32, lacunarity: D, gain: D, adj: Vec[Two, D]
) -> Vec[Four, D]:
    """Adjoints of the point, of lacunarity and of gain."""


@builtin(
    "curlnoise",
    cpp="wp::curlnoise({state}, {xyz}, {octaves}, {lacunarity}, {gain})",
    adjoint={
        "xyz": lambda state, xyz, octaves, lacunarity, gain, adj: _part(
            f.curlnoise_adjoint(state, xyz, octaves, lacunarity, gain, adj), xyz
        ),
        "lacunarity": lambda state, xyz, octaves, lacunarity, gain, adj: f.curlnoise_adjoint(
            state, xyz, octaves, lacunarity, gain, adj
        )[3],
        "gain": lambda state, xyz, octaves, lacunarity, gain, adj: f.curlnoise_adjoint(
            state, xyz, octaves, lacunarity, gain, adj
        )[4],
    },
    reference=reference.curlnoise,
    group=GROUP,
    sampling=_SMOOTH,
    defaults={"octaves": 1, "lacunarity": 2.0, "gain": 0.5},
)
def curlnoise_three(state: uint32, xyz: Vec[Three, D], octaves: uint32, lacunarity: D, gain: D) -> Vec[Three, D]:
    """Divergence-free field: octave i has frequency lacunarity**i and weight gain**i.

    Example: `velocity = wp.curlnoise(wp.rand_init(seed), p)`.
    """


@builtin(
    "curlnoise_adjoint",
    cpp="wp::curlnoise_adjoint({state}, {xyz}, {octaves}, {lacunarity}, {gain}, {adj})",
    adjoint=INTERNAL,
    reference=reference.curlnoise_adjoint,
    group="Internal",
    sampling=_SMOOTH,
    internal=True,
)
def curlnoise_adjoint_three(
    state: uint32, xyz: Vec[Three, D], octaves: uint32, lacunarity: D, gain: D, adj: Vec[Three, D]
) -> Vec[Five, D]:
    """Adjoints of the point, of lacunarity and of gain."""


@builtin(
    "curlnoise",
    cpp="wp::curlnoise({state}, {xyzt}, {octaves}, {lacunarity}, {gain})",
    adjoint={
        "xyzt": lambda state, xyzt, octaves, lacunarity, gain, adj: _part(
            f.curlnoise_adjoint(state, xyzt, octaves, lacunarity, gain, adj), xyzt
        ),
        "lacunarity": lambda state, xyzt, octaves, lacunarity, gain, adj: f.curlnoise_adjoint(
            state, xyzt, octaves, lacunarity, gain, adj
        )[4],
        "gain": lambda state, xyzt, octaves, lacunarity, gain, adj: f.curlnoise_adjoint(
            state, xyzt, octaves, lacunarity, gain, adj
        )[5],
    },
    reference=reference.curlnoise,
    group=GROUP,
    sampling=_SMOOTH,
    defaults={"octaves": 1, "lacunarity": 2.0, "gain": 0.5},
)
def curlnoise_four(state: uint32, xyzt: Vec[Four, D], octaves: uint32, lacunarity: D, gain: D) -> Vec[Three, D]:
    """Divergence-free field, in x, y and z for each t: octave i has frequency lacunarity**i and weight gain**i.

    Example: `velocity = wp.curlnoise(wp.rand_init(seed), wp.vec4(p[0], p[1], p[2], time))`.
    """


@builtin(
    "curlnoise_adjoint",
    cpp="wp::curlnoise_adjoint({state}, {xyzt}, {octaves}, {lacunarity}, {gain}, {adj})",
    adjoint=INTERNAL,
    reference=reference.curlnoise_adjoint,
    group="Internal",
    sampling=_SMOOTH,
    internal=True,
)
def curlnoise_adjoint_four(
    state: uint32, xyzt: Vec[Four, D], octaves: uint32, lacunarity: D, gain: D, adj: Vec[Three, D]
) -> Vec[Six, D]:
    """Adjoints of the point, of lacunarity and of gain."""


__all__ = ["GROUP"]
