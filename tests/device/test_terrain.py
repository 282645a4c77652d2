"""The terrain example in a short form: its values against NumPy, its gradients against each other and differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import warp as wp
from warp.examples import terrain
from warp.examples.terrain_map import load_elevation, sample

Values = NDArray[np.float64]

BOULDERS, STEPS = 6, 80


@pytest.fixture(scope="module")
def scene() -> terrain.Scene:
    return terrain.make_scene(BOULDERS, STEPS)[0]


@pytest.fixture
def launch() -> wp.array:
    return terrain.make_scene(BOULDERS, STEPS)[1]


def splines(u: Values) -> tuple[Values, Values]:
    """Return the cubic B-splines of four neighbours and their derivatives, from their polynomial coefficients."""
    coefficients = np.array([[1, -3, 3, -1], [4, 0, -6, 3], [1, 3, 3, -3], [0, 0, 0, 1]]) / 6.0
    powers = u[:, None] ** np.arange(4.0)
    slopes = np.stack([0.0 * u, 0.0 * u + 1.0, 2.0 * u, 3.0 * u**2], axis=1)
    return powers @ coefficients.T, slopes @ coefficients.T


def surface(east: Values, north: Values) -> tuple[Values, Values, Values]:
    """Return height and slopes at points inside the map."""
    heights, (spacing_x, spacing_y) = load_elevation()
    columns, rows = np.floor(east / spacing_x).astype(int), np.floor(north / spacing_y).astype(int)
    across, slopes_across = splines(east / spacing_x - columns)
    along, slopes_along = splines(north / spacing_y - rows)
    offsets = np.arange(-1, 3)
    patch = heights[rows[:, None, None] + offsets[:, None], columns[:, None, None] + offsets]
    height = np.einsum("nr,nrc,nc->n", along, patch, across)
    slope_x = np.einsum("nr,nrc,nc->n", along, patch, slopes_across) / spacing_x
    slope_y = np.einsum("nr,nrc,nc->n", slopes_along, patch, across) / spacing_y
    return height, slope_x, slope_y


def rolled_by_numpy(start: Values, launch: Values, steps: int) -> Values:
    """Return the paths (steps + 1, boulders, 3)."""
    height, slope_x, slope_y = surface(*start.T)
    position = np.column_stack([start, height])
    velocity = np.column_stack([launch, slope_x * launch[:, 0] + slope_y * launch[:, 1]])
    path = [position]
    for _ in range(steps):
        height, slope_x, slope_y = surface(position[:, 0], position[:, 1])
        normal = np.column_stack([-slope_x, -slope_y, np.ones_like(height)])
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        rising = np.sum(velocity * normal, axis=1)
        sliding = velocity - rising[:, None] * normal
        depth = (height - position[:, 2]) * normal[:, 2]
        load = terrain.STIFFNESS * depth - terrain.DAMPING * rising
        contact = terrain.SOFTNESS * np.logaddexp(0.0, load / terrain.SOFTNESS)
        friction = terrain.FRICTION * contact / np.hypot(np.linalg.norm(sliding, axis=1), terrain.CREEP)
        force = contact[:, None] * normal - friction[:, None] * sliding - terrain.DRAG * velocity
        force[:, 2] -= terrain.GRAVITY
        velocity = velocity + terrain.TIME_STEP * force
        position = position + terrain.TIME_STEP * velocity
        path.append(position)
    return np.array(path)


def test_elevation_model() -> None:
    heights, (spacing_x, spacing_y) = load_elevation()
    assert heights.shape == (344, 403)
    assert heights.dtype == np.float64
    assert (heights.min(), heights.max()) == (236.0, 1076.0)
    assert spacing_y == pytest.approx(92.66, abs=0.01)
    assert spacing_x == pytest.approx(92.66 * np.cos(np.deg2rad(36.59)), abs=0.01)


@wp.kernel
def sample_at(
    points: wp.array(dtype=wp.vec2d),
    heights: wp.array2d(dtype=wp.float64),
    spacing: wp.vec2d,
    out: wp.array(dtype=wp.vec3d),
):
    t = wp.tid()
    height, slope_x, slope_y = sample(heights, spacing, points[t][0], points[t][1])
    out[t] = wp.vec3d(height, slope_x, slope_y)


def test_sampling(scene: terrain.Scene) -> None:
    points = np.random.default_rng(1).uniform([300.0, 300.0], [29_000.0, 31_000.0], (50, 2))
    out = wp.zeros(50, dtype=wp.vec3d)
    inputs = [wp.array(points, dtype=wp.vec2d), scene.heights, scene.spacing]
    wp.launch(sample_at, dim=50, inputs=inputs, outputs=[out])
    np.testing.assert_allclose(out.numpy(), np.column_stack(surface(*points.T)), rtol=1e-9, atol=1e-11)


def test_values_of_both_forms(scene: terrain.Scene, launch: wp.array) -> None:
    expected = rolled_by_numpy(scene.start.numpy(), launch.numpy(), STEPS)
    loop, steps = terrain.simulate_loop(scene, launch), terrain.simulate_steps(scene, launch)
    misses = np.sum((expected[-1, :, :2] - scene.target.numpy()) ** 2, axis=1) * 1e-6
    for outcome in (loop, steps):
        np.testing.assert_allclose(outcome.path, expected, rtol=1e-9)
        np.testing.assert_allclose(outcome.misses.numpy(), misses, rtol=1e-9)
        assert outcome.loss.numpy()[0] == pytest.approx(misses.mean(), rel=1e-9)


def test_gradients_agree_while_the_loss_falls(scene: terrain.Scene, launch: wp.array) -> None:
    for _ in range(2):
        other_form, differences = terrain.check_gradients(scene, launch)
        assert other_form < 1e-10
        assert differences < 1e-4
        losses = terrain.optimise(scene, launch, iterations=25)
    assert losses[-1] < 0.05 * losses[0] or losses[-1] < 1e-4


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terrain.main(
        ["--short", "--particles", "4", "--steps", "30", "--iterations", "3", "--output", str(tmp_path / "new")]
    )
    assert (tmp_path / "new" / "terrain.png").stat().st_size > 10_000
    assert "after 3 steps" in capsys.readouterr().out
