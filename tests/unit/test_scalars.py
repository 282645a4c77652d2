"""Host values of scalar types: rounding, wrap-around, arithmetic and conversions."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warp._src.types import (
    SCALARS,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    is_float,
    is_int,
    is_scalar,
    scalar_from,
    uint8,
    uint16,
    uint32,
    uint64,
)

INTEGERS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda scalar: scalar.name)
def test_layout_is_that_of_numpy(scalar):
    assert scalar.dtype == np.dtype("uint16" if scalar is bfloat16 else scalar.name)
    assert scalar.size == scalar.alignment == scalar.dtype.itemsize == struct.calcsize(f"={scalar.format}")
    assert scalar.kind == scalar.numeric.kind
    assert scalar(1).value == 1
    assert scalar().value == 0
    assert np.asarray(scalar(1)).dtype == scalar.numeric


@given(st.integers(min_value=-(2**70), max_value=2**70))
def test_integers_wrap_around(value):
    for scalar in INTEGERS:
        wrapped = scalar(value).value
        bits = 8 * scalar.size
        assert (wrapped - value) % (1 << bits) == 0
        assert np.iinfo(scalar.dtype).min <= wrapped <= np.iinfo(scalar.dtype).max


@given(st.floats(allow_nan=False))
def test_floats_round_to_nearest(value):
    with np.errstate(all="ignore"):
        assert float32(value).value == float(np.array(value).astype(np.float32))
        assert float16(value).value == float(np.array(value).astype(np.float16))
    assert float64(value).value == value


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_wide_integers_round_once_to_float32(value):
    assert float32(value).value == float(np.array(value, dtype=np.int64).astype(np.float32))


def test_wide_integer_that_two_roundings_would_miss():
    value = 2**60 + 2**36 + 1
    assert float32(float(value)).value == 2.0**60
    assert float32(value).value == 2.0**60 + 2.0**37


@pytest.mark.parametrize(
    ("scalar", "value", "expected"),
    [
        (int32, 2.9, 2),
        (int32, -2.9, -2),
        (int32, 1e20, 2**31 - 1),
        (int32, -math.inf, -(2**31)),
        (uint8, -1.5, 0),
        (uint8, math.nan, 0),
        (int64, 1e30, 2**63 - 1),
    ],
)
def test_casts_of_floats_to_integers_are_defined(scalar, value, expected):
    assert scalar(value).value == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (int8(100) + 100, int8(-56)),
        (uint8(3) - uint8(5), uint8(254)),
        (int32(7) / int32(-2), int32(-3)),
        (int32(-7) // int32(2), int32(-4)),
        (int32(-7) // 0, int32(0)),
        (int32(-7) % int32(3), int32(-1)),
        (int32(5) / 0, int32(0)),
        (int32(5) % 0, int32(0)),
        (int32(-(2**31)) / -1, int32(-(2**31))),
        (int32(2) ** 31, int32(-(2**31))),
        (2 - int16(5), int16(-3)),
        (-uint8(1), uint8(255)),
        (~uint8(1), uint8(254)),
        (abs(int8(-128)), int8(-128)),
        (uint8(6) & 3, uint8(2)),
        (uint8(6) | 1, uint8(7)),
        (uint8(6) ^ uint8(3), uint8(5)),
        (int8(1) << 7, int8(-128)),
        (int8(-128) >> 3, int8(-16)),
        (bool_(True) & False, bool_(False)),
        (float32(7.5) // 2.0, float32(3.0)),
        (float32(-7.5) % 2.0, float32(-1.5)),
        (float64(2.0) ** 0.5, float64(math.sqrt(2.0))),
        (1.0 / float64(0.0), float64(math.inf)),
        (-1.0 / float64(0.0), float64(-math.inf)),
        (float16(60000.0) * 2.0, float16(math.inf)),
    ],
)
def test_arithmetic(result, expected):
    assert type(result) is type(expected)
    assert result == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.floats(width=32, min_value=0.125, max_value=1e6))
def test_float32_arithmetic_is_that_of_numpy(a, b):
    left, right = np.float32(a), np.float32(b)
    with np.errstate(all="ignore"):
        assert (float32(a) + float32(b)).value == float(left + right)
        assert (float32(a) - float32(b)).value == float(left - right)
        assert (float32(a) * float32(b)).value == float(left * right)
        assert (float32(a) / float32(b)).value == float(left / right)


def test_zero_over_zero_is_nan():
    assert math.isnan(float(float32(0.0) / 0.0))
    assert math.isnan(float(float64(1.0) % 0.0))


def test_two_scalar_types_do_not_mix():
    with pytest.raises(TypeError, match="float32 and float64"):
        float32(1.0) + float64(1.0)
    with pytest.raises(TypeError, match="int32 and uint32"):
        int32(1) < uint32(1)  # noqa: B015 - the comparison is the test
    with pytest.raises(TypeError, match="not defined for bool"):
        bool_(True) + True
    with pytest.raises(TypeError, match="not defined for float32"):
        float32(1.0) & 1


def test_python_conversions_and_text():
    assert float(float32(0.5)) == 0.5
    assert int(float32(2.7)) == 2
    assert [10, 20, 30][int32(1)] == 20
    assert not int32(0)
    assert int32(2) < 3 <= int32(3)
    assert hash(int32(3)) == hash(3)
    assert repr(float32(0.1)) == "float32(0.1)"
    assert str(int8(-3)) == "-3"
    assert repr(bool_(1)) == "bool(True)"
    with pytest.raises(TypeError, match="index"):
        [1, 2][float32(1.0)]


def test_values_of_other_libraries_are_numbers():
    class Framework:
        def __float__(self):
            return 1.5

    assert float32(Framework()) == 1.5
    assert float32(np.float64(2.5)) == 2.5
    assert int32(np.array(3)) == 3
    assert np.float64(2.0) * float32(3.0) == float32(6.0)
    for wrong in ("1", None, 1j, np.ones(2), float):
        with pytest.raises(TypeError, match="float32"):
            float32(wrong)


def test_implicit_conversion_is_checked():
    assert int32.pack(5) == struct.pack("=i", 5)
    assert float32.pack(1) == struct.pack("=f", 1.0)
    assert float16.pack(0.1) == np.float16(0.1).tobytes()
    assert bool_.pack(np.bool_(True)) == b"\x01"
    with pytest.raises(ValueError, match="300 is out of range for uint8"):
        uint8.pack(300)
    with pytest.raises(TypeError, match=r"expected int32, got float 1\.5"):
        int32.pack(1.5)
    with pytest.raises(TypeError, match="expected bool, got float"):
        bool_.pack(1.0)


def test_kinds():
    assert [scalar for scalar in SCALARS if is_float(scalar)] == [float16, bfloat16, float32, float64]
    assert [scalar for scalar in SCALARS if is_int(scalar)] == list(INTEGERS)
    assert is_scalar(bool_)
    assert not is_scalar(float)
    assert not is_scalar(float32(1.0))


def test_python_and_numpy_types_stand_for_scalars():
    assert scalar_from(float) is float32
    assert scalar_from(int) is int32
    assert scalar_from(bool) is bool_
    assert scalar_from(np.float64) is float64
    assert scalar_from(np.dtype(">u2")) is uint16
    assert scalar_from(str) is None
    assert scalar_from(np.complex64) is None
