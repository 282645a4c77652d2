"""Kernels that use every operation of the IR, with arguments to run them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import warp as wp
from warp._src.lang.objects import Kernel

Floats = wp.array(dtype=wp.float64)
Singles = wp.array(dtype=wp.float32)
Halves = wp.array(dtype=wp.float16)
Ints = wp.array(dtype=wp.int32)
Grid = wp.array2d(dtype=wp.float64)
Vectors = wp.array(dtype=wp.vec3d)
COUNT = 23


@wp.struct
class Particle:
    position: wp.vec3d
    mass: wp.float64
    kind: wp.int32


@wp.struct
class Box:
    low: wp.vec3d
    high: wp.vec3d
    weights: wp.array(dtype=wp.float64)


@wp.kernel
def saxpy(a: wp.float64, x: Floats, y: Floats):
    i = wp.tid()
    y[i] = a * x[i] + wp.sin(x[i])


@wp.kernel
def coordinates(out: wp.array4d(dtype=wp.int32), sums: wp.array2d(dtype=wp.int64)):
    i, j, k, l = wp.tid()
    out[i, j, k, l] = ((i * 10 + j) * 10 + k) * 10 + l
    wp.atomic_add(sums, j, k, wp.int64(i + l))


@wp.kernel
def repeated(counts: Ints):
    i = wp.tid()
    wp.atomic_add(counts, i, 1)


@wp.kernel
def loops(counts: Ints, x: Floats, y: Floats):
    i = wp.tid()
    s = x[i]
    v = wp.vec3d(s, s * s, wp.float64(1.0))
    for k in range(counts[i]):
        if s > 1.5:
            continue
        s = s * 1.02 + 0.1 * wp.sin(s)
        v = wp.cross(v, wp.vec3d(s, wp.float64(0.3), wp.float64(0.2))) + v * 0.5
        if k > 90:
            break
    n = wp.int32(0)
    while wp.abs(s) > 0.25:
        s = s * 0.75
        n += 1
    y[i] = s * wp.length(v) + wp.float64(n)


@wp.kernel
def nested(counts: Ints, x: Floats, y: Floats):
    i = wp.tid()
    total = wp.float64(0.0)
    for a in range(counts[i]):
        s = x[i] + wp.float64(a) * 0.01
        for b in range(a % 5):
            s = s * s * 0.5 + 0.1
        total += s * total * 0.1 + s
    y[i] = total


@wp.kernel
def overwrites(x: Floats, y: Floats):
    i = wp.tid()
    x[i] = x[i] * x[i]
    x[i] = wp.sin(x[i]) * y[i]
    for k in range(i % 7):
        y[i] = y[i] * x[i] + y[i] * y[i] * 0.125


@wp.kernel
def particles(parts: wp.array(dtype=Particle), box: Box, out: wp.array(dtype=Particle), energy: Floats):
    i = wp.tid()
    p = parts[i]
    for axis in range(3):
        if p.position[axis] < box.low[axis]:
            p.position[axis] = box.low[axis]
    p.mass = p.mass * box.weights[p.kind]
    p.kind += 1
    out[i] = p
    out[i].mass = p.mass * 2.0
    wp.atomic_add(energy, 0, p.mass * wp.dot(p.position, p.position))


@wp.kernel
def aggregates(v: Vectors, rows: Grid, out: wp.array(dtype=wp.mat33d), spread: Vectors):
    i = wp.tid()
    row = rows[i]
    a = wp.outer(v[i], v[i]) + wp.mat33d(row[0], 0.0, 0.0, 0.0, row[1], 0.0, 0.0, 0.0, row[2])
    q = wp.quat_from_axis_angle(wp.normalize(v[i]), row[0])
    t = wp.transformation(v[i], q, dtype=wp.float64)
    a[1] = wp.transform_point(t, v[i])
    a[2, 0] = wp.determinant(a)
    out[i] = wp.inverse(a + wp.identity(n=3, dtype=wp.float64) * 4.0) @ a
    wp.atomic_add(spread, i % 3, a[1])


@wp.kernel
def small_numbers(x: Halves, n: wp.array(dtype=wp.uint8), out: Halves, wide: Singles):
    i = wp.tid()
    h = x[i] * x[i] + wp.float16(0.5)
    wp.atomic_add(out, i % 5, h)
    wp.atomic_max(wide, i % 2, wp.float32(h) * wp.float32(n[i]))
    wide[3 + i] = wp.float32(wp.int8(n[i])) / 3.0


@wp.kernel
def atomics(
    x: Ints, i32: Ints, u32: wp.array(dtype=wp.uint32), i64: wp.array(dtype=wp.int64), f32: Singles, f64: Floats
):
    i = wp.tid()
    value = x[i]
    wp.atomic_add(i32, 0, value)
    wp.atomic_sub(i32, 1, value)
    wp.atomic_min(i32, 2, value)
    wp.atomic_max(i32, 3, value)
    wp.atomic_sub(u32, 0, wp.uint32(value))
    wp.atomic_max(u32, 1, wp.uint32(value))
    wp.atomic_add(i64, 0, wp.int64(value))
    wp.atomic_sub(i64, 1, wp.int64(value))
    wp.atomic_min(i64, 2, wp.int64(value))
    wp.atomic_max(i64, 3, wp.int64(value))
    wp.atomic_min(f32, 0, wp.float32(value))
    wp.atomic_max(f64, 0, wp.float64(value))
    wp.atomic_min(f64, 1, wp.float64(value))


@wp.func
def clipped(x: wp.float64, n: wp.int32):
    if x < 0.1:
        return x * x, n
    for k in range(n):
        x = x * 0.9
    return wp.sqrt(x), n + 1


@wp.func_grad(clipped)
def adjoint_of_clipped(x: wp.float64, n: wp.int32, adj_ret0: wp.float64, adj_ret1: wp.int32):
    wp.adjoint[x] += adj_ret0 * 0.5


@wp.func
def total_of(row: Floats, n: wp.int32):
    total = wp.float64(0.0)
    for k in range(n):
        total = total + row[k] * wp.float64(k + 1)
    return total


@wp.kernel
def calls(x: Floats, rows: Grid, y: Floats):
    i = wp.tid()
    a, n = clipped(x[i], i % 4)
    y[i] = a * total_of(rows[i], 3) + wp.float64(n)


@wp.func_native(
    "return sqrt(x) * pow(2.0, (double)n) + max(x, 0.5);",
    "adj_x += adj_ret * (0.5 / sqrt(x) * pow(2.0, (double)n) + (x > 0.5 ? 1.0 : 0.0));",
)
def scaled_root(x: wp.float64, n: wp.int32) -> wp.float64: ...


@wp.func_native("atomicAdd(hits, 1); atomicMax(&hits[1], n); marks[i] = (int)floor(1.5 * n) + abs(-n);")
def mark(hits: Ints, marks: Ints, i: wp.int32, n: wp.int32): ...


@wp.func_native(
    "out[i] = sqrt(x[i]) * 2.0;",
    "atomicAdd(&adj_x[i], adj_out[i] / sqrt(x[i])); adj_out[i] = 0.0;",
)
def write_root(x: Floats, i: wp.int32, out: Floats): ...


@wp.kernel
def native_arrays(x: Floats, y: Floats):
    write_root(x, wp.tid(), y)


@wp.kernel
def natives(x: Floats, y: Floats, hits: Ints, marks: Ints):
    i = wp.tid()
    mark(hits, marks, i, i % 5)
    y[i] = scaled_root(x[i], i % 3)
    if y[i] > 100.0:
        wp.printf("%d %f\n", i, y[i])


@wp.kernel
def reports(x: Floats, y: Floats):
    i = wp.tid()
    if x[i] > 100.0:
        wp.printf("%d %f\n", i, x[i])
    assert x[i] < 1000.0
    y[i] = wp.where(x[i] > 0.5, x[i] // 0.25, x[i] % 0.25) + wp.float64(i // 3 % 4 << 2)


@dataclass(frozen=True)
class Case:
    """A kernel, the shape of its launch, and how to make its arguments (arrays with the element's axes last)."""

    kernel: Kernel
    shape: tuple[int, ...]
    arguments: Callable[[np.random.Generator], list[Any]]


def _floats(random: np.random.Generator, *shape: int) -> Any:
    return random.uniform(0.2, 1.2, shape or (COUNT,))


def _particles(random: np.random.Generator) -> Any:
    parts = np.zeros(COUNT, dtype=Particle.numpy_dtype())
    parts["position"] = random.uniform(0, 1, (COUNT, 3))
    parts["mass"] = random.uniform(1, 2, COUNT)
    parts["kind"] = np.arange(COUNT) % 4
    return parts


CASES = (
    Case(saxpy, (COUNT,), lambda r: [np.float64(1.5), _floats(r), _floats(r)]),
    Case(coordinates, (2, 3, 4, 3), lambda r: [np.zeros((2, 3, 4, 3), np.int32), np.zeros((3, 4), np.int64)]),
    Case(repeated, (COUNT, 5), lambda r: [np.zeros(COUNT, np.int32)]),
    Case(loops, (COUNT,), lambda r: [r.integers(0, 150, COUNT).astype(np.int32), _floats(r), _floats(r)]),
    Case(nested, (COUNT,), lambda r: [r.integers(0, 40, COUNT).astype(np.int32), _floats(r), _floats(r)]),
    Case(overwrites, (COUNT,), lambda r: [_floats(r), _floats(r)]),
    Case(
        particles,
        (COUNT,),
        lambda r: [
            _particles(r), {"low": [0.3] * 3, "high": [1.0] * 3, "weights": _floats(r, 4)},
            _particles(r), _floats(r, 1),
        ],
    ),
    Case(
        aggregates,
        (COUNT,),
        lambda r: [_floats(r, COUNT, 3), _floats(r, COUNT, 3), _floats(r, COUNT, 3, 3), _floats(r, 3, 3)],
    ),
    Case(
        small_numbers,
        (COUNT,),
        lambda r: [
            _floats(r).astype(np.float16), r.integers(0, 256, COUNT).astype(np.uint8),
            _floats(r, 5).astype(np.float16), _floats(r, COUNT + 3).astype(np.float32),
        ],
    ),
    Case(
        atomics,
        (COUNT,),
        lambda r: [
            r.integers(-99, 99, COUNT).astype(np.int32), np.zeros(4, np.int32), np.zeros(2, np.uint32),
            np.zeros(4, np.int64), np.zeros(1, np.float32), np.zeros(2),
        ],
    ),
    Case(calls, (COUNT,), lambda r: [_floats(r), _floats(r, COUNT, 3), _floats(r)]),
    Case(native_arrays, (COUNT,), lambda r: [_floats(r), _floats(r)]),
    Case(natives, (COUNT,), lambda r: [_floats(r), _floats(r), np.zeros(2, np.int32), np.zeros(COUNT, np.int32)]),
    Case(reports, (COUNT,), lambda r: [_floats(r), _floats(r)]),
)  # fmt: skip
