"""Random numbers: states are 32 bits, drawing replaces a state by its PCG hash.

A work item makes its state with `rand_init(seed, offset)` and passes the variable to the functions that draw; they
assign the new state to it. Equal seeds and offsets give equal numbers on every device.
"""

from __future__ import annotations

from warp._src.builtins import random_reference as reference
from warp._src.builtins.declare import NonDifferentiable, Sampling, builtin
from warp._src.builtins.patterns import Three, Two, Vec
from warp._src.builtins.random_reference import drawn
from warp._src.types.scalars import float32, int32, uint32

GROUP = "Random"

_RANDOM = NonDifferentiable("random numbers do not depend on anything continuously")
_SEED = NonDifferentiable("a state is an integer")
_ADVANCES = ("state",)


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


@builtin(
    "randi",
    cpp="{ret1} = {state}; {ret0} = (wp::int32)wp::draw({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.integer),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def randi(state: uint32) -> int32:
    """Draw an integer from all of int32, each equally likely.

    Example: `coin = wp.randi(rng) & 1`.
    """


@builtin(
    "randi",
    cpp="{ret1} = {state}; {ret0} = wp::draw_int({ret1}, {low}, {high})",
    adjoint=_RANDOM,
    reference=drawn(reference.integer_between),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def randi_between(state: uint32, low: int32, high: int32) -> int32:
    """Draw an integer from [low, high); `low` if that is empty.

    Example: `die = wp.randi(rng, 1, 7)`.
    """


@builtin(
    "randu",
    cpp="{ret1} = {state}; {ret0} = wp::draw({ret1})",
    adjoint=_RANDOM,
    reference=drawn(lambda draws: draws.bits()),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def randu(state: uint32) -> uint32:
    """Draw an integer from all of uint32, each equally likely.

    Example: `bits = wp.randu(rng)`.
    """


@builtin(
    "randu",
    cpp="{ret1} = {state}; {ret0} = wp::draw_uint({ret1}, {low}, {high})",
    adjoint=_RANDOM,
    reference=drawn(reference.integer_between),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def randu_between(state: uint32, low: uint32, high: uint32) -> uint32:
    """Draw an integer from [low, high); `low` if that is empty.

    Example: `slot = wp.randu(rng, wp.uint32(0), wp.uint32(8))`.
    """


@builtin(
    "randf",
    cpp="{ret1} = {state}; {ret0} = wp::draw_float({ret1})",
    adjoint=_RANDOM,
    reference=drawn(lambda draws: draws.unit()),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def randf(state: uint32) -> float32:
    """Draw a float from [0, 1), a multiple of 2^-24.

    Example: `if wp.randf(rng) < 0.1: ...`.
    """


@builtin(
    "randf",
    cpp="{ret1} = {state}; {ret0} = wp::draw_float({ret1}, {low}, {high})",
    adjoint=_RANDOM,
    reference=drawn(reference.between),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def randf_between(state: uint32, low: float32, high: float32) -> float32:
    """Draw a float from `low` to `high`: (high - low) * randf(state) + low.

    Example: `x = wp.randf(rng, -1.0, 1.0)`.
    """


@builtin(
    "randn",
    cpp="{ret1} = {state}; {ret0} = wp::draw_normal({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.normal),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def randn(state: uint32) -> float32:
    """Draw from the normal distribution of mean 0 and variance 1 (Box and Muller; two draws).

    Example: `x = mean + deviation * wp.randn(rng)`.
    """


@builtin(
    "sample_triangle",
    cpp="{ret1} = {state}; {ret0} = wp::draw_triangle({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.triangle),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_triangle(state: uint32) -> Vec[Two, float32]:
    """Draw a point of a triangle uniformly, as barycentric coordinates (u, v); the third is 1 - u - v.

    Example: `uv = wp.sample_triangle(rng)`.
    """


@builtin(
    "sample_unit_ring",
    cpp="{ret1} = {state}; {ret0} = wp::draw_ring({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.ring),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_ring(state: uint32) -> Vec[Two, float32]:
    """Draw a point of the unit circle uniformly.

    Example: `direction = wp.sample_unit_ring(rng)`.
    """


@builtin(
    "sample_unit_disk",
    cpp="{ret1} = {state}; {ret0} = wp::draw_disk({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.disk),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_disk(state: uint32) -> Vec[Two, float32]:
    """Draw a point inside the unit circle uniformly.

    Example: `place = radius * wp.sample_unit_disk(rng)`.
    """


@builtin(
    "sample_unit_sphere_surface",
    cpp="{ret1} = {state}; {ret0} = wp::draw_sphere_surface({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.sphere_surface),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_sphere_surface(state: uint32) -> Vec[Three, float32]:
    """Draw a point of the unit sphere's surface uniformly.

    Example: `direction = wp.sample_unit_sphere_surface(rng)`.
    """


@builtin(
    "sample_unit_sphere",
    cpp="{ret1} = {state}; {ret0} = wp::draw_sphere({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.sphere),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_sphere(state: uint32) -> Vec[Three, float32]:
    """Draw a point inside the unit sphere uniformly.

    Example: `p = center + radius * wp.sample_unit_sphere(rng)`.
    """


@builtin(
    "sample_unit_hemisphere_surface",
    cpp="{ret1} = {state}; {ret0} = wp::draw_hemisphere_surface({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.hemisphere_surface),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_hemisphere_surface(state: uint32) -> Vec[Three, float32]:
    """Draw a point of the unit sphere's surface with z >= 0 uniformly.

    Example: `direction = wp.sample_unit_hemisphere_surface(rng)`.
    """


@builtin(
    "sample_unit_hemisphere",
    cpp="{ret1} = {state}; {ret0} = wp::draw_hemisphere({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.hemisphere),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_hemisphere(state: uint32) -> Vec[Three, float32]:
    """Draw a point inside the half of the unit sphere with z >= 0 uniformly.

    Example: `p = wp.sample_unit_hemisphere(rng)`.
    """


@builtin(
    "sample_unit_square",
    cpp="{ret1} = {state}; {ret0} = wp::draw_square({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.square),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_square(state: uint32) -> Vec[Two, float32]:
    """Draw a point of the square [-0.5, 0.5)^2 uniformly.

    Example: `place = wp.sample_unit_square(rng)`.
    """


@builtin(
    "sample_unit_cube",
    cpp="{ret1} = {state}; {ret0} = wp::draw_cube({ret1})",
    adjoint=_RANDOM,
    reference=drawn(reference.cube),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
)
def sample_unit_cube(state: uint32) -> Vec[Three, float32]:
    """Draw a point of the cube [-0.5, 0.5)^3 uniformly.

    Example: `p = wp.sample_unit_cube(rng)`.
    """


@builtin(
    "poisson",
    cpp="{ret1} = {state}; {ret0} = wp::draw_poisson({ret1}, {lam})",
    adjoint=_RANDOM,
    reference=drawn(reference.poisson),
    group=GROUP,
    bounded=True,
    updates=_ADVANCES,
    sampling=Sampling(ranges={"lam": (0.0, 40.0)}),
)
def poisson(state: uint32, lam: float32) -> uint32:
    """Draw from the Poisson distribution of mean `lam`; 0, without a draw, unless lam > 0.

    Example: `count = wp.poisson(rng, 3.5)`.
    """


__all__ = ["GROUP"]
