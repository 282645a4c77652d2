"""Angles of rotations on NumPy values, in the order of operations of the C++ text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from warp._src.builtins.reference import Array, Number, constant, dot, pack
from warp._src.builtins.rotation_reference import cross, hamilton, unit


def axis_angle(q: Array) -> tuple[Array, Number]:
    """Give the axis, 0 for no rotation, and the angle from 0 to pi."""
    v, w = q[:3], q[3]
    if w < 0:
        v, w = -v, -w
    return unit(v), constant(2, w) * np.arctan2(np.sqrt(dot(v, v)), w)


def about_axis(angle: Number, axis: int) -> Array:
    """Give the rotation about a coordinate axis."""
    half = angle * constant(0.5, angle)
    parts = [angle * constant(0, angle)] * 3
    parts[axis] = np.sin(half)
    return pack([*parts, np.cos(half)])


def _axes(*axes: Any) -> list[int]:
    return [int(axis) % 3 for axis in axes]


def from_euler(e: Array, i: Any, j: Any, k: Any) -> Array:
    """Compose rotations about the fixed axes i, j and k, in that order."""
    i, j, k = _axes(i, j, k)
    return hamilton(about_axis(e[k], k), hamilton(about_axis(e[j], j), about_axis(e[i], i)))


def from_euler_adjoint(e: Array, i: Any, j: Any, k: Any, adj: Array) -> Array:
    """Adjoint of `from_euler`."""
    i, j, k = _axes(i, j, k)
    first, second, third = about_axis(e[i], i), about_axis(e[j], j), about_axis(e[k], k)
    result = np.zeros_like(e)
    for axis, left, right in ((i, hamilton(third, second), first), (j, third, hamilton(second, first))):
        result[axis] += _turned(axis, left, right, adj)
    identity = pack([constant(0, e[0])] * 3 + [constant(1, e[0])])
    result[k] += _turned(k, identity, hamilton(third, hamilton(second, first)), adj)
    return result


def _turned(axis: int, left: Array, right: Array, adj: Array) -> Number:
    pure = np.zeros_like(adj)
    pure[axis] = constant(0.5, adj[0])
    return dot(adj, hamilton(hamilton(left, pure), right))


def _parts(q: Array, i: int, j: int, k: int) -> tuple[bool, int, Number, Number, Number, Number, Number]:
    is_proper, last = i == k, k if i == j else 3 - i - j
    sign = constant((i - j) * (j - last) * (last - i) // 2, q[0])
    if is_proper:
        return is_proper, last, sign, q[3], q[i], q[j], q[last] * sign
    return is_proper, last, sign, q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]


def to_euler(q: Array, i: Any, j: Any, k: Any) -> Array:
    """Give the angles of rotations about fixed axes (Bernardes and Viollet 2022); at gimbal lock the first is 0."""
    i, j, k = _axes(i, j, k)
    is_proper, last, sign, a, b, c, d = _parts(q, i, j, k)
    total, difference = np.arctan2(b, a), np.arctan2(d, c)
    second = constant(2, a) * np.arctan2(np.sqrt(c * c + d * d), np.sqrt(a * a + b * b))
    third = total + difference
    angles = [a * constant(0, a)] * 3
    angles[i] = total - difference
    angles[j] = second if is_proper else second - constant(0.5 * math.pi, a)
    angles[last] = third if is_proper else third * sign
    return pack(angles)


def to_rpy(q: Array) -> Array:
    """Give roll, pitch and yaw from -pi to pi."""
    turn = constant(2 * math.pi, q[0])
    half = constant(math.pi, q[0])
    return pack(a - turn if a > half else a + turn if a < -half else a for a in to_euler(q, 0, 1, 2))


def _turn_slopes(y: Number, x: Number, adj: Number) -> tuple[Number, Number]:
    square = x * x + y * y
    if not square > 0:
        return square, square
    return adj * x / square, -adj * y / square


def to_euler_adjoint(q: Array, i: Any, j: Any, k: Any, adj: Array) -> Array:
    """Adjoint of `to_euler`."""
    i, j, k = _axes(i, j, k)
    is_proper, last, sign, a, b, c, d = _parts(q, i, j, k)
    third = adj[last] if is_proper else adj[last] * sign
    adj_b, adj_a = _turn_slopes(b, a, third + adj[i])
    adj_d, adj_c = _turn_slopes(d, c, third - adj[i])
    upper, lower = np.sqrt(c * c + d * d), np.sqrt(a * a + b * b)
    adj_upper, adj_lower = _turn_slopes(upper, lower, constant(2, a) * adj[j])
    if upper > 0:
        adj_c, adj_d = adj_c + adj_upper * c / upper, adj_d + adj_upper * d / upper
    if lower > 0:
        adj_a, adj_b = adj_a + adj_lower * a / lower, adj_b + adj_lower * b / lower
    result = np.zeros_like(q)
    if is_proper:
        result[3], result[i], result[j], result[last] = adj_a, adj_b, adj_c, adj_d * sign
        return result
    result[3], result[j] = adj_a + adj_c, adj_c - adj_a
    result[i], result[k] = adj_b - adj_d, (adj_b + adj_d) * sign
    return result


def twist(axis: Array, q: Array) -> Array:
    """Give the part of a rotation about an axis."""
    return unit(unscaled_twist(axis, q))


def unscaled_twist(axis: Array, q: Array) -> Array:
    return pack([*(axis * dot(axis, q[:3])), q[3]])


def twist_angle(axis: Array, q: Array) -> Number:
    return constant(2, q[3]) * np.arctan2(dot(axis, q[:3]), q[3])


def unscaled_between(a: Array, b: Array) -> Array:
    """Give a multiple of the shortest rotation from one unit vector to another, any half turn for opposite ones."""
    real = constant(1, a[0]) + dot(a, b)
    if real > 1e-6:
        return pack([*cross(a, b), real])
    zero, one = constant(0, real), constant(1, real)
    axis = pack([one, zero, zero]) if abs(a[0]) < 0.6 else pack([zero, one, zero])
    return pack([*cross(a, axis), zero])


def between(a: Array, b: Array) -> Array:
    return unit(unscaled_between(unit(a), unit(b)))


__all__ = [
    "axis_angle",
    "between",
    "from_euler",
    "from_euler_adjoint",
    "to_euler",
    "to_euler_adjoint",
    "to_rpy",
    "twist",
    "twist_angle",
    "unscaled_between",
    "unscaled_twist",
]
