"""Random numbers in kernels: states advance, streams are reproducible, distributions have the right moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp

COUNT = 20000


@wp.func
def peek(state: wp.uint32) -> float:
    return wp.randf(state)


@wp.kernel
def draw_in_every_place(seed: int, states: wp.array(dtype=wp.uint32), x: wp.array(dtype=float)):
    state = wp.rand_init(seed)
    states[0] = state
    peek(state)
    states[1] = state
    for i in range(3):
        x[i] = wp.randf(state)
    if x[0] > 2.0:
        x[3] = wp.randf(state)
    else:
        wp.randi(state)
    count = 0
    while count < 2:
        x[4 + count] = wp.randf(state, -1.0, 1.0)
        count += 1
    states[2] = state


def _pcg(state: int) -> int:
    mixed = (state * 747796405 + 2891336453) % 2**32
    word = (((mixed >> ((mixed >> 28) + 4)) ^ mixed) * 277803737) % 2**32
    return (word >> 22) ^ word


def _unit(state: int) -> float:
    return (state >> 8) / 2**24


def test_states_advance_in_loops_and_branches_but_not_through_functions() -> None:
    states, x = wp.zeros(3, dtype=wp.uint32), wp.zeros(6, dtype=float)
    wp.launch(draw_in_every_place, dim=1, inputs=[42, states, x])
    chain = [_pcg(42)]
    for _ in range(6):
        chain.append(_pcg(chain[-1]))
    assert states.numpy().tolist() == [chain[0], chain[0], chain[6]]
    expected = [*map(_unit, chain[1:4]), 0.0, 2 * _unit(chain[5]) - 1, 2 * _unit(chain[6]) - 1]
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)


@wp.kernel
def draw_much(
    seed: int,
    uniform: wp.array(dtype=float),
    normal: wp.array(dtype=float),
    small: wp.array(dtype=float),
    large: wp.array(dtype=float),
    ball: wp.array(dtype=wp.vec3),
    disk: wp.array(dtype=wp.vec2),
    triangle: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    uniform[i] = wp.randf(state)
    normal[i] = wp.randn(state)
    small[i] = float(wp.poisson(state, 4.0))
    large[i] = float(wp.poisson(state, 60.0))
    ball[i] = wp.sample_unit_sphere(state)
    disk[i] = wp.sample_unit_disk(state)
    triangle[i] = wp.sample_triangle(state)


@pytest.fixture(scope="module")
def drawn() -> dict[str, Any]:
    names = ("uniform", "normal", "small", "large", "ball", "disk", "triangle")
    types = (float, float, float, float, wp.vec3, wp.vec2, wp.vec2)
    arrays = [wp.zeros(COUNT, dtype=type) for type in types]
    wp.launch(draw_much, dim=COUNT, inputs=[7, *arrays])
    return {name: array.numpy().astype(float) for name, array in zip(names, arrays, strict=True)}


# Name, mean, variance, fourth central moment; bounds are five standard errors.
MOMENTS = [
    ("uniform", 0.5, 1 / 12, 1 / 80),
    ("normal", 0.0, 1.0, 3.0),
    ("small", 4.0, 4.0, 4.0 + 3 * 16.0),
    ("large", 60.0, 60.0, 60.0 + 3 * 3600.0),
]


@pytest.mark.parametrize(("name", "mean", "variance", "fourth"), MOMENTS, ids=[name for name, *_ in MOMENTS])
def test_moments(drawn: dict[str, Any], name: str, mean: float, variance: float, fourth: float) -> None:
    values = drawn[name]
    assert abs(values.mean() - mean) < 5 * np.sqrt(variance / COUNT)
    assert abs(values.var() - variance) < 5 * np.sqrt((fourth - variance**2) / COUNT)


def test_uniform_numbers_fill_all_bins_and_neighbours_are_uncorrelated(drawn: dict[str, Any]) -> None:
    values = drawn["uniform"]
    counts = np.histogram(values, bins=100, range=(0.0, 1.0))[0]
    chi_square = np.sum((counts - COUNT / 100) ** 2) / (COUNT / 100)
    assert 45 < chi_square < 165
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / np.sqrt(COUNT)


def test_points_fill_their_domains(drawn: dict[str, Any]) -> None:
    radius = np.linalg.norm(drawn["ball"], axis=1)
    assert radius.max() <= 1.0 + 1e-6
    assert abs((radius**3).mean() - 0.5) < 0.01
    assert np.abs(drawn["ball"].mean(axis=0)).max() < 0.02
    square = np.sum(drawn["disk"] ** 2, axis=1)
    assert square.max() <= 1.0 + 1e-6
    assert abs(square.mean() - 0.5) < 0.01
    assert drawn["triangle"].min() >= 0.0
    assert drawn["triangle"].sum(axis=1).max() <= 1.0 + 1e-6
    np.testing.assert_allclose(drawn["triangle"].mean(axis=0), 1 / 3, atol=0.01)


@wp.kernel
def sample_bins(cdf: wp.array(dtype=float), counts: wp.array(dtype=int)):
    state = wp.rand_init(3, wp.tid())
    wp.sample_cdf(state, cdf)
    wp.atomic_add(counts, wp.sample_cdf(state, cdf), 1)


def test_sample_cdf_has_the_probabilities() -> None:
    cdf = wp.array(np.array([0.1, 0.5, 1.0], dtype=np.float32), dtype=float)
    counts = wp.zeros(3, dtype=int)
    wp.launch(sample_bins, dim=COUNT, inputs=[cdf, counts])
    np.testing.assert_allclose(counts.numpy() / COUNT, [0.1, 0.4, 0.5], atol=0.02)


@wp.kernel
def follow_noise(seed: int, p: wp.array(dtype=wp.vec3), value: wp.array(dtype=float)):
    i = wp.tid()
    state = wp.rand_init(seed)
    value[i] = wp.noise(state, p[i]) + wp.length_sq(wp.curlnoise(state, p[i], octaves=wp.uint32(2)))


def test_noise_has_gradients_in_kernels() -> None:
    point = np.array([[0.3, 1.7, -2.2]], dtype=np.float32)
    p, value = wp.array(point, dtype=wp.vec3, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(follow_noise, dim=1, inputs=[5, p, value])
    tape.backward(grads={value: wp.ones(1, dtype=float)})
    state = wp.uint32(wp.rand_init(5))

    def f(x: Any) -> float:
        where = wp.vec3d(*x)
        curl = wp.curlnoise(state, where, wp.uint32(2), wp.float64(2.0), wp.float64(0.5))
        return float(wp.noise(state, where) + wp.length_sq(curl))

    slopes = []
    for axis in np.eye(3) * 1e-5:
        slopes.append((f(point[0] + axis) - f(point[0] - axis)) / 2e-5)
    np.testing.assert_allclose(p.grad.numpy()[0], slopes, rtol=1e-3)


def test_curl_noise_has_no_divergence() -> None:
    state, h = wp.uint32(11), 1e-4
    for start in ([0.3, 0.6], [1.2, -0.7, 2.1]):
        divergence = 0.0
        for axis in range(len(start)):
            ends = []
            for sign in (h, -h):
                moved = list(start)
                moved[axis] += sign
                point = wp.vec2d(*moved) if len(start) == 2 else wp.vec3d(*moved)
                field = wp.curlnoise(state, point, wp.uint32(3), wp.float64(2.0), wp.float64(0.5))
                ends.append(float(field[axis]))
            divergence += (ends[0] - ends[1]) / (2 * h)
        assert abs(divergence) < 1e-5


def test_periodic_noise_repeats() -> None:
    state = wp.uint32(9)
    for x, y in ((0.3, 0.4), (-1.7, 2.6)):
        here = wp.pnoise(state, wp.vec2d(x, y), 3, 5)
        assert here == pytest.approx(wp.pnoise(state, wp.vec2d(x + 3, y - 5), 3, 5), abs=1e-12)
        assert here != pytest.approx(wp.pnoise(state, wp.vec2d(x + 1, y), 3, 5), abs=1e-3)
