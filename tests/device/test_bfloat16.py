"""The prelude's bfloat16, the host's and NumPy's conversions, against rounding by a table of all its numbers."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from tests.device.test_half import run

import warp as wp
from warp._src import build
from warp._src.build.libm import libm_header
from warp._src.emit.prelude import prelude

FAMILIES = {compiler.family: compiler for compiler in build.available_compilers()}
EXPORTS = """
using namespace wp;
#define EACH(name, From, To, expression)                                       \\
    WP_EXPORT void name(const From* a, const From* b, To* out, long long n) {  \\
        for (long long i = 0; i < n; ++i) out[i] = expression;                 \\
    }
EACH(widen, bfloat16, double, cast<double>(a[i]))
EACH(from_float, float, bfloat16, cast<bfloat16>(a[i]))
EACH(from_double, double, bfloat16, cast<bfloat16>(a[i]))
EACH(from_int64, int64, bfloat16, cast<bfloat16>(a[i]))
EACH(from_uint64, uint64, bfloat16, cast<bfloat16>(a[i]))
EACH(add, bfloat16, bfloat16, a[i] + b[i])
EACH(sub, bfloat16, bfloat16, a[i] - b[i])
EACH(mul, bfloat16, bfloat16, a[i] * b[i])
EACH(div, bfloat16, bfloat16, a[i] / b[i])
EACH(neg, bfloat16, bfloat16, -a[i])
EACH(less, bfloat16, bool, a[i] < b[i])
"""
BITS = np.arange(1 << 16, dtype=np.uint16)
with np.errstate(invalid="ignore"):  # signalling nans
    ALL = (BITS.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
# Bit patterns of the numbers from 0 up are in order; the one after the largest stands for infinity.
MAGNITUDES = np.append(ALL[:0x7F80], 2.0**128)


def nearest(numbers: list[int | float]) -> np.ndarray:
    """Round exact numbers to bits, ties to the even pattern."""
    found = []
    for number in numbers:
        if number != number:
            found.append(0x7FC0)
            continue
        sign = 0x8000 if np.signbit(number) else 0
        size = abs(number)
        if size >= 2**128:
            found.append(sign | 0x7F80)
            continue
        below = int(np.searchsorted(MAGNITUDES, float(size), "right")) - 1
        while below and _exact(below) > size:
            below -= 1
        low, high = size - _exact(below), _exact(below + 1) - size
        found.append(sign | (below + (high < low or (high == low and below % 2))))
    return np.array(found, np.uint16)


def _exact(place: int) -> int | float:
    number = float(MAGNITUDES[place])
    return int(number) if number.is_integer() else number


@pytest.fixture(params=sorted(FAMILIES), scope="module")
def library(request: pytest.FixtureRequest) -> ctypes.CDLL:
    text = prelude("", frozenset({"bfloat16"}), libm_header()) + EXPORTS
    return ctypes.CDLL(str(build.build_object(text, compiler=FAMILIES[request.param])))


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits; one nan is as good as another."""
    is_nan = np.isnan(ALL[expected])
    np.testing.assert_array_equal(np.isnan(ALL[found]), is_nan)
    np.testing.assert_array_equal(found[~is_nan], expected[~is_nan])


def doubles() -> np.ndarray:
    generator = np.random.default_rng(7)
    middles = (MAGNITUDES[1:] + MAGNITUDES[:-1]) / 2
    some = middles[generator.integers(0, len(middles), 2000)]
    beside = np.concatenate([some, np.nextafter(some, np.inf), np.nextafter(some, 0.0)])
    random = generator.integers(0, 1 << 64, 2000, dtype=np.uint64).view("f8")
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 2.0**-134, 2.0**-134 * 1.001, 3.3961775e38])
    with np.errstate(over="ignore"):
        return np.concatenate([beside, -beside, random, special])


INTEGERS = [0, 257, 258, 259, -257, 2**53 + 1, 2**60 + 2**52, 2**60 + 2**52 + 1, 2**60 + 3 * 2**52 - 1, 2**63 - 1]


def test_every_number_widens(library: ctypes.CDLL) -> None:
    np.testing.assert_array_equal(run(library, "widen", "f8", BITS), ALL)


def test_floats_round_to_even_once(library: ctypes.CDLL) -> None:
    values = doubles()
    expected = nearest(values.tolist())
    same(run(library, "from_double", "u2", values), expected)
    same(wp.bfloat16.encode_array(values), expected)
    same(np.array([wp.bfloat16.encode(wp.bfloat16(v).value) for v in values], np.uint16), expected)
    with np.errstate(over="ignore", invalid="ignore"):
        singles = values.astype("f4")
    same(run(library, "from_float", "u2", singles), nearest(singles.tolist()))


def test_integers_round_to_even_once(library: ctypes.CDLL) -> None:
    signed = [*INTEGERS, *(-value for value in INTEGERS), -(2**63)]
    same(run(library, "from_int64", "u2", np.array(signed, np.int64)), nearest(signed))
    unsigned = [*(abs(value) for value in INTEGERS), 2**64 - 1, 2**63 + 2**55, 2**63 + 2**55 + 1]
    same(run(library, "from_uint64", "u2", np.array(unsigned, np.uint64)), nearest(unsigned))
    same(np.array([wp.bfloat16.encode(wp.bfloat16(v).value) for v in signed], np.uint16), nearest(signed))
    same(wp.bfloat16.encode_array(np.array(signed, np.int64)), nearest(signed))
    same(wp.bfloat16.encode_array(np.array(unsigned, np.uint64)), nearest(unsigned))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_rounds_once(library: ctypes.CDLL, name: str) -> None:
    generator = np.random.default_rng(11)
    a, b = generator.permutation(BITS)[:3000], generator.permutation(BITS)[:3000]
    ufunc = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    with np.errstate(all="ignore"):
        # Sums of numbers far apart are not exact in float64, but a long double rounds them on the right side.
        wide = ufunc(ALL[a].astype(np.longdouble), ALL[b].astype(np.longdouble))
        expected = nearest(wide.astype(np.float64).tolist())
    same(run(library, name, "u2", a, b), expected)


def test_negation_and_comparison(library: ctypes.CDLL) -> None:
    other = np.random.default_rng(5).permutation(BITS)
    same(run(library, "neg", "u2", BITS), BITS ^ np.uint16(0x8000))
    np.testing.assert_array_equal(run(library, "less", "?", BITS, other), ALL < ALL[other])
