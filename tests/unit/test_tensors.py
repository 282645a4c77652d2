"""Host values of vectors, matrices, quaternions and transforms."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warp._src.types import (
    SHORT_NAMES,
    bool_,
    float32,
    float64,
    int32,
    matrix,
    quaternion,
    row_type,
    transformation,
    uint8,
    vector,
)

vec2, vec3, vec3d, vec3i = (SHORT_NAMES[name] for name in ("vec2", "vec3", "vec3d", "vec3i"))
mat22, mat33d, mat22d = (SHORT_NAMES[name] for name in ("mat22", "mat33d", "mat22d"))
quat, quatd, transform, transformd = (SHORT_NAMES[name] for name in ("quat", "quatd", "transform", "transformd"))
numbers = st.floats(min_value=-10.0, max_value=10.0)


def rotation_matrix(q):
    """Return the rotation of a unit quaternion (x, y, z, w) as a matrix, written out."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_the_same_arguments_give_the_same_class():
    assert vector(3) is vector(length=3, dtype=float) is vector(3, np.float32) is vec3
    assert matrix((2, 2)) is matrix(shape=(2, 2), dtype=float32) is mat22
    assert quaternion() is quaternion(dtype=float) is quat
    assert transformation(float64) is transformd
    assert vector(3, float64) is not vec3


@pytest.mark.parametrize(
    ("name", "shape", "scalar", "size"),
    [
        ("vec3f", (3,), "float32", 12),
        ("vec2ub", (2,), "uint8", 2),
        ("vec4ul", (4,), "uint64", 32),
        ("mat33d", (3, 3), "float64", 72),
        ("quath", (4,), "float16", 8),
        ("transformf", (7,), "float32", 28),
        ("spatial_vectord", (6,), "float64", 48),
        ("spatial_matrixf", (6, 6), "float32", 144),
    ],
)
def test_layout(name, shape, scalar, size):
    tensor = SHORT_NAMES[name]
    assert (tensor.name, tensor.shape, tensor.scalar.name, tensor.size) == (name, shape, scalar, size)
    assert tensor.length == math.prod(shape)
    assert tensor.alignment == tensor.scalar.size
    assert tensor.numpy_dtype() == np.dtype((scalar, shape))


def test_names():
    assert SHORT_NAMES["vec3"] is SHORT_NAMES["vec3f"]
    assert len(SHORT_NAMES) == 3 * 12 + 3 * 4 + 4 * 4
    assert vector(7, float32).name == "vec_t(7,float32)"
    assert vector(3, bool_).name == "vec_t(3,bool)"
    assert matrix((2, 3), float64).name == "mat_t(2,3,float64)"
    assert vec3.category == "vector"
    assert mat22.category == "matrix"
    assert quat.category == "quaternion"
    assert transform.category == "transform"
    assert row_type(matrix((2, 3), float64)) is vec3d


def test_bad_types():
    with pytest.raises(TypeError, match="scalar type"):
        vector(3, str)
    with pytest.raises(ValueError, match="at least 1"):
        vector(0)
    with pytest.raises(TypeError, match="integer"):
        vector(2.5)
    with pytest.raises(ValueError, match="rows, columns"):
        matrix(3)
    with pytest.raises(TypeError, match="float type"):
        quaternion(int32)


def test_generic_types_serve_as_annotations_only():
    variable = TypeVar("variable")
    assert vector(Any, variable).generic
    assert matrix((Any, 3), float32).generic
    assert vector(3, variable).name == "vec_t(3,variable)"
    with pytest.raises(TypeError, match="generic"):
        vector(Any, float32)(1.0, 2.0)


@pytest.mark.parametrize(
    "value",
    [
        vec3(1, 2, 3),
        vec3([1.0, 2.0, 3.0]),
        vec3((1, 2, 3)),
        vec3(np.array([1, 2, 3])),
        vec3(vec3d(1, 2, 3)),
        vec3(vec2(1, 2), 3),
        vec3(float32(1), np.float64(2), 3),
        vec3(number for number in (1, 2, 3)),
    ],
)
def test_vector_constructors(value):
    assert value == vec3(1.0, 2.0, 3.0)
    assert list(value) == [1.0, 2.0, 3.0]


def test_vector_special_constructors():
    assert vec3() == vec3(0, 0, 0)
    assert vec3(2.5) == vec3(2.5, 2.5, 2.5)
    assert list(vector(2, uint8)(257, -1)) == [1, 255]
    assert vec3(0.1, 0, 0)[0] == float(np.float32(0.1))
    for wrong in ((1, 2), (1, 2, 3, 4), ([1, 2],), (vec2(1, 2),)):
        with pytest.raises(ValueError, match="needs 3 components"):
            vec3(*wrong)
    with pytest.raises(TypeError, match="vec3f"):
        vec3("abc")


@pytest.mark.parametrize(
    "value",
    [
        mat22(1, 2, 3, 4),
        mat22([1, 2, 3, 4]),
        mat22([[1, 2], [3, 4]]),
        mat22([1, 2], [3, 4]),
        mat22(vec2(1, 2), vec2(3, 4)),
        mat22([vec2(1, 2), vec2(3, 4)]),
        mat22(np.array([[1, 2], [3, 4]])),
        mat22(mat22d(1, 2, 3, 4)),
        mat22.from_rows(vec2(1, 2), vec2(3, 4)),
        mat22.from_rows([[1, 2], [3, 4]]),
        mat22.from_cols(vec2(1, 3), vec2(2, 4)),
        mat22.from_cols([1, 3], [2, 4]),
    ],
)
def test_matrix_constructors(value):
    np.testing.assert_array_equal(np.asarray(value), np.array([[1, 2], [3, 4]], dtype=np.float32))


def test_matrix_special_constructors():
    wide = matrix((2, 3), float64)
    assert np.asarray(wide.from_cols((1, 2), (3, 4), (5, 6))).tolist() == [[1, 3, 5], [2, 4, 6]]
    assert mat22() == mat22(0, 0, 0, 0)
    assert mat22(2.0) == mat22(2, 2, 2, 2)
    with pytest.raises(ValueError, match="2 rows of 3"):
        wide((1, 2), (3, 4), (5, 6))
    with pytest.raises(ValueError, match="shape"):
        wide(np.ones((3, 2)))
    with pytest.raises(ValueError, match="shape"):
        mat22(mat33d())


def test_quaternion_and_transform_constructors():
    assert list(quat()) == [0, 0, 0, 0]
    assert quat(vec3(1, 2, 3), 4) == quat(1, 2, 3, 4)
    assert quat(1, 2, 3, 4).w == 4
    expected = transform(1, 2, 3, 0, 0, 0, 1)
    assert transform((1, 2, 3), quat(0, 0, 0, 1)) == expected
    assert transform([1, 2, 3, 0, 0, 0, 1]) == expected
    assert transform(p=vec3(1, 2, 3)) == expected
    assert transform(vec3(1, 2, 3), q=quat(0, 0, 0, 1)) == expected
    assert list(transform()) == [0] * 7
    assert expected.p == vec3(1, 2, 3)
    assert expected.q == quat(0, 0, 0, 1)
    expected.p = (4, 5, 6)
    expected.q = quat(1, 0, 0, 0)
    assert list(expected) == [4, 5, 6, 1, 0, 0, 0]
    with pytest.raises(ValueError, match="needs 4 components"):
        quat(1.0)
    with pytest.raises(ValueError, match="p of 3 and q of 4"):
        transform((1, 2, 3, 4), (1, 2, 3))


def test_vector_indexing():
    v = vector(4, float32)(1, 2, 3, 4)
    assert (v.x, v.y, v.z, v.w, v[-1], len(v)) == (1, 2, 3, 4, 4, 4)
    assert v[1:3] == vec2(2, 3)
    v[0] = 0.1
    v.w = 9
    v[1:3] = (7, 8)
    assert v == vector(4, float32)(0.1, 7, 8, 9)
    with pytest.raises(IndexError):
        v[4]
    assert not hasattr(vec2(), "z")


def test_matrix_indexing():
    m = matrix((2, 3), float64)(1, 2, 3, 4, 5, 6)
    assert (m[1, 2], m[-1, 0], len(m)) == (6, 4, 2)
    assert m[0] == vec3d(1, 2, 3)
    assert m[:, 1] == vector(2, float64)(2, 5)
    assert m[:, :2] == mat22d(1, 2, 4, 5)
    assert [list(row) for row in m] == [[1, 2, 3], [4, 5, 6]]
    m[0] = (7, 8, 9)
    m[1, 1] = -1
    m[:, 0] = 0
    assert np.asarray(m).tolist() == [[0, 8, 9], [0, -1, 6]]
    with pytest.raises(IndexError):
        m[2, 0]


@given(st.lists(numbers, min_size=3, max_size=3), st.lists(numbers, min_size=3, max_size=3), numbers)
def test_vector_arithmetic_is_that_of_numpy(a, b, factor):
    for tensor, dtype in ((vec3, np.float32), (vec3d, np.float64)):
        left, right, scale = np.array(a, dtype), np.array(b, dtype), dtype(factor)
        u, v = tensor(a), tensor(b)
        np.testing.assert_array_equal(np.asarray(u + v), left + right)
        np.testing.assert_array_equal(np.asarray(u - v), left - right)
        np.testing.assert_array_equal(np.asarray(-u), -left)
        np.testing.assert_array_equal(np.asarray(u * factor), left * scale)
        np.testing.assert_array_equal(np.asarray(factor * u), left * scale)
        np.testing.assert_array_equal(np.asarray(u / 3.0), left / dtype(3))


@given(st.lists(numbers, min_size=12, max_size=12))
def test_matrix_products_are_those_of_numpy(values):
    a, b = np.array(values[:6]).reshape(2, 3), np.array(values[6:]).reshape(3, 2)
    left, right = matrix((2, 3), float64)(a), matrix((3, 2), float64)(b)
    np.testing.assert_allclose(np.asarray(left @ right), a @ b, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(np.asarray(left * right), a @ b, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(np.asarray(left * vec3d(b[:, 0])), a @ b[:, 0], rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(np.asarray(vec3d(a[0]) @ right), a[0] @ b, rtol=1e-13, atol=1e-12)
    np.testing.assert_array_equal(np.asarray(left * 2.0 + left / 4.0), a * 2.0 + a / 4.0)


def test_integer_vectors():
    assert vec3i(7, -7, 1) / 2 == vec3i(3, -3, 0)
    assert vec3i(2**31 - 1, 0, 0) + vec3i(1, 0, 0) == vec3i(-(2**31), 0, 0)


def test_operands_that_do_not_go_together():
    with pytest.raises(TypeError, match="vec3f and vec3d"):
        vec3() + vec3d()
    with pytest.raises(TypeError, match="cw_mul"):
        vec3() * vec3()
    with pytest.raises(TypeError, match="cast it"):
        vec3() * float64(1.0)
    with pytest.raises(TypeError, match="cannot be multiplied"):
        mat22() @ vec3()
    with pytest.raises(TypeError):
        vec3() + 1.0
    with pytest.raises(TypeError, match="scalar types differ"):
        quat() * quatd()


unit_quaternions = (
    st.lists(st.floats(min_value=-1, max_value=1), min_size=4, max_size=4)
    .filter(lambda q: np.linalg.norm(q) > 0.1)
    .map(lambda q: np.array(q) / np.linalg.norm(q))
)


@given(unit_quaternions, unit_quaternions, st.lists(numbers, min_size=3, max_size=3))
def test_quaternion_and_transform_products_are_those_of_matrices(first, second, shift):
    product = quatd(first) * quatd(second)
    rotation = rotation_matrix(first)
    np.testing.assert_allclose(rotation_matrix(list(product)), rotation @ rotation_matrix(second), atol=1e-12)
    moved = transformd((1.0, 2.0, 3.0), first) * transformd(shift, second)
    np.testing.assert_allclose(np.asarray(moved.p), [1.0, 2.0, 3.0] + rotation @ shift, atol=1e-12)
    np.testing.assert_allclose(np.asarray(moved.q), np.asarray(product), atol=1e-12)


def test_quaternion_units():
    i, j, k = quat(1, 0, 0, 0), quat(0, 1, 0, 0), quat(0, 0, 1, 0)
    assert i * j == k
    assert j * i == -k
    assert i * i == quat(0, 0, 0, -1)
    assert 2.0 * i + j == quat(2, 1, 0, 0)


def test_numpy_exchange():
    assert np.array([vec3(1, 2, 3), vec3(4, 5, 6)]).shape == (2, 3)
    assert np.asarray(mat22(1, 2, 3, 4), dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.array([1.0, 2.0]) * vec2(3, 4), [3.0, 8.0])
    np.testing.assert_array_equal(vec2(3, 4) - np.array([1.0, 2.0]), [2.0, 2.0])
    assert np.float64(2.0) * vec2(1, 2) == vec2(2, 4)
    assert np.float32(2.0) * vec2(1, 2) == vec2(2, 4)


def test_equality_hash_and_text():
    assert vec3(1, 2, 3) == (1, 2, 3)
    assert vec3(1, 2, 3) != vec3d(1, 2, 3)
    assert mat22(1, 2, 3, 4) == [[1, 2], [3, 4]]
    assert hash(vec3(1, 2, 3)) == hash(vec3(1, 2, 3))
    assert repr(vec3(0.1, 2, 3)) == "vec3f(0.1, 2.0, 3.0)"
    assert str(vec3i(1, 2, 3)) == "[1, 2, 3]"
    assert str(mat22(1, 2, 3, 4)) == "[[1.0, 2.0], [3.0, 4.0]]"
    assert repr(transform()) == "transformf(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)"


@pytest.mark.parametrize("value", [vec3(1, 2, 3), mat33d(range(9)), quat(1, 2, 3, 4), transformd(range(7))])
def test_copies_and_bytes(value):
    assert copy.deepcopy(value) == value
    assert copy.copy(value).values is not value.values
    assert pickle.loads(pickle.dumps(value)) == value
    assert value.to_bytes() == np.asarray(value).tobytes()
    assert type(value).from_bytes(value.to_bytes()) == value
    with pytest.raises(ValueError, match="bytes"):
        type(value).from_bytes(b"123")


def test_implicit_conversion_is_checked():
    assert vec3.coerce((1, 2, 3)) == vec3(1, 2, 3)
    assert mat22.coerce([[1, 2], [3, 4]]) == mat22(1, 2, 3, 4)
    assert transform.coerce(((1, 2, 3), (0, 0, 0, 1))) == transform(1, 2, 3, 0, 0, 0, 1)
    value = vec3(1, 2, 3)
    assert vec3.coerce(value) is not value
    with pytest.raises(TypeError, match="expected vec3f, got vec3d"):
        vec3.coerce(vec3d())
    with pytest.raises(TypeError, match="expected vec3f, got float"):
        vec3.coerce(1.0)
    with pytest.raises(ValueError, match="shape"):
        vec3.coerce((1, 2))
    with pytest.raises(TypeError, match="expected int32, got float"):
        vec3i.coerce((1.5, 2, 3))
    with pytest.raises(ValueError, match="shape"):
        matrix((2, 3)).coerce(np.ones((3, 2)))
