"""Gradient noise (Perlin 2002) on NumPy values, in the order of operations of the C++ text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from warp._src.builtins.random_reference import pcg
from warp._src.builtins.reference import Array, Number, constant, dot, pack, total

_MASK = 0xFFFFFFFF
NO_PERIOD = (0, 0, 0, 0)


def _coordinate(index: int, period: int) -> int:
    return index % period if period > 0 else index & _MASK


def _cell(x: Number) -> int:
    if not np.isfinite(x):
        return 0
    floor: int = math.floor(x)
    return min(max(floor, -(2**31)), 2**31 - 1)


class _Cell:
    """The lattice cell around a point: weights of its corners and their derivatives along each axis."""

    def __init__(self, x: Sequence[Number], period: Sequence[int]) -> None:
        self.x, self.period = x, [int(p) for p in period]
        self.low = [_cell(c) for c in x]
        self.d = [c - np.floor(c) for c in x]
        n = [constant(number, x[0]) for number in (1, 6, 15, 10, 30, 60, 120, 180)]
        rise = [t * t * t * (t * (t * n[1] - n[2]) + n[3]) for t in self.d]
        self.weights = [(n[0] - s, s) for s in rise]
        slopes = [t * t * (t * (t * n[4] - n[5]) + n[4]) for t in self.d]
        self.slopes = [(-s, s) for s in slopes]
        curvatures = [t * (t * (t * n[6] - n[7]) + n[5]) for t in self.d]
        self.curvatures = [(-c, c) for c in curvatures]

    def corners(self, state: Any) -> Any:
        """Give bits, gradient and its product with the distance, for each corner."""
        size = len(self.x)
        for number in range(2**size):
            bits = [number >> a & 1 for a in range(size)]
            hashed = int(state)
            for a in range(size):
                hashed = pcg((hashed + _coordinate(self.low[a] + bits[a], self.period[a])) & _MASK)
            gradient = []
            for _ in range(size):
                hashed = pcg(hashed)
                gradient.append(constant((hashed >> 8) * 2.0**-23 - 1.0, self.x[0]))
            distance = [self.d[a] - constant(bits[a], self.x[0]) for a in range(size)]
            along = total([g * d for g, d in zip(gradient, distance, strict=True)])
            yield bits, gradient, along

    def weight(self, bits: Sequence[int], *derived: int) -> Number:
        """Multiply the weights of a corner along all axes, differentiated by some."""
        tables = (self.weights, self.slopes, self.curvatures)
        order = [derived[0], *(a for a in range(len(bits)) if a != derived[0])] if derived else range(len(bits))
        factors = [tables[derived.count(a)][a][bits[a]] for a in order]
        result = factors[0]
        for factor in factors[1:]:
            result = result * factor
        return result


def value(state: Any, x: Sequence[Number], period: Sequence[int] = NO_PERIOD) -> Number:
    """Give the noise at a point."""
    cell = _Cell(x, period)
    return total([cell.weight(bits) * along for bits, _, along in cell.corners(state)])


def slope(state: Any, x: Sequence[Number], period: Sequence[int] = NO_PERIOD) -> list[Number]:
    """Give the first derivatives of the noise."""
    cell = _Cell(x, period)
    corners = list(cell.corners(state))
    return [
        total([cell.weight(bits) * gradient[k] + cell.weight(bits, k) * along for bits, gradient, along in corners])
        for k in range(len(x))
    ]


def _curvature(state: Any, x: Sequence[Number]) -> list[list[Number]]:
    cell, size = _Cell(x, NO_PERIOD), len(x)
    corners = list(cell.corners(state))
    rows: list[list[Number]] = [[None] * size for _ in range(size)]
    for k, j in product(range(size), repeat=2):
        terms = [
            cell.weight(bits, k) * gradient[j] + cell.weight(bits, j) * gradient[k] + cell.weight(bits, k, j) * along
            for bits, gradient, along in corners
        ]
        rows[k][j] = total(terms)
    return rows


def _potential(state: Any, number: int) -> int:
    return pcg((int(state) + number) & _MASK)


def curl(state: Any, x: Array) -> Array:
    """Give the rotated slope of a potential in the plane, else the curl of three potentials by x, y and z."""
    if len(x) == 2:
        by_x, by_y = slope(state, x)
        return pack([by_y, -by_x])
    a, b, c = (slope(_potential(state, number), x) for number in (1, 2, 3))
    return pack([c[1] - b[2], a[2] - c[0], b[0] - a[1]])


def _curl_adjoint(state: Any, x: Array, adj: Array) -> Array:
    if len(x) == 2:
        h = _curvature(state, x)
        return pack(adj[0] * h[1][k] - adj[1] * h[0][k] for k in range(2))
    found = x * constant(0, x[0])
    for number in range(3):
        h = _curvature(_potential(state, number + 1), x)
        following, last = (number + 1) % 3, (number + 2) % 3
        found = found + pack(adj[following] * h[last][k] - adj[last] * h[following][k] for k in range(len(x)))
    return found


def curlnoise(state: Any, x: Array, octaves: Any, lacunarity: Number, gain: Number) -> Array:
    """Sum octaves of the curl."""
    found = pack([constant(0, x[0])] * (2 if len(x) == 2 else 3))
    frequency, amplitude = constant(1, x[0]), constant(1, x[0])
    for _ in range(int(octaves)):
        found = found + curl(state, x * frequency) * amplitude
        frequency, amplitude = frequency * lacunarity, amplitude * gain
    return found


def curlnoise_adjoint(state: Any, x: Array, octaves: Any, lacunarity: Number, gain: Number, adj: Array) -> Array:
    """Give the adjoints of x, lacunarity and gain, in this order."""
    zero, one = constant(0, x[0]), constant(1, x[0])
    by_x, by_lacunarity, by_gain = x * zero, zero, zero
    frequency, amplitude, frequency_slope, amplitude_slope = one, one, zero, zero
    for _ in range(int(octaves)):
        inner = _curl_adjoint(state, x * frequency, adj) * amplitude
        by_x = by_x + inner * frequency
        by_lacunarity = by_lacunarity + dot(inner, x) * frequency_slope
        by_gain = by_gain + dot(curl(state, x * frequency), adj) * amplitude_slope
        frequency_slope = frequency_slope * lacunarity + frequency
        amplitude_slope = amplitude_slope * gain + amplitude
        frequency, amplitude = frequency * lacunarity, amplitude * gain
    return pack([*by_x, by_lacunarity, by_gain])


__all__ = ["NO_PERIOD", "curl", "curlnoise", "curlnoise_adjoint", "slope", "value"]
