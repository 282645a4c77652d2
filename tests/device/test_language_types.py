"""Types in compiled kernels: bfloat16, unsigned arithmetic, structs from and to NumPy, arrays inside structs."""

from __future__ import annotations

from typing import Any

import numpy as np

import warp as wp

Floats = wp.array(dtype=float)
Narrow = wp.array(dtype=wp.bfloat16)


@wp.kernel
def narrow(x: Narrow, wide: Floats, y: Narrow, vectors: wp.array(dtype=wp.types.vector(2, wp.bfloat16))):
    i = wp.tid()
    wide[i] = float(x[i]) * 2.0
    y[i] = wp.sin(x[i]) * x[i] + wp.bfloat16(0.1)
    vectors[i] = vectors[i] + vectors[i] * x[i]


def test_bfloat16_computes_in_float_and_rounds() -> None:
    x = wp.array([1.0, 2.5, 3.14159], dtype=wp.bfloat16)
    wide, y = wp.zeros(3, dtype=float), wp.zeros(3, dtype=wp.bfloat16)
    vectors = wp.full(3, wp.types.vector(2, wp.bfloat16)(1.0, 0.5), dtype=wp.types.vector(2, wp.bfloat16))
    wp.launch(narrow, 3, inputs=[x, wide, y, vectors])
    inputs = [1.0, 2.5, 3.140625]
    assert wide.numpy().tolist() == [2 * v for v in inputs]
    for v, stored in zip(inputs, list(y), strict=True):
        product = wp.bfloat16(float(wp.bfloat16(float(np.sin(np.float32(v))))) * v)
        assert float(stored) == float(wp.bfloat16(float(product) + float(wp.bfloat16(0.1))))
    assert list(vectors[1]) == [3.5, 1.75]


@wp.kernel
def rounding(x: wp.array(dtype=wp.float64), y: Narrow):
    i = wp.tid()
    y[i] = wp.bfloat16(x[i])


def test_doubles_are_rounded_once() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=50), 1 + 2.0**-8 + np.array([0, 1e-12, -1e-12]), [1e39, -1e-42, 0.0, np.inf]])
    y = wp.zeros(len(x), dtype=wp.bfloat16)
    wp.launch(rounding, len(x), inputs=[wp.array(x, dtype=wp.float64), y])
    assert y.numpy().tolist() == [wp.bfloat16.encode(wp.bfloat16(float(v)).value) for v in x]


@wp.kernel
def wrapping(a: wp.uint8, b: wp.uint32, y: wp.array(dtype=wp.uint32), z: wp.array(dtype=wp.uint8)):
    z[0] = a + wp.uint8(1)
    z[1] = a * a
    y[0] = b + wp.uint32(1)
    y[1] = wp.uint32(0) - b
    y[2] = b >> wp.uint32(31)


def test_unsigned_arithmetic_wraps() -> None:
    y, z = wp.zeros(3, dtype=wp.uint32), wp.zeros(2, dtype=wp.uint8)
    wp.launch(wrapping, 1, inputs=[255, 2**32 - 1, y, z])
    assert y.numpy().tolist() == [0, 1, 1]
    assert z.numpy().tolist() == [0, 1]


@wp.struct
class Particle:
    mass: float
    position: wp.vec3


@wp.kernel
def moving(particles: wp.array(dtype=Particle), y: Floats):
    i = wp.tid()
    y[i] = particles[i].mass + particles[i].position[1]
    particles[i].mass = 10.0


def test_arrays_of_structs_from_numpy() -> None:
    table = np.zeros(3, dtype=[("mass", "f8"), ("position", "f8", 3)])
    table["mass"], table["position"] = [1, 2, 3], np.arange(9).reshape(3, 3)
    particles, y = wp.array(table, dtype=Particle), wp.zeros(3, dtype=float)
    wp.launch(moving, 3, inputs=[particles, y])
    assert y.numpy().tolist() == [2, 6, 10]
    assert particles.numpy()["mass"].tolist() == [10, 10, 10]
    assert particles[1].position == wp.vec3(3, 4, 5)


@wp.struct
class Field:
    values: wp.array(dtype=float)
    scale: float
    particle: Particle


@wp.kernel
def field_kernel(field: Field, y: Floats):
    i = wp.tid()
    y[i] = field.values[i] * field.values[i] * field.scale + field.particle.position[0]


def test_arrays_inside_structs_have_gradients() -> None:
    field: Any = Field()
    field.values = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    field.scale = 3.0
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(field_kernel, 2, inputs=[field], outputs=[y])
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    assert field.values.grad.numpy().tolist() == [6, 12]
