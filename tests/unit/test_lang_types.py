"""Values in kernels: slices, rows, enumerations, captured constants, local arrays, addresses, without a compiler."""

from __future__ import annotations

import enum
import linecache
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.ir.interp import run_kernel
from warp._src.ir.verify import verify
from warp._src.lang.source import build_kernel
from warp.errors import KernelTypeError, UnsupportedSyntaxError

Doubles = wp.array(dtype=wp.float64)
Doubles2 = wp.array2d(dtype=wp.float64)


def run(kernel: Any, *args: Any) -> None:
    function = build_kernel(kernel, [t for _, t in kernel.parameters])
    verify(function)
    run_kernel(function, 1, list(args))


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 4


class Kind(enum.Enum):
    FIRST = "first"
    SECOND = "second"


AXIS = wp.vec3d(1.0, 2.0, 3.0)
WEIGHTS = [0.25, 0.5]


@wp.struct
class Settings:
    steps: int = 3
    size: wp.float64 = 0.5
    axis: wp.vec2d = wp.vec2d(1.0, 2.0)


@wp.kernel
def constants(y: Doubles, colour: int):
    if colour == Colour.BLUE and Kind.FIRST != Kind.SECOND:
        y[0] = wp.float64(Colour.RED)
    y[1] = wp.float64(Colour.BLUE.value)
    y[2] = AXIS[1] + WEIGHTS[1]
    settings = Settings()
    y[3] = wp.float64(settings.steps) + settings.size + settings.axis[1]
    y[4] = Settings(size=wp.float64(2.0)).size


def test_enumerations_captured_vectors_and_defaults() -> None:
    y = np.zeros(5)
    run(constants, y, 4)
    assert y.tolist() == [1, 4, 2.5, 5.5, 2]


@wp.kernel
def vector_slices(y: Doubles):
    v = wp.vec4d(1.0, 2.0, 3.0, 4.0)
    y[0] = v[1:3][0] + v[-1] + v[::2][1] + v[::-1][0]
    m = wp.types.matrix((3, 3), wp.float64)(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
    y[1] = m[1][2] + m[0:2, 1][1] + m[-1, -1] + m[-1][-2]
    y[2] = wp.determinant(m[:2, :2])
    v[1:3] = wp.vec2d(9.0, 8.0)
    v[0:2] = v[2:4]
    v[3:] += wp.types.vector(1, wp.float64)(1.0)
    y[3] = v[0] * 100.0 + v[1] * 10.0 + v[3]
    m[:, 1] = wp.vec3d(7.0, 8.0, 9.0)
    m[0:2, 0:2] = wp.mat22d(1.0, 2.0, 3.0, 4.0)
    m[2] = 0.5 * AXIS
    y[4] = m[1, 0] + m[2, 2]
    v[:2] = 5.0
    y[5] = v[1]


def test_slices_of_vectors_and_matrices() -> None:
    y = np.zeros(6)
    run(vector_slices, y)
    assert y.tolist() == [2 + 4 + 3 + 4, 6 + 5 + 9 + 8, -3, 8 * 100 + 4 * 10 + 5, 3 + 1.5, 5]


@wp.kernel
def rows(y: Doubles):
    a = wp.vec2d(1.0, 2.0)
    b = wp.vec2d(3.0, 4.0)
    y[0] = wp.mat22d.from_rows(a, b)[0, 1] + 10.0 * wp.mat22d.from_cols(a, b)[0, 1]
    buffer = wp.zeros(shape=(3,), dtype=wp.vec2d)
    buffer[1] = b
    y[1] = buffer[1][0] + buffer[2][1]


def test_matrices_from_rows_and_local_arrays_of_vectors() -> None:
    y = np.zeros(2)
    run(rows, y)
    assert y.tolist() == [2 + 30, 3]


def test_rows_of_another_type() -> None:
    @wp.kernel
    def kernel(y: Doubles):
        y[0] = wp.mat22d.from_rows(AXIS, AXIS)[0, 0]

    with pytest.raises(KernelTypeError, match=r"what mat22d\.from_rows\(\) makes must be mat22d"):
        run(kernel, np.zeros(1))


SLICES = ("1: :3 -2: :-1 1:4:2 ::2 ::-1 4:1:-1 -1:-4:-2 3:1 7: :9 n: -n: :n n:0:-1").split()


@pytest.mark.parametrize("text", SLICES)
def test_slices_of_arrays_are_those_of_numpy(text: str) -> None:
    source = (
        "def kernel(x: Doubles, y: Doubles, size: wp.array(dtype=int), n: int):\n"
        f"    s = x[{text}]\n"
        "    size[0] = s.shape[0]\n"
        "    for i in range(s.shape[0]):\n"
        "        y[i] = s[i]\n"
    )
    x = np.arange(1.0, 6.0)
    for n in (0, 1, 2, 7):
        y, size = np.zeros(9), np.zeros(1, np.int32)
        run(_kernel(source), x, y, size, n)
        expected = eval(f"x[{text}]", {"x": x, "n": n})
        assert y[: size[0]].tolist() == expected.tolist()


def _kernel(source: str) -> Any:
    name = f"<slice {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"wp": wp, "Doubles": Doubles, "Doubles2": Doubles2, "__name__": __name__}
    exec(compile(source, name, "exec"), names)
    return wp.kernel(names["kernel"])


@wp.func
def total(values: Doubles):
    result = wp.float64(0.0)
    for i in range(values.shape[0]):
        result += values[i]
    return result


@wp.kernel
def planes(x: Doubles2, y: Doubles):
    y[0] = total(x[0, 1:])
    y[1] = total(x[:, 1])
    inner = x[1:, 1:3]
    y[2] = inner[0, 1] + wp.float64(inner.shape[0] * 10 + inner.shape[1])
    column = x[:, 2]
    column[0] = 50.0


def test_slices_of_planes_and_writing_through_them() -> None:
    x, y = np.arange(8.0).reshape(2, 4), np.zeros(3)
    run(planes, x, y)
    assert y.tolist() == [1 + 2 + 3, 1 + 5, 6 + 12]
    assert x[0, 2] == 50


@wp.kernel
def attributes(x: Doubles2, sizes: wp.array(dtype=int), address: wp.array(dtype=wp.uint64)):
    sizes[0] = x.strides[0]
    sizes[1] = x.size
    sizes[2] = x.ndim
    address[0] = x.ptr


def test_attributes_of_arrays() -> None:
    x, sizes, address = np.zeros((2, 3)), np.zeros(3, np.int32), np.zeros(1, np.uint64)
    run(attributes, x, sizes, address)
    assert sizes.tolist() == [24, 6, 2]
    assert address[0] == x.__array_interface__["data"][0]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("y = x[::0]", UnsupportedSyntaxError, "the step of a slice"),
        ("y = x[1:, 0, 0]", KernelTypeError, "3 indices into an array of 2 dimensions"),
        ("y = x[0.5:]", KernelTypeError, "must be an integer"),
        ("x[0:1] = x[1:2]", UnsupportedSyntaxError, "a slice of an array cannot be assigned"),
    ],
)
def test_slices_that_mean_nothing(body: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        run(_kernel(f"def kernel(x: Doubles2):\n    {body}\n"), np.zeros((2, 2)))


def test_a_lambda_is_a_function() -> None:
    double = wp.func(lambda v: v + v)

    @wp.kernel
    def kernel(y: Doubles):
        y[0] = double(y[0])

    y = np.array([2.0])
    run(kernel, y)
    assert y[0] == 4


def test_bfloat16_rounds_to_nearest_even() -> None:
    assert [float(wp.bfloat16(v)) for v in (1.0, 1.01, 3.14159, 257.0, 258.0, 1e39, -0.0)] == [
        1.0,
        1.0078125,
        3.140625,
        256.0,
        258.0,
        float("inf"),
        -0.0,
    ]
    assert float(wp.bfloat16(2.0**-133)) == 2.0**-133
    assert float(wp.bfloat16(2.0**-135)) == 0.0
    vector = wp.types.vector(3, wp.bfloat16)(1.0, 2.5, -3.0)
    assert vector.from_bytes(vector.to_bytes()) == vector
    assert np.asarray(vector).tolist() == [1.0, 2.5, -3.0]
    assert wp.array([1.0, 2.5], dtype=wp.bfloat16).numpy().tolist() == [0x3F80, 0x4020]
