"""Random numbers: states are 32 bits, drawing replaces a state by its PCG hash.

A work item makes its state with `rand_init(seed, offset)` and passes the variable to the functions that draw; they
assign the new state to it. Equal seeds and offsets give equal numbers on every device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warp._src.builtins import random_reference as reference
from warp._src.builtins.declare import Builtin, NonDifferentiable, Sampling, builtin
from warp._src.builtins.patterns import Three, Two, Vec
from warp._src.builtins.random_reference import drawn
from warp._src.types.scalars import float32, int32, uint32

GROUP = "Random"

_RANDOM = NonDifferentiable("random numbers do not depend on anything continuously")
_SEED = NonDifferentiable("a state is an integer")


def _draw(
    name: str, call: str, draw: Callable[..., Any], sampling: Sampling | None = None
) -> Callable[[Callable[..., Any]], Builtin]:
    """Declare a builtin that draws: C++ that advances the state {ret1}, and the same on `Draws`."""
    return builtin(
        name,
        cpp=f"{{ret1}} = {{state}}; {{ret0}} = {call}",
        adjoint=_RANDOM,
        reference=drawn(draw),
        group=GROUP,
        bounded=True,
        updates=("state",),
        sampling=sampling,
    )


@builtin("rand_init", cpp="wp::rand_init({seed})", adjoint=_SEED, reference=reference.seeded, group=GROUP, bounded=True)
def rand_init_seed(seed: int32) -> uint32:
    """Make the state of a random number generator from a seed.

    Example: `rng = wp.rand_init(42)`.
    """


@builtin(
    "rand_init",
    cpp="wp::rand_init({seed}, {offset})",
    adjoint=_SEED,
    reference=reference.seeded,
    group=GROUP,
    bounded=True,
)
def rand_init_offset(seed: int32, offset: int32) -> uint32:
    """Make a state from a seed and an offset, usually the index of the work item; the streams are independent.

    Example: `rng = wp.rand_init(seed, wp.tid())`.
    """


@_draw("randi", "(wp::int32)wp::draw({ret1})", reference.integer)
def randi(state: uint32) -> int32:
    """Draw an integer from all of int32, each equally likely.

    Example: `coin = wp.randi(rng) & 1`.
    """


@_draw("randi", "wp::draw_int({ret1}, {low}, {high})", reference.integer_between)
def randi_between(state: uint32, low: int32, high: int32) -> int32:
    """Draw an integer from [low, high); `low` if that is empty.

    Example: `die = wp.randi(rng, 1, 7)`.
    """


@_draw("randu", "wp::draw({ret1})", lambda draws: draws.bits())
def randu(state: uint32) -> uint32:
    """Draw an integer from all of uint32, each equally likely.

    Example: `bits = wp.randu(rng)`.
    """


@_draw("randu", "wp::draw_uint({ret1}, {low}, {high})", reference.integer_between)
def randu_between(state: uint32, low: uint32, high: uint32) -> uint32:
    """Draw an integer from [low, high); `low` if that is empty.

    Example: `slot = wp.randu(rng, wp.uint32(0), wp.uint32(8))`.
    """


@_draw("randf", "wp::draw_float({ret1})", lambda draws: draws.unit())
def randf(state: uint32) -> float32:
    """Draw a float from [0, 1), a multiple of 2^-24.

    Example: `if wp.randf(rng) < 0.1: ...`.
    """


@_draw("randf", "wp::draw_float({ret1}, {low}, {high})", reference.between)
def randf_between(state: uint32, low: float32, high: float32) -> float32:
    """Draw a float from `low` to `high`: (high - low) * randf(state) + low.

    Example: `x = wp.randf(rng, -1.0, 1.0)`.
    """


@_draw("randn", "wp::draw_normal({ret1})", reference.normal)
def randn(state: uint32) -> float32:
    """Draw from the normal distribution of mean 0 and variance 1 (Box and Muller; two draws).

    Example: `x = mean + deviation * wp.randn(rng)`.
    """


@_draw("sample_triangle", "wp::draw_triangle({ret1})", reference.triangle)
def sample_triangle(state: uint32) -> Vec[Two, float32]:
    """Draw a point of a triangle uniformly, as barycentric coordinates (u, v); the third is 1 - u - v.

    Example: `uv = wp.sample_triangle(rng)`.
    """


@_draw("sample_unit_ring", "wp::draw_ring({ret1})", reference.ring)
def sample_unit_ring(state: uint32) -> Vec[Two, float32]:
    """Draw a point of the unit circle uniformly.

    Example: `direction = wp.sample_unit_ring(rng)`.
    """


@_draw("sample_unit_disk", "wp::draw_disk({ret1})", reference.disk)
def sample_unit_disk(state: uint32) -> Vec[Two, float32]:
    """Draw a point inside the unit circle uniformly.

    Example: `place = radius * wp.sample_unit_disk(rng)`.
    """


@_draw("sample_unit_sphere_surface", "wp::draw_sphere_surface({ret1})", reference.sphere_surface)
def sample_unit_sphere_surface(state: uint32) -> Vec[Three, float32]:
    """Draw a point of the unit sphere's surface uniformly.

    Example: `direction = wp.sample_unit_sphere_surface(rng)`.
    """


@_draw("sample_unit_sphere", "wp::draw_sphere({ret1})", reference.sphere)
def sample_unit_sphere(state: uint32) -> Vec[Three, float32]:
    """Draw a point inside the unit sphere uniformly.

    Example: `p = center + radius * wp.sample_unit_sphere(rng)`.
    """


@_draw("sample_unit_hemisphere_surface", "wp::draw_hemisphere_surface({ret1})", reference.hemisphere_surface)
def sample_unit_hemisphere_surface(state: uint32) -> Vec[Three, float32]:
    """Draw a point of the unit sphere's surface with z >= 0 uniformly.

    Example: `direction = wp.sample_unit_hemisphere_surface(rng)`.
    """


@_draw("sample_unit_hemisphere", "wp::draw_hemisphere({ret1})", reference.hemisphere)
def sample_unit_hemisphere(state: uint32) -> Vec[Three, float32]:
    """Draw a point inside the half of the unit sphere with z >= 0 uniformly.

    Example: `p = wp.sample_unit_hemisphere(rng)`.
    """


@_draw("sample_unit_square", "wp::draw_square({ret1})", reference.square)
def sample_unit_square(state: uint32) -> Vec[Two, float32]:
    """Draw a point of the square [-0.5, 0.5)^2 uniformly.

    Example: `place = wp.sample_unit_square(rng)`.
    """


@_draw("sample_unit_cube", "wp::draw_cube({ret1})", reference.cube)
def sample_unit_cube(state: uint32) -> Vec[Three, float32]:
    """Draw a point of the cube [-0.5, 0.5)^3 uniformly.

    Example: `p = wp.sample_unit_cube(rng)`.
    """


@_draw("poisson", "wp::draw_poisson({ret1}, {lam})", reference.poisson, Sampling(ranges={"lam": (0.0, 40.0)}))
def poisson(state: uint32, lam: float32) -> uint32:
    """Draw from the Poisson distribution of mean `lam`; 0, without a draw, unless lam > 0.

    Example: `count = wp.poisson(rng, 3.5)`.
    """


__all__ = ["GROUP"]
