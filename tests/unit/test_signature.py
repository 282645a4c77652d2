"""Annotations, sizes, components and generic types."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pytest

from warp._src.types import (
    SHORT_NAMES,
    AnyFloat,
    AnyInt,
    AnyScalar,
    ArrayType,
    IndexedArrayType,
    StructType,
    align_of,
    bool_,
    canonical,
    component_type,
    float16,
    float32,
    float64,
    int32,
    int64,
    is_differentiable,
    is_generic,
    matrix,
    pack_value,
    scalar_of,
    size_of,
    substitute,
    type_name,
    uint8,
    unify,
    vector,
)
from warp.errors import KernelTypeError

vec3, mat22, mat33, quat, transform = (SHORT_NAMES[name] for name in ("vec3", "mat22", "mat33", "quat", "transform"))
T = TypeVar("T")
point = StructType("Point", {"position": vec3, "frames": ArrayType(mat33, 1), "tag": int32})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (float, float32),
        (int, int32),
        (bool, bool_),
        (np.float64, float64),
        (np.dtype("uint8"), uint8),
        (np.int64, int64),
        (vec3, vec3),
        (Any, Any),
        (T, T),
        (point, point),
        (ArrayType(float, 2), ArrayType(float32, 2)),
    ],
)
def test_canonical(annotation, expected):
    assert canonical(annotation) == expected


@pytest.mark.parametrize("annotation", [str, "float", None, list, 3, float32(1.0), vec3(), object])
def test_what_is_no_type(annotation):
    with pytest.raises(KernelTypeError, match="not a type that kernels know"):
        canonical(annotation)


def test_array_types():
    a = ArrayType(float, 2)
    assert a.dtype is float32
    assert repr(a) == a.name == "array(dtype=float32, ndim=2)"
    assert ArrayType(vec3).name == "array(dtype=vec3f, ndim=1)"
    assert ArrayType(Any).name == "array(dtype=Any, ndim=1)"
    assert IndexedArrayType(int).name == "indexedarray(dtype=int32, ndim=1)"
    assert (a.size, a.alignment) == (120, 8)
    assert (IndexedArrayType(int).size, IndexedArrayType(int).alignment) == (184, 8)
    assert len({ArrayType(float32, 1), ArrayType(float, 1), IndexedArrayType(float, 1)}) == 2
    for bad in (0, 5, 1.5, True):
        with pytest.raises(ValueError, match="1 to 4 dimensions"):
            ArrayType(float32, bad)
    with pytest.raises(TypeError, match="cannot be arrays"):
        ArrayType(a)


@pytest.mark.parametrize(
    ("t", "name", "size", "alignment"),
    [
        (float16, "float16", 2, 2),
        (vec3, "vec3f", 12, 4),
        (transform, "transformf", 28, 4),
        (ArrayType(float), "array(dtype=float32, ndim=1)", 120, 8),
        (point, "Point", 144, 8),
    ],
)
def test_names_and_sizes(t, name, size, alignment):
    assert (type_name(t), size_of(t), align_of(t)) == (name, size, alignment)


def test_generic_types():
    for generic in (
        Any,
        T,
        ArrayType(Any, 2),
        ArrayType(T),
        vector(Any, float32),
        vector(3, T),
        ArrayType(vector(3, T)),
    ):
        assert is_generic(generic)
    for concrete in (float32, vec3, point, ArrayType(vec3, 2)):
        assert not is_generic(concrete)
    assert [type_name(variable) for variable in (AnyScalar, AnyFloat, AnyInt, Any)] == ["Scalar", "Float", "Int", "Any"]
    assert type_name((float32, vec3)) == "float32, vec3f"
    with pytest.raises(KernelTypeError, match="generic"):
        size_of(T)


def test_scalar_of():
    assert scalar_of(float64) is float64
    assert scalar_of(mat22) is float32
    assert scalar_of(ArrayType(vec3, 2)) is float32
    with pytest.raises(KernelTypeError, match="Point"):
        scalar_of(point)


@pytest.mark.parametrize(
    ("t", "path", "expected"),
    [
        (vec3, [2], float32),
        (vec3, [None], float32),
        (matrix((2, 3), float64), [1], vector(3, float64)),
        (matrix((2, 3), float64), [None, 2], float64),
        (quat, [3], float32),
        (transform, ["p"], vec3),
        (transform, ["q", 3], float32),
        (transform, [6], float32),
        (point, ["position", 1], float32),
        (point, ["frames"], ArrayType(mat33, 1)),
        (point, [], point),
    ],
)
def test_component_types(t, path, expected):
    assert component_type(t, path) == expected


@pytest.mark.parametrize(
    ("t", "path", "message"),
    [
        (vec3, [3], "component 3 is out of range for vec3f"),
        (matrix((2, 3), float64), [0, 3], "component 3 is out of range for vec3d"),
        (vec3, [0, 0], "float32 has no components"),
        (point, ["velocity"], "no field 'velocity'; its fields are position, frames, tag"),
        (vec3, ["p"], "vec3f has no field 'p'"),
        (point, [0], "Point has no components"),
    ],
)
def test_components_that_do_not_exist(t, path, message):
    with pytest.raises(KernelTypeError, match=message):
        component_type(t, path)


def test_differentiability():
    for t in (float16, float64, vec3, mat22, quat, transform, point):
        assert is_differentiable(t)
    only_arrays = StructType("Arrays", {"values": ArrayType(float32), "count": int32})
    for t in (bool_, int32, SHORT_NAMES["vec2i"], ArrayType(float32), only_arrays):
        assert not is_differentiable(t)
    assert is_differentiable(StructType("Nested", {"inner": point}))


def test_packing():
    assert pack_value(float64, 0.5) == np.float64(0.5).tobytes()
    assert pack_value(vec3, (1, 2, 3)) == np.array([1, 2, 3], np.float32).tobytes()
    assert pack_value(point, point((1, 2, 3), None, 4))[-8:-4] == np.int32(4).tobytes()
    with pytest.raises(ValueError, match="-1 is out of range for uint8"):
        pack_value(uint8, -1)
    with pytest.raises(TypeError, match="expected struct 'Point', got float"):
        pack_value(point, 1.0)
    with pytest.raises(KernelTypeError, match="generic"):
        pack_value(T, 1.0)


def test_generic_types_match_concrete_ones():
    bindings: dict[TypeVar, Any] = {}
    assert unify(ArrayType(T, 2), ArrayType(float64, 2), bindings)
    assert unify(vector(Any, T), vector(5, float64), bindings)
    assert bindings == {T: float64}
    assert not unify(T, float32, bindings)
    assert not unify(AnyFloat, int32, {})
    assert not unify(ArrayType(T, 1), ArrayType(float64, 2), {})
    assert not unify(matrix((2, Any), T), matrix((3, 3)), {})
    assert not unify(vector(4, T), quat, {})
    assert unify(Any, vec3, {})
    assert unify(float32, float32, {})
    assert substitute(ArrayType(matrix((3, 3), T), 2), {T: float32}) == ArrayType(mat33, 2)
    assert substitute(vec3, {T: float64}) is vec3
