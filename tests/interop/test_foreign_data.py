"""Whatever has numbers is data for arrays, values for parameters, and settles generic kernels."""

from __future__ import annotations

import array as python_array
import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError

VALUES = np.array([1.5, 2.5, 3.5], np.float32)


def _mapped() -> Any:
    memory = mmap.mmap(-1, VALUES.nbytes)
    memory[:] = VALUES.tobytes()
    return memoryview(memory).cast("f")


class OnlyArray:
    """Gives an array, of which nobody knows whether it is a copy."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return VALUES.copy()


class OnlyDLPack:
    """Shares memory through DLPack alone."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


SHARED = {
    "ctypes": lambda: (ctypes.c_float * 3)(*VALUES.tolist()),
    "array": lambda: python_array.array("f", VALUES.tolist()),
    "bytearray": lambda: memoryview(bytearray(VALUES.tobytes())).cast("f"),
    "mapped": _mapped,
    "dlpack": lambda: OnlyDLPack(VALUES.copy()),
    "numpy": VALUES.copy,
}


@pytest.mark.parametrize("kind", SHARED)
def test_arrays_are_made_of_everything_that_has_memory(kind: str) -> None:
    source = SHARED[kind]()
    copied = wp.array(source)
    assert copied.dtype is wp.float32
    np.testing.assert_array_equal(copied.numpy(), VALUES)
    shared = wp.array(source, copy=False)
    shared.fill_(7.0)
    np.testing.assert_array_equal(copied.numpy(), VALUES)
    np.testing.assert_array_equal(wp.array(source).numpy(), [7.0, 7.0, 7.0])
    target = wp.zeros(3, dtype=wp.float64)
    target.assign(source)
    np.testing.assert_array_equal(target.numpy(), [7.0, 7.0, 7.0])


def test_nested_arrays_of_ctypes_are_vectors() -> None:
    rows = ((ctypes.c_float * 3) * 2)((1, 2, 3), (4, 5, 6))
    np.testing.assert_array_equal(wp.array(rows, dtype=wp.vec3).numpy(), [[1, 2, 3], [4, 5, 6]])


def test_what_may_be_a_copy_is_not_taken_for_shared() -> None:
    np.testing.assert_array_equal(wp.array(OnlyArray()).numpy(), VALUES)
    with pytest.raises(ArgumentError, match="OnlyArray does not say that it shares its memory"):
        wp.array(OnlyArray(), copy=False)


def test_what_has_no_memory_is_copied_whatever_was_asked_for() -> None:
    np.testing.assert_array_equal(wp.array([1, 2, 3], dtype=float, copy=False).numpy(), [1, 2, 3])


# ---------------------------------------------------------------------------------------------------- bfloat16


@pytest.mark.parametrize("dtype", [wp.float16, wp.float32, wp.float64, wp.int32, wp.uint16, wp.uint64, wp.bool])
def test_bfloat16_is_converted_by_value(dtype: Any) -> None:
    numbers = [0.0, 1.0, 3.0, 128.0]
    there = wp.array(wp.array(numbers, dtype=dtype), dtype=wp.bfloat16)
    expected = [float(bool(number)) for number in numbers] if dtype is wp.bool else numbers
    assert there.list() == expected
    back = wp.array(wp.array(numbers, dtype=wp.bfloat16), dtype=dtype)
    np.testing.assert_array_equal(back.numpy(), np.array(numbers).astype(back.numpy().dtype))


def test_vectors_of_bfloat16_are_converted_by_value() -> None:
    vectors = wp.array([[1.5, 2.0, -3.0]], dtype=wp.types.vector(3, wp.bfloat16))
    np.testing.assert_array_equal(wp.array(vectors, dtype=wp.vec3).numpy(), [[1.5, 2.0, -3.0]])


def test_bfloat16_is_not_shared_as_another_type() -> None:
    with pytest.raises(ArgumentError, match="cannot be shared"):
        wp.array(wp.zeros(2, dtype=wp.bfloat16), dtype=float, copy=False)


# ---------------------------------------------------------------------------------------------------- generic kernels


@wp.kernel
def add_rows(x: wp.array(dtype=wp.types.vector(length=3, dtype=Any)), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i][0] + x[i][1] + x[i][2]


@wp.kernel
def add_any_rows(x: wp.array(dtype=wp.types.vector(length=Any, dtype=wp.Scalar)), y: wp.array(dtype=wp.Scalar)):
    i = wp.tid()
    y[i] = wp.dot(x[i], x[i])


@wp.kernel
def determinants(x: wp.array(dtype=wp.types.matrix(shape=(2, 2), dtype=Any)), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = wp.determinant(x[i])


@wp.kernel
def scaled_lengths(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = y.dtype(wp.length(x[i]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trailing_dimensions_fill_generic_vectors_and_matrices(dtype: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(4, 3)).astype(dtype)
    sums = np.zeros(4, dtype)
    wp.launch(add_rows, 4, [rows, sums])
    np.testing.assert_allclose(sums, rows.sum(1), rtol=1e-5)
    wp.launch(add_any_rows, 4, [rows, sums])
    np.testing.assert_allclose(sums, (rows * rows).sum(1), rtol=1e-5)
    wide = np.random.default_rng(0).normal(size=(4, 5)).astype(dtype)
    wp.launch(add_any_rows, 4, [wide, sums])
    np.testing.assert_allclose(sums, (wide * wide).sum(1), rtol=1e-5)
    squares = np.random.default_rng(0).normal(size=(4, 2, 2)).astype(dtype)
    wp.launch(determinants, 4, [squares, sums])
    np.testing.assert_allclose(sums, np.linalg.det(squares), rtol=1e-4)


def test_trailing_dimensions_fill_the_vectors_of_kernels_that_are_generic_elsewhere() -> None:
    rows = np.array([[3.0, 4.0, 0.0], [0.0, 6.0, 8.0]], np.float32)
    lengths = np.zeros(2, np.float64)
    wp.launch(scaled_lengths, 2, [rows, lengths])
    np.testing.assert_allclose(lengths, [5.0, 10.0])


def test_rows_of_another_length_are_named() -> None:
    with pytest.raises(ArgumentError, match="parameter 'x'"):
        wp.launch(add_rows, 4, [np.zeros((4, 2), np.float32), np.zeros(4, np.float32)])


@wp.kernel
def add_to_all(x: wp.array(dtype=Any), number: Any):
    i = wp.tid()
    x[i] = x[i] + x.dtype(number)


@wp.kernel
def store(number: Any, x: wp.array(dtype=wp.float64)):
    x[0] = wp.float64(number)


def test_the_only_overload_that_fits_settles_the_type_of_a_python_number() -> None:
    wp.overload(add_to_all, {"x": wp.array(dtype=wp.float64), "number": wp.float64})
    x = wp.zeros(2, dtype=wp.float64)
    wp.launch(add_to_all, 2, [x, 0.1])
    np.testing.assert_array_equal(x.numpy(), [0.1, 0.1])
    y = wp.zeros(2, dtype=wp.float32)
    wp.launch(add_to_all, 2, [y, 0.1])
    np.testing.assert_array_equal(y.numpy(), np.full(2, 0.1, np.float32))


def test_without_one_a_python_number_is_of_single_precision() -> None:
    x = wp.zeros(1, dtype=wp.float64)
    wp.launch(store, 1, [0.1, x])
    assert x.numpy()[0] == np.float32(0.1)
    wp.overload(store, {"number": wp.float64})
    wp.launch(store, 1, [0.1, x])
    assert x.numpy()[0] == 0.1
    wp.launch(store, 1, [2**40, x])
    assert x.numpy()[0] == 2**40
    wp.overload(store, {"number": wp.float32})
    wp.launch(store, 1, [0.1, x])
    assert x.numpy()[0] == np.float32(0.1)


# ---------------------------------------------------------------------------------------------------- values


class Number:
    """A scalar of a framework whose `__index__` cuts off what is behind the point."""

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value

    def __index__(self) -> int:
        return int(self.value)


@wp.kernel
def keep(number: float, count: int, vector: wp.vec3, y: wp.array(dtype=float)):
    y[0] = number
    y[1] = float(count)
    y[2] = vector[0] + 10.0 * vector[1] + 100.0 * vector[2]


class Vector:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1.0, 2.0, 3.0])


def test_numbers_of_frameworks_are_taken_whole() -> None:
    y = np.zeros(3, np.float32)
    wp.launch(keep, 1, [Number(2.5), Number(3), Vector(), y])
    np.testing.assert_array_equal(y, [2.5, 3.0, 321.0])
    with pytest.raises(ArgumentError, match=r"'count'.*cast it explicitly"):
        wp.launch(keep, 1, [2.5, Number(3.5), Vector(), y])


def test_names_of_outputs_that_do_not_exist_are_refused() -> None:
    from warp.operators import Computation

    with pytest.raises(ArgumentError, match="no output 'z'; there are y"):
        Computation(keep, output_dims={"z": 3})
