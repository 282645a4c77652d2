"""The prelude's float16 against NumPy: every half, every rounding boundary, random doubles and integers."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from warp._src import build
from warp._src.build.libm import libm_header
from warp._src.emit.prelude import prelude

pytestmark = pytest.mark.cpu

FAMILIES = {compiler.family: compiler for compiler in build.available_compilers()}
EXPORTS = """
using namespace wp;
#define EACH(name, From, To, expression)                                       \\
    WP_EXPORT void name(const From* a, const From* b, To* out, long long n) {  \\
        for (long long i = 0; i < n; ++i) out[i] = expression;                 \\
    }
EACH(widen_float, half, float, cast<float>(a[i]))
EACH(widen_double, half, double, cast<double>(a[i]))
EACH(to_int64, half, int64, cast<int64>(a[i]))
EACH(to_uint8, half, uint8, cast<uint8>(a[i]))
EACH(to_bool, half, bool, cast<bool>(a[i]))
EACH(from_float, float, half, cast<half>(a[i]))
EACH(from_double, double, half, cast<half>(a[i]))
EACH(from_int64, int64, half, cast<half>(a[i]))
EACH(from_uint64, uint64, half, cast<half>(a[i]))
EACH(from_int8, int8, half, cast<half>(a[i]))
EACH(add, half, half, a[i] + b[i])
EACH(sub, half, half, a[i] - b[i])
EACH(mul, half, half, a[i] * b[i])
EACH(div, half, half, a[i] / b[i])
EACH(neg, half, half, -a[i])
EACH(less, half, bool, a[i] < b[i])
EACH(equal, half, bool, a[i] == b[i])
"""
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.fixture(params=sorted(FAMILIES), scope="module")
def library(request: pytest.FixtureRequest) -> ctypes.CDLL:
    text = prelude("", frozenset({"half"}), libm_header()) + EXPORTS
    return ctypes.CDLL(str(build.build_object(text, compiler=FAMILIES[request.param])))


def run(library: ctypes.CDLL, name: str, result: str, a: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    out = np.zeros(len(a), result)
    b = a if b is None else b
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, out)]
    getattr(library, name)(*pointers, ctypes.c_longlong(len(a)))
    return out


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits, signs of zero included; one nan is as good as another."""
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def test_every_half_widens_exactly(library: ctypes.CDLL) -> None:
    assert_same(run(library, "widen_float", "f4", ALL), ALL.astype("f4"))
    assert_same(run(library, "widen_double", "f8", ALL), ALL.astype("f8"))


def test_every_half_survives_the_round_trip(library: ctypes.CDLL) -> None:
    assert_same(run(library, "from_float", "f2", ALL.astype("f4")), ALL)
    assert_same(run(library, "from_double", "f2", ALL.astype("f8")), ALL)


def test_boundaries_round_to_even(library: ctypes.CDLL) -> None:
    finite = np.sort(ALL[np.isfinite(ALL)].astype("f8"))
    middles = np.concatenate([(finite[1:] + finite[:-1]) / 2, [65520.0, -65520.0, 65536.0, 1e30, -1e30, np.inf]])
    beside = np.concatenate([np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])
    with np.errstate(over="ignore"):
        for doubles in (middles, beside):
            assert_same(run(library, "from_double", "f2", doubles), doubles.astype("f2"))
        singles = middles.astype("f4")
        near = np.concatenate([singles, np.nextafter(singles, np.float32(np.inf)), np.nextafter(singles, -singles)])
        assert_same(run(library, "from_float", "f2", near), near.astype("f2"))


def test_random_doubles_round_once(library: ctypes.CDLL) -> None:
    generator = np.random.default_rng(7)
    bits = generator.integers(0, 1 << 64, 200_000, dtype=np.uint64)
    # Exponents around the range of halves, where rounding by way of float32 would go wrong.
    exponents = generator.integers(1023 - 30, 1023 + 20, len(bits), dtype=np.uint64)
    doubles = ((bits & np.uint64(0x800FFFFFFFFFFFFF)) | (exponents << np.uint64(52))).view("f8")
    with np.errstate(over="ignore", invalid="ignore"):
        halves = doubles.astype("f2").astype("f8")
        ties = halves * (1 + 2.0**-11) + np.copysign(2.0**-40, halves)
        for values in (doubles, bits.view("f8"), ties):
            assert_same(run(library, "from_double", "f2", values), values.astype("f2"))
            singles = values.astype("f4")
            assert_same(run(library, "from_float", "f2", singles), singles.astype("f2"))


def test_integers(library: ctypes.CDLL) -> None:
    near = np.arange(-70000, 70000, dtype=np.int64)
    far = np.array([2**63 - 1, -(2**63), 65519, 65520, -65520, 2**24 + 1, 2**32], np.int64)
    with np.errstate(over="ignore"):
        for integers in (near, far):
            expected = integers.astype("f8").astype("f2")
            assert_same(run(library, "from_int64", "f2", integers), expected)
        unsigned = np.array([0, 2049, 2051, 65519, 65520, 2**64 - 1], np.uint64)
        assert_same(run(library, "from_uint64", "f2", unsigned), unsigned.astype("f8").astype("f2"))
    small = np.arange(-128, 128).astype(np.int8)
    assert_same(run(library, "from_int8", "f2", small), small.astype("f2"))
    truncated = np.trunc(np.nan_to_num(ALL.astype("f8"), nan=0.0, posinf=2.0**63, neginf=-(2.0**63)))
    clipped = [min(max(int(value), -(2**63)), 2**63 - 1) for value in truncated]
    assert_same(run(library, "to_int64", "i8", ALL), np.array(clipped, np.int64))
    assert_same(run(library, "to_uint8", "u1", ALL), np.clip(truncated, 0, 255).astype("u1"))
    assert_same(run(library, "to_bool", "?", ALL), ALL != 0)


@pytest.mark.parametrize(
    ("name", "ufunc"), [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)]
)
def test_arithmetic_rounds_once(library: ctypes.CDLL, name: str, ufunc: np.ufunc) -> None:
    generator = np.random.default_rng(11)
    a, b = ALL[generator.permutation(1 << 16)], ALL[generator.permutation(1 << 16)]
    with np.errstate(all="ignore"):
        # float64 holds sums and products of halves exactly; quotients are far enough from ties.
        expected = ufunc(a.astype("f8"), b.astype("f8")).astype("f2")
    assert_same(run(library, name, "f2", a, b), expected)


def test_negation_and_comparisons(library: ctypes.CDLL) -> None:
    b = ALL[np.random.default_rng(5).permutation(1 << 16)]
    assert_same(run(library, "neg", "f2", ALL), -ALL)
    with np.errstate(invalid="ignore"):
        assert_same(run(library, "less", "?", ALL, b), ALL < b)
        assert_same(run(library, "equal", "?", ALL, ALL), ALL == ALL)
