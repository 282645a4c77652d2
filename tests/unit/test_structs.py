"""Struct types: layout, instances, checks and exchange with NumPy."""

from __future__ import annotations

import copy
import ctypes
import math

import numpy as np
import pytest

from warp._src.types import (
    SHORT_NAMES,
    ArrayType,
    IndexedArrayType,
    StructType,
    bool_,
    float32,
    float64,
    int8,
    int64,
    struct,
)
from warp.errors import ArgumentError, KernelTypeError

vec3, vec3d, mat22d = SHORT_NAMES["vec3"], SHORT_NAMES["vec3d"], SHORT_NAMES["mat22d"]


@struct
class Particle:
    """A point mass."""

    alive: bool
    mass: float
    position: vec3
    scale: float64 = 2.0
    kind: int


class Stand:
    """What a struct asks of an array."""

    def __init__(self, dtype, ndim, data=b""):
        self.dtype, self.ndim, self.data = dtype, ndim, data

    def descriptor(self):
        return self.data.ljust(120, b"\0")


def test_layout_is_that_of_c():
    class Native(ctypes.Structure):
        _fields_ = (
            ("alive", ctypes.c_bool),
            ("mass", ctypes.c_float),
            ("position", ctypes.c_float * 3),
            ("scale", ctypes.c_double),
            ("kind", ctypes.c_int32),
        )

    assert Particle.size == ctypes.sizeof(Native)
    assert Particle.alignment == ctypes.alignment(Native)
    assert Particle.offsets == {name: getattr(Native, name).offset for name, _ in Native._fields_}
    native = Native.from_buffer_copy(Particle.pack(Particle(True, 3.0, (1, 2, 3), 4.0, -5)))
    assert (native.alive, native.mass, list(native.position), native.scale, native.kind) == (True, 3, [1, 2, 3], 4, -5)


def test_declaration():
    assert Particle.name == "Particle"
    assert Particle.key.endswith(".Particle")
    assert Particle.__doc__ == "A point mass."
    assert Particle.fields == {
        "alive": bool_,
        "mass": float32,
        "position": vec3,
        "scale": float64,
        "kind": SHORT_NAMES["vec2i"].scalar,
    }
    assert repr(Particle) == "struct(Particle)"


def test_types_are_equal_only_to_themselves():
    twin = StructType("Particle", Particle.fields)
    assert twin != Particle
    assert len({twin, Particle}) == 2
    assert ArrayType(Particle, 1) == ArrayType(Particle, 1)
    assert ArrayType(Particle, 1) != ArrayType(twin, 1)


def test_annotations_may_name_locals():
    scalar = float64

    @struct
    class Local:
        value: scalar

    assert Local.fields == {"value": float64}


def test_values():
    particle = Particle()
    assert (particle.alive, particle.mass, particle.position, particle.scale, particle.kind) == (
        False,
        0,
        vec3(),
        2.0,
        0,
    )
    position = vec3(1, 2, 3)
    particle.position = position
    position.x = 9
    assert particle.position == vec3(1, 2, 3)
    particle.position.x = 5
    assert particle.position == vec3(5, 2, 3)
    particle.mass = 0.1
    assert particle.mass == float(np.float32(0.1))
    particle.position = np.array([1, 1, 1])
    assert particle.position == (1, 1, 1)
    assert repr(Particle(mass=1.5)).startswith("Particle(alive=False, mass=1.5, position=vec3f(0.0, 0.0, 0.0)")
    assert set(dir(particle)) == set(Particle.fields)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("position", vec3d(), "field 'position' of struct 'Particle' has type vec3f.*got vec3d"),
        ("position", 1.0, "got float"),
        ("mass", "heavy", "field 'mass' of struct 'Particle' has type float32.*got str"),
        ("kind", 1.5, "expected int32, got float"),
        ("kind", 2**40, "out of range for int32"),
    ],
)
def test_bad_values_name_the_field_and_both_types(field, value, message):
    with pytest.raises(ArgumentError, match=message):
        setattr(Particle(), field, value)


def test_unknown_fields():
    with pytest.raises(AttributeError, match=r"no field 'weight'; its fields are alive, mass"):
        Particle().weight = 1.0
    with pytest.raises(AttributeError, match="no field 'weight'"):
        Particle().weight  # noqa: B018 - the access is the test
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del Particle().mass
    with pytest.raises(TypeError, match="'alive' twice"):
        Particle(True, alive=False)
    with pytest.raises(TypeError, match="5 fields, got 6"):
        Particle(*range(6))


def test_equality_and_copies():
    a, b = Particle(mass=1.0), Particle(mass=1.0)
    assert a == b
    b.position.y = 1.0
    assert a != b
    for made in (copy.copy(b), copy.deepcopy(b)):
        assert made == b
        made.position.y = 2.0
        assert b.position.y == 1.0
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


@struct
class Inner:
    weight: int8
    frame: mat22d


@struct
class Outer:
    first: int8
    inner: Inner
    values: ArrayType(float32, 2)
    last: int64


def test_nesting():
    outer = Outer(first=1, inner=Inner(2, (1, 2, 3, 4)), last=3)
    outer.inner.weight = 7
    assert Inner.size == 40
    assert Outer.offsets == {"first": 0, "inner": 8, "values": 48, "last": 168}
    data = Outer.pack(outer)
    assert len(data) == Outer.size == 176
    assert np.frombuffer(data[16:48]).tolist() == [1, 2, 3, 4]
    assert data[8] == 7
    assert data[48:168] == bytes(120)
    assert Outer.from_bytes(data) == outer
    with pytest.raises(ArgumentError, match="expected struct 'Inner', got Particle"):
        outer.inner = Particle()


def test_array_fields():
    outer = Outer()
    assert outer.values is None
    array = Stand(np.dtype("float32"), 2, b"descriptor")
    outer.values = array
    assert outer.values is array
    assert "values=<array(dtype=float32, ndim=2)>" in repr(outer)
    assert Outer.pack(outer)[48:58] == b"descriptor"
    assert copy.copy(outer).values is array
    with pytest.raises(ArgumentError, match=r"expected array\(dtype=float32, ndim=2\), got array\(.*ndim=1\)"):
        outer.values = Stand(float32, 1)
    with pytest.raises(ArgumentError, match="dtype=float64"):
        outer.values = Stand(float64, 2)
    with pytest.raises(ArgumentError, match="got list"):
        outer.values = [[1.0]]
    with pytest.raises(ArgumentError, match=r"field 'values' of struct 'Outer' is an array"):
        Outer.from_bytes(Outer.pack(outer))
    outer.values = np.ones((2, 2), np.float32)
    with pytest.raises(ArgumentError, match=r"field 'values' of struct 'Outer'.*no descriptor"):
        Outer.pack(outer)
    outer.values = None
    assert Outer.pack(outer) == bytes(Outer.size)


def test_indexed_array_field():
    @struct
    class Indexed:
        values: IndexedArrayType(float32, 1)

    assert Indexed.size == 184
    assert Indexed.pack(Indexed()) == bytes(184)


def test_numpy_exchange():
    particles = np.zeros(2, dtype=Particle.numpy_dtype())
    assert particles.itemsize == Particle.size
    particles[1] = Particle.to_numpy_value(Particle(True, 1.5, (1, 2, 3), math.pi, 4))
    assert particles["position"][1].tolist() == [1, 2, 3]
    assert Particle.from_numpy_value(particles[1]) == Particle(True, 1.5, (1, 2, 3), math.pi, 4)
    with pytest.raises(ArgumentError, match="fields"):
        Particle.from_numpy_value(np.zeros(1, dtype=[("x", float)])[0])


def test_bad_declarations():
    with pytest.raises(KernelTypeError, match=r"field 'name' of struct 'Bad'.*str"):

        @struct
        class Bad:
            name: str

    with pytest.raises(KernelTypeError, match="no annotated fields"):

        @struct
        class Empty:
            pass

    with pytest.raises(TypeError, match="decorates a class"):
        struct(lambda: None)


class _Sized:
    @property
    def doubled(self):
        return self.radius * 2.0


def test_instances_have_the_methods_of_the_class():
    @struct
    class Ball(_Sized):
        radius: float
        colour = "red"

        def grow(self, by):
            self.radius += by
            return self.doubled

        @staticmethod
        def unit():
            return Ball(1.0)

        @classmethod
        def name(cls):
            return cls.__name__

    ball = Ball(2.0)
    assert ball.grow(1.0) == 6.0
    assert (ball.radius, ball.doubled, ball.colour, ball.name()) == (3.0, 6.0, "red", "Ball")
    assert ball.unit() == Ball(1.0)
    with pytest.raises(AttributeError, match="no field 'mass'"):
        ball.mass  # noqa: B018
    with pytest.raises(AttributeError, match="no field 'doubled'"):
        ball.doubled = 1.0


@pytest.mark.parametrize("name", ["__name__", "__mro__", "__wrapped__", "missing"])
def test_an_instance_has_no_attributes_of_its_class_object(name):
    assert not hasattr(Particle(), name)
