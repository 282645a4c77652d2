"""The picture of the terrain example: paths on the hills, and the loss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import LightSource
from matplotlib.figure import Figure
from numpy.typing import NDArray

from warp.examples.terrain_map import load_elevation


def draw(
    file: Path,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    target: NDArray[np.float64],
    losses: Sequence[float],
) -> None:
    """Save a picture: paths (steps + 1, boulders, 3) and targets (boulders, 2) in metres on the hills, and the loss."""
    heights, (spacing_x, spacing_y) = load_elevation()
    rows, columns = heights.shape
    extent = (0.0, 1e-3 * spacing_x * (columns - 1), 0.0, 1e-3 * spacing_y * (rows - 1))
    light = LightSource(azdeg=315, altdeg=45)
    hills = light.shade(
        heights, matplotlib.colormaps["gist_earth"], blend_mode="overlay", vert_exag=2.0, dx=spacing_x, dy=spacing_y
    )
    figure = Figure(figsize=(12.0, 6.0), layout="constrained")
    terrain, curve = figure.subplots(1, 2, width_ratios=[1.6, 1.0])

    terrain.imshow(hills, origin="lower", extent=extent, interpolation="bilinear")
    for path, color, label in ((before, "white", "before"), (after, "crimson", "after")):
        lines = terrain.plot(1e-3 * path[:, :, 0], 1e-3 * path[:, :, 1], color=color, linewidth=0.8)
        lines[0].set_label(label)
    terrain.scatter(*(1e-3 * target.T), s=12.0, color="black", marker="x", linewidth=1.0, label="targets", zorder=3)
    points = 1e-3 * np.concatenate([before[:, :, :2].reshape(-1, 2), after[:, :, :2].reshape(-1, 2), target])
    (west, south), (east, north) = points.min(axis=0) - 1.0, points.max(axis=0) + 1.0
    terrain.set(xlim=(west, east), ylim=(south, north), xlabel="east (km)", ylabel="north (km)", title="paths")
    terrain.legend()

    curve.semilogy(losses)
    curve.set(xlabel="optimisation step", ylabel="mean squared miss (km$^2$)", title="loss")
    curve.grid(alpha=0.3)
    figure.savefig(file, dpi=120)
