"""Overwritten elements of other kinds: tables, vectors, structs, arrays in structs, narrow types."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autograd.checking import check_gradients

import warp as wp

Float = wp.float64
Floats = wp.array(dtype=wp.float64)
Ints = wp.array(dtype=wp.int32)
Vectors = wp.array(dtype=wp.vec3d)

X = np.array([0.71, 1.13, -0.94, 0.43, 1.21, 0.58])
Y = np.array([0.35, -0.62, 1.07, 0.81, -1.15, 0.27])


@wp.kernel
def in_a_table(table: wp.array2d(dtype=wp.float64)):
    i, j = wp.tid()
    table[i, j] *= table[i, (j + 1) % 3]
    row = table[i]
    row[j] = wp.sin(row[j]) * row[0]


@pytest.mark.cpu
def test_tables_and_rows_over_two_dimensions() -> None:
    def run(table: wp.array) -> wp.array:
        wp.launch(in_a_table, dim=(2, 3), inputs=[table])
        return table

    check_gradients(run, X.reshape(2, 3))


@wp.kernel
def in_a_field(x: wp.array4d(dtype=wp.float64)):
    i, j, k, m = wp.tid()
    x[i, j, k, m] *= x[i, j, k, m]
    x[0, j, k, 0] *= x[i, j, k, m]


@pytest.mark.cpu
def test_four_dimensions() -> None:
    def run(x: wp.array) -> wp.array:
        wp.launch(in_a_field, dim=(2, 1, 3, 2), inputs=[x])
        return x

    check_gradients(run, np.concatenate([X, Y]).reshape(2, 1, 3, 2))


@wp.kernel
def of_vectors(v: Vectors, n: Ints):
    t = wp.tid()
    v[t][1] *= v[t][0]
    v[t][n[t] % 3] = wp.dot(v[t], v[t])
    v[t] *= v[t][2]
    for k in range(n[t]):
        v[t][k % 3] = v[t][k % 3] * v[t][(k + 1) % 3]
    v[t] = wp.cross(v[t], v[0])


@pytest.mark.cpu
def test_vectors_and_their_components() -> None:
    def run(v: wp.array) -> wp.array:
        wp.launch(of_vectors, dim=2, inputs=[v, wp.array([2, 4], dtype=wp.int32)])
        return v

    check_gradients(run, wp.array(X.reshape(2, 3), dtype=wp.vec3d))


@wp.struct
class Particle:
    mass: wp.float64
    velocity: wp.vec3d
    age: wp.int32


@wp.kernel
def of_structs(particles: wp.array(dtype=Particle), x: Floats):
    t = wp.tid()
    particles[t].mass = x[t]
    particles[t].velocity = wp.vec3d(x[t], x[0], x[t] * x[t])
    particles[t].mass *= particles[t].velocity[1]
    particles[t].age += t + 1
    before = particles[t]
    for k in range(particles[t].age):
        particles[t].velocity[k % 3] *= particles[t].mass + Float(0.2)
    particles[t].mass = before.velocity[2] * particles[t].velocity[2] * particles[t].velocity[0]
    after = particles[t]
    particles[t] = before
    x[t] = after.mass * particles[t].mass


@pytest.mark.cpu
def test_structs_and_their_fields() -> None:
    def run(x: wp.array) -> wp.array:
        wp.launch(of_structs, dim=3, inputs=[wp.zeros(3, dtype=Particle, requires_grad=True), x])
        return x

    check_gradients(run, X[:3])


@wp.struct
class Holder:
    values: wp.array(dtype=wp.float64)
    weight: wp.float64


def holder_of(values: wp.array) -> Holder:
    holder = Holder()
    holder.values, holder.weight = values, 1.3
    return holder


@wp.kernel
def of_a_member(holder: Holder, y: Floats):
    t = wp.tid()
    holder.values[t] *= holder.values[t] * holder.weight
    y[t] *= holder.values[t] * holder.values[t]


@pytest.mark.parametrize("is_shared", [False, True], ids=["apart", "the same array"])
def test_an_array_in_a_struct(is_shared: bool) -> None:
    def run(x: wp.array, y: wp.array) -> list[wp.array]:
        wp.launch(of_a_member, dim=6, inputs=[holder_of(x), x if is_shared else y])
        return [x, y]

    check_gradients(run, X, Y)


@wp.kernel
def of_members(holders: wp.array(dtype=Holder), y: Floats):
    t = wp.tid()
    first, second = holders[t % 2], holders[1]
    x = first.values[t]
    y[t] = x * x * first.weight
    second.values[t] = wp.sin(x)


@wp.kernel
def read_a_member(holders: wp.array(dtype=Holder), y: Floats):
    t = wp.tid()
    x = holders[1].values[t]
    y[t] = x * x


@pytest.mark.parametrize("kernel", [of_members, read_a_member], ids=lambda kernel: kernel.key)
def test_arrays_in_an_array_of_structs(kernel: wp.Kernel) -> None:
    def run(x: wp.array, y: wp.array, z: wp.array) -> list[wp.array]:
        wp.launch(kernel, dim=6, inputs=[wp.array([holder_of(x), holder_of(y)], dtype=Holder), z])
        return [x, y, z]

    check_gradients(run, X, Y, X)


# -- values of all sizes on one stream -----------------------------------------------------------------------


@wp.struct
class Mixed:
    a: wp.float32
    b: wp.float64
    n: wp.int8
    m: wp.mat22d


@wp.kernel
def of_many_types(
    x: Floats,
    mixed: wp.array(dtype=Mixed),
    halves: wp.array(dtype=wp.float16),
    rotations: wp.array(dtype=wp.quat),
    small: wp.array(dtype=wp.uint8),
):
    t = wp.tid()
    for _k in range(3):
        half, rotation, number, struct = halves[t], rotations[t], small[t], mixed[t]
        halves[t] = wp.float16(1.0)
        rotations[t] = rotation * rotation
        small[t] = wp.uint8(7)
        factor = struct.m[0, 1] * struct.b * Float(struct.a) * Float(struct.n)
        x[t] = x[t] * x[t] * factor * Float(half) * Float(rotation[3]) * Float(number)
        mixed[t].a = struct.a * wp.float32(0.5)
        mixed[t].m = struct.m * struct.b
        mixed[t].n = wp.int8(3)


def test_values_of_many_types() -> None:
    def run(x: wp.array) -> wp.array:
        mixed = Mixed()
        mixed.a, mixed.b, mixed.n, mixed.m = 1.25, 0.75, 1, wp.mat22d(1.0, 0.8, 0.5, 1.0)
        others = [
            wp.array([mixed] * 3, dtype=Mixed),
            wp.full(3, 1.5, dtype=wp.float16),
            wp.full(3, wp.quat(0.1, 0.2, 0.3, 0.9), dtype=wp.quat),
            wp.full(3, 2, dtype=wp.uint8),
        ]
        wp.launch(of_many_types, 3, inputs=[x, *others])
        return x

    check_gradients(run, np.array([0.9, 0.8, 1.1]), rtol=1e-6)


@wp.kernel
def of_chosen_elements(x: wp.indexedarray(dtype=wp.float64), y: Floats):
    t = wp.tid()
    x[t] *= x[t] + y[t]


@pytest.mark.cpu
def test_an_indexed_array_that_names_an_element_twice() -> None:
    def run(x: wp.array, y: wp.array) -> list[wp.array]:
        chosen = wp.indexedarray(x, [wp.array([2, 0, 2, 1], dtype=int)])
        wp.launch(of_chosen_elements, 4, inputs=[chosen, y])
        return [x, y]

    check_gradients(run, X[:3], Y[:4])
