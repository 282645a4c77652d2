"""Quaternion algebra on NumPy values, in the order of operations of the C++ text."""

from __future__ import annotations

import numpy as np

from warp._src.builtins.reference import Array, Number, constant, dot, pack


def hamilton(a: Array, b: Array) -> Array:
    """Multiply two quaternions (x, y, z, w)."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return pack(
        [
            aw * bx + bw * ax + ay * bz - by * az,
            aw * by + bw * ay + az * bx - bz * ax,
            aw * bz + bw * az + ax * by - bx * ay,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )


def conjugate(q: Array) -> Array:
    return pack([-q[0], -q[1], -q[2], q[3]])


def cross(a: Array, b: Array) -> Array:
    return pack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def rotate(q: Array, v: Array) -> Array:
    """Give v (2 w^2 - 1) + 2 w (u x v) + 2 u (u . v) for q = (u, w)."""
    u, w = q[:3], q[3]
    two, one = constant(2, w), constant(1, w)
    return v * (two * w * w - one) + cross(u, v) * (two * w) + u * (two * dot(u, v))


def rotate_adjoint(q: Array, v: Array, adj: Array) -> Array:
    """Adjoint of `rotate` by the quaternion."""
    u, w = q[:3], q[3]
    two, four = constant(2, w), constant(4, w)
    vector = cross(v, adj) * (two * w) + (adj * dot(u, v) + v * dot(u, adj)) * two
    return pack([*vector, four * w * dot(v, adj) + two * dot(cross(u, v), adj)])


def rotation_matrix(q: Array) -> Array:
    """Give the matrix whose columns are the rotated axes."""
    w = q[3]
    axes = np.array([[constant(float(i == j), w) for j in range(3)] for i in range(3)])
    columns = [rotate(q, pack(axes[j])) for j in range(3)]
    return pack([columns[j][i] for i in range(3) for j in range(3)], (3, 3))


def unscaled_from_matrix(m: Array) -> Array:
    """Give a positive multiple of the quaternion of a rotation matrix; linear in the matrix in each of four cases."""
    case, one = matrix_case(m), constant(1, m[0, 0])
    if case == 3:
        w = one + m[0, 0] + m[1, 1] + m[2, 2]
        return pack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], w])
    i, j, k = case, (case + 1) % 3, (case + 2) % 3
    parts: list[Number] = [None] * 4
    parts[i] = one + m[i, i] - m[j, j] - m[k, k]
    parts[j] = m[i, j] + m[j, i]
    parts[k] = m[i, k] + m[k, i]
    parts[3] = m[k, j] - m[j, k]
    return pack(parts)


def unscaled_from_matrix_adjoint(m: Array, adj: Array) -> Array:
    """Adjoint of `unscaled_from_matrix`."""
    case = matrix_case(m)
    result = np.empty((3, 3), dtype=adj.dtype)
    if case == 3:
        x, y, z, w = adj
        result[0], result[1], result[2] = [w, -z, y], [z, w, -x], [-y, x, w]
        return result
    i, j, k = case, (case + 1) % 3, (case + 2) % 3
    result[i, i], result[j, j], result[k, k] = adj[i], -adj[i], -adj[i]
    result[i, j] = result[j, i] = adj[j]
    result[i, k] = result[k, i] = adj[k]
    result[k, j], result[j, k] = adj[3], -adj[3]
    return result


def matrix_case(m: Array) -> int:
    """Tell which component is safely away from 0: 3 (the real part) if the trace is positive, else the largest."""
    if m[0, 0] + m[1, 1] + m[2, 2] > 0:
        return 3
    largest = 1 if m[1, 1] > m[0, 0] else 0
    return 2 if m[2, 2] > m[largest, largest] else largest


def unit(x: Array) -> Array:
    """Divide by the length; 0 stays 0."""
    length = np.sqrt(dot(x, x))
    return pack([c / length for c in x.reshape(-1)], x.shape) if length > 0 else x * constant(0, length)


def power(q: Array, t: Number) -> Array:
    """Give q^t for a unit quaternion, the shorter way round."""
    q = -q if q[3] < 0 else q
    length, w = np.sqrt(dot(q[:3], q[:3])), q[3]
    angle = np.arctan2(length, w)
    scale = np.sin(t * angle) / length if length > 0 else t
    return pack([*(q[:3] * scale), np.cos(t * angle)])


def power_adjoint(q: Array, t: Number, adj: Array) -> Array:
    """Adjoint of `power` by q."""
    sign = constant(-1 if q[3] < 0 else 1, q[3])
    v, w = q[:3] * sign, q[3] * sign
    square = dot(v, v)
    length, norm = np.sqrt(square), square + w * w
    angle, zero = np.arctan2(length, w), square * constant(0, square)
    sine, cosine = np.sin(t * angle), np.cos(t * angle)
    scale = sine / length if length > 0 else t
    curvature = (t * cosine * w / norm - scale) / square if length > 0 else zero
    along = dot(v, adj[:3])
    vector = adj[:3] * scale + v * (along * curvature - adj[3] * scale * t * w / norm)
    real = adj[3] * sine * t * length / norm - along * t * cosine / norm
    return pack([*vector, real]) * sign


def power_slope(q: Array, t: Number) -> Array:
    """Derivative of `power` by t."""
    q = -q if q[3] < 0 else q
    length = np.sqrt(dot(q[:3], q[:3]))
    angle = np.arctan2(length, q[3])
    scale = angle / length if length > 0 else constant(1, t)
    return pack([*(q[:3] * (scale * np.cos(t * angle))), -angle * np.sin(t * angle)])


__all__ = [
    "conjugate",
    "cross",
    "hamilton",
    "matrix_case",
    "power",
    "power_adjoint",
    "power_slope",
    "rotate",
    "rotate_adjoint",
    "rotation_matrix",
    "unit",
    "unscaled_from_matrix",
    "unscaled_from_matrix_adjoint",
]
