"""The map of the terrain example: a digital elevation model, and the smooth surface through it."""

from __future__ import annotations

import numpy as np
from matplotlib import cbook
from numpy.typing import NDArray

import warp as wp

EARTH_RADIUS = 6_371_008.8  # m, mean radius


def load_elevation() -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Return heights in metres, rows from south to north, and the spacing (m) of columns and rows.

    The file gives the spacing in degrees, 3 arc seconds: 93 m from row to row, and less from column to column, since
    meridians approach each other to the north.
    """
    with cbook.get_sample_data("jacksboro_fault_dem.npz") as model:
        heights = np.ascontiguousarray(model["elevation"][::-1], dtype=np.float64)
        latitude = np.deg2rad(0.5 * (float(model["ymin"]) + float(model["ymax"])))
        spacing_x = EARTH_RADIUS * np.deg2rad(float(model["dx"])) * np.cos(latitude)
        spacing_y = EARTH_RADIUS * np.deg2rad(float(model["dy"]))
    return heights, (float(spacing_x), float(spacing_y))


@wp.func
def spline(u: wp.float64):
    """Return the weights of four neighbouring heights (cubic B-spline), a fraction `u` past the second of them."""
    w = 1.0 - u
    return wp.vec4d(w * w * w, 4.0 - 3.0 * u * u * (1.0 + w), 4.0 - 3.0 * w * w * (1.0 + u), u * u * u) / 6.0


@wp.func
def spline_slope(u: wp.float64):
    """Return the derivatives of the weights with respect to `u`."""
    w = 1.0 - u
    return wp.vec4d(-w * w, u * (3.0 * u - 4.0), w * (4.0 - 3.0 * w), u * u) / 2.0


@wp.func
def sample(heights: wp.array2d[wp.float64], spacing: wp.vec2d, east: wp.float64, north: wp.float64):
    """Return the height (m) of the ground and its slopes to the east and north (m/m) at a point (m)."""
    x = wp.clamp(east / spacing[0], 1.0, wp.float64(heights.shape[1] - 3))
    y = wp.clamp(north / spacing[1], 1.0, wp.float64(heights.shape[0] - 3))
    column = int(x)
    row = int(y)
    weights_x = spline(x - wp.float64(column))
    weights_y = spline(y - wp.float64(row))
    slopes_x = spline_slope(x - wp.float64(column))
    slopes_y = spline_slope(y - wp.float64(row))
    height = wp.float64(0.0)
    slope_x = wp.float64(0.0)
    slope_y = wp.float64(0.0)
    for k in range(4):
        r = row + k - 1
        line = wp.vec4d(heights[r, column - 1], heights[r, column], heights[r, column + 1], heights[r, column + 2])
        height += weights_y[k] * wp.dot(weights_x, line)
        slope_x += weights_y[k] * wp.dot(slopes_x, line)
        slope_y += slopes_y[k] * wp.dot(weights_x, line)
    return height, slope_x / spacing[0], slope_y / spacing[1]
