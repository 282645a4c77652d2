"""Emitted straight-line kernels, compiled and run: results against NumPy and closed forms."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.device.emitted import Compiled, IndexedArray, describe, each_compiler, make, saxpy
from tests.unit.ir_programs import call

from warp._src.build import Compiler
from warp._src.ir.builder import Builder
from warp._src.ir.core import Value
from warp._src.ir.ops import Space
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.scalars import float16, float32, float64, int32, int64, uint8
from warp._src.types.structs import struct
from warp._src.types.tensors import matrix, quaternion, transformation, vector

vec3 = vector(3, float32)


pytestmark = pytest.mark.cpu


@each_compiler
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("restrict", [(), ("p1", "p2")])
def test_saxpy(compiler: Compiler, step: int, restrict: tuple[str, ...]) -> None:
    array = ArrayType(float32, 1)
    kernel = Compiled(make([float32, array, array], saxpy), compiler, restrict=frozenset(restrict))
    x = np.arange(300, dtype=np.float32)[::step]
    y = np.linspace(0, 1, len(x), dtype=np.float32)
    expected = np.float32(2.5) * x + y
    kernel((len(x),), np.float32(2.5), describe(x), describe(y), chunks=3)
    np.testing.assert_array_equal(y, expected)


@each_compiler
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(11,), (3, 5), (2, 3, 4), (2, 3, 2, 3), (1, 4, 1, 2)])
def test_every_item_runs_once_at_its_coordinates(compiler: Compiler, shape: tuple[int, ...], descending: bool) -> None:
    rank = len(shape)

    def body(builder: Builder, out: Value, order: Value, counter: Value) -> None:
        ids = builder.thread_index(rank)
        zero, one = builder.const(int32, 0), builder.const(int32, 1)
        at = builder.atomic("add", counter, one, (zero,))
        builder.store(order, at, ids)
        code = zero
        for index in ids:
            code = call(builder, "add", call(builder, "mul", code, builder.const(int32, 10)), index)
        builder.store(out, code, ids)

    arrays = [ArrayType(int32, rank), ArrayType(int32, rank), ArrayType(int32, 1)]
    kernel = Compiled(make(arrays, body), compiler, descending=descending)
    out, order, counter = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32), np.zeros(1, np.int32)
    size = int(np.prod(shape))
    kernel(shape, describe(out), describe(order), describe(counter), chunks=1 if descending else 4)
    expected = [int("".join(map(str, index))) if rank > 1 else index[0] for index in np.ndindex(shape)]
    np.testing.assert_array_equal(out.ravel(), expected)
    ascending = np.arange(size)
    np.testing.assert_array_equal(order.ravel(), ascending[::-1] if descending else ascending)


@each_compiler
@pytest.mark.parametrize("descending", [False, True])
def test_launch_with_more_dimensions_than_the_kernel_asks_for(compiler: Compiler, descending: bool) -> None:
    def body(builder: Builder, counts: Value) -> None:
        i, j = builder.thread_index(2)
        builder.atomic("add", counts, builder.const(int32, 1), (i, j))

    kernel = Compiled(make([ArrayType(int32, 2)], body), compiler, descending=descending)
    counts = np.zeros((2, 3), np.int32)
    kernel((2, 3, 5), describe(counts), chunks=4)
    np.testing.assert_array_equal(counts, np.full((2, 3), 5))
    kernel((2, 0), describe(counts))
    np.testing.assert_array_equal(counts, np.full((2, 3), 5))


@struct
class Inner:
    q: quaternion(float32)
    m: matrix((2, 3), float64)


@struct
class Outer:
    flag: uint8
    inner: Inner
    new: vec3
    values: ArrayType(float32, 1)


@each_compiler
def test_structs_components_and_array_fields(compiler: Compiler) -> None:
    def body(builder: Builder, scale: Value, s: Value, items: Value, out: Value) -> None:
        (i,) = builder.thread_index(1)
        element = builder.load(items, (i,))
        row = builder.load(items, (i,), ("inner", "m", None), (i,))
        entry = builder.extract(element, ("inner", "m", 1, 2))
        builder.store(items, call(builder, "mul", entry, scale), (i,), ("inner", "m", 0, None), (i,))
        w = builder.extract(builder.extract(element, ("inner",)), ("q", 3))
        new = builder.insert(builder.extract(s, ("new",)), w, (1,))
        builder.store(items, new, (i,), ("new",))
        values = builder.extract(s, ("values",))
        builder.store(items, builder.cast(uint8, builder.load(values, (i,))), (i,), ("flag",))
        builder.store(out, builder.extract(row, (0,)), (i,))

    kernel = Compiled(make([float64, Outer, ArrayType(Outer, 1), ArrayType(float64, 1)], body), compiler)
    values = np.array([3.7, 300.0], np.float32)
    dtype = np.dtype(
        {
            "names": ["flag", "q", "m", "new", "values"],
            "formats": ["u1", ("f4", 4), ("f8", (2, 3)), ("f4", 3), ("V", 120)],
            "offsets": [0, 8, 24, 72, 88],
            "itemsize": 208,
        }
    )
    assert (Outer.size, Outer.offsets["inner"], Outer.offsets["values"]) == (208, 8, 88)
    items = np.zeros(2, dtype)
    items["q"] = [[1, 2, 3, 4], [5, 6, 7, 8]]
    items["m"] = np.arange(12).reshape(2, 2, 3)
    given = np.zeros(1, dtype)
    given["new"] = [10, 20, 30]
    given["values"] = bytes(describe(values))
    out = np.zeros(2)
    record = np.frombuffer(given.tobytes(), np.int64)
    kernel((2,), np.float64(2), record, describe(items), describe(out))
    np.testing.assert_array_equal(out, [0, 9])
    np.testing.assert_array_equal(items["m"][:, 0], [[10, 1, 2], [6, 22, 8]])
    np.testing.assert_array_equal(items["new"], [[10, 4, 30], [10, 8, 30]])
    np.testing.assert_array_equal(items["flag"], [3, 255])


@each_compiler
def test_transform_parts(compiler: Compiler) -> None:
    rigid = transformation(float32)

    def body(builder: Builder, t: Value, p: Value, q: Value) -> None:
        zero = builder.const(int32, 0)
        value = builder.load(t, (zero,))
        builder.store(p, builder.extract(value, ("p",)), (zero,))
        builder.store(q, builder.extract(value, ("q",)), (zero,))
        builder.store(t, builder.const(float32, 50), (zero,), ("q", 1))
        builder.store(t, builder.const(float32, 60), (zero,), ("p", 2))

    types = [ArrayType(rigid, 1), ArrayType(vec3, 1), ArrayType(quaternion(float32), 1)]
    kernel = Compiled(make(types, body), compiler)
    t, p, q = np.arange(7, dtype=np.float32)[None], np.zeros((1, 3), np.float32), np.zeros((1, 4), np.float32)
    kernel((1,), *(describe(array, ndim=1) for array in (t, p, q)))
    np.testing.assert_array_equal(p, [[0, 1, 2]])
    np.testing.assert_array_equal(q, [[3, 4, 5, 6]])
    np.testing.assert_array_equal(t, [[0, 1, 60, 3, 50, 5, 6]])


ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "min": min,
    "max": max,
    "exch": lambda old, value: value,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
}


@each_compiler
def test_atomics(compiler: Compiler) -> None:
    def body(builder: Builder, target: Value, value: Value, old: Value) -> None:
        for index, kind in enumerate([*ATOMICS, "cas"]):
            at = builder.const(int32, index)
            expected = builder.const(int32, 12) if kind == "cas" else None
            given = builder.load(value, (builder.const(int32, 0),))
            builder.store(old, builder.atomic(kind, target, given, (at,), expected=expected), (at,))

    kernel = Compiled(make([ArrayType(int32, 1)] * 3, body), compiler)
    for value in (5, 20):
        target, old = np.full(9, 12, np.int32), np.zeros(9, np.int32)
        kernel((1,), describe(target), describe(np.array([value], np.int32)), describe(old))
        np.testing.assert_array_equal(old, np.full(9, 12))
        assert target.tolist() == [*(rule(12, value) for rule in ATOMICS.values()), value]


@each_compiler
def test_atomics_of_tensors_and_components(compiler: Compiler) -> None:
    def body(builder: Builder, target: Value, value: Value) -> None:
        (i,) = builder.thread_index(1)
        zero = builder.const(int32, 0)
        builder.atomic("add", target, builder.load(value, (i,)), (zero,))
        builder.atomic("max", target, builder.load(value, (i,)), (builder.const(int32, 1),))
        builder.atomic("sub", target, builder.const(float32, 1), (zero,), (2,))

    kernel = Compiled(make([ArrayType(vec3, 1)] * 2, body), compiler)
    value = np.array([[1, -2, 3], [-4, 5, 6]], np.float32)
    target = np.zeros((2, 3), np.float32)
    kernel((2,), describe(target, ndim=1), describe(value, ndim=1))
    np.testing.assert_array_equal(target, [[-3, 3, 7], [1, 5, 6]])


@each_compiler
def test_struct_gradients_add_field_by_field(compiler: Compiler) -> None:
    def body(builder: Builder, items: Value) -> None:
        zero = builder.const(int32, 0)
        builder.atomic("add", items, builder.load(items, (zero,)), (zero,), space=Space.GRADIENT)

    kernel = Compiled(make([ArrayType(Inner, 1)], body), compiler)
    dtype = np.dtype([("q", "f4", 4), ("m", "f8", (2, 3))])
    items, grad = np.ones(1, dtype), np.full(1, 2, dtype)
    kernel((1,), describe(items, grad))
    np.testing.assert_array_equal(grad["q"], np.full((1, 4), 3))
    np.testing.assert_array_equal(grad["m"], np.full((1, 2, 3), 3))


@each_compiler
@pytest.mark.parametrize("has_gradient", [True, False])
@pytest.mark.parametrize("debug", [True, False])
def test_gradient_space(compiler: Compiler, has_gradient: bool, debug: bool) -> None:
    def body(builder: Builder, x: Value, out: Value) -> None:
        (i,) = builder.thread_index(1)
        zero = builder.const(int32, 0)
        builder.atomic("add", x, builder.const(float32, 1), (zero, i), space=Space.GRADIENT)
        row = builder.view(x, (zero,))
        builder.atomic("add", row, builder.const(float32, 2), (i,), space=Space.GRADIENT)
        builder.store(out, builder.load(x, (zero, i), space=Space.GRADIENT), (i,))

    kernel = Compiled(make([ArrayType(float32, 2), ArrayType(float32, 1)], body), compiler, debug=debug)
    x, grad, out = np.ones((2, 4), np.float32), np.full((2, 8), 10, np.float32)[:, ::2], np.full(4, -1, np.float32)
    fault = kernel((4,), describe(x, grad if has_gradient else None), describe(out))
    assert fault.kind == 0
    np.testing.assert_array_equal(x, np.ones((2, 4)))
    np.testing.assert_array_equal(out, np.full(4, 13 if has_gradient else 0))
    np.testing.assert_array_equal(grad[0], np.full(4, 13 if has_gradient else 10))


@each_compiler
def test_indexed_arrays(compiler: Compiler) -> None:
    def body(builder: Builder, a: Value, out: Value) -> None:
        i, j = builder.thread_index(2)
        row = builder.view(a, (i,))
        builder.store(out, call(builder, "add", builder.load(a, (i, j)), builder.load(row, (j,))), (i, j))

    kernel = Compiled(make([IndexedArrayType(float32, 2), ArrayType(float32, 2)], body), compiler)
    data, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((2, 3), np.float32)
    rows, columns = np.array([2, 0], np.int32), np.array([3, 3, 1], np.int32)
    array = IndexedArray(describe(data), (rows.ctypes.data, columns.ctypes.data, None, None), (2, 3, 1, 1))
    kernel((2, 3), array, describe(out))
    np.testing.assert_array_equal(out, 2 * data[np.ix_(rows, columns)])


@each_compiler
def test_half_arithmetic_rounds_after_each_operation(compiler: Compiler) -> None:
    array = ArrayType(float16, 1)
    kernel = Compiled(make([float16, array, array], saxpy), compiler)
    x = np.random.default_rng(3).normal(size=500).astype(np.float16)
    y = x[::-1].copy()
    a = np.float16(0.7)
    expected = (x * a).astype(np.float16) + y
    kernel((500,), a, describe(x), describe(y))
    np.testing.assert_array_equal(y, expected)


@each_compiler
def test_constants_are_exact(compiler: Compiler) -> None:
    cases: list[tuple[Any, Any]] = [
        *itertools.product([float32], [0.1, -1e-45, 3.4e38, float("inf"), float("-inf"), -0.0]),
        *itertools.product([float64], [0.1, 5e-324, -1.7976931348623157e308, float("nan")]),
        *itertools.product([int64], [2**63 - 1, -(2**63)]),
        *itertools.product([int32], [2**31 - 1, -(2**31)]),
        (float16, 6e-8),
        (uint8, 255),
    ]
    outputs = [np.zeros(1, type.dtype) for type, _ in cases]

    def body(builder: Builder, *arrays: Value) -> None:
        zero = builder.const(int32, 0)
        for array, (type, value) in zip(arrays, cases, strict=True):
            builder.store(array, builder.const(type, value), (zero,))

    kernel = Compiled(make([ArrayType(type, 1) for type, _ in cases], body), compiler)
    kernel((1,), *map(describe, outputs))
    for (type, value), output in zip(cases, outputs, strict=True):
        assert output.tobytes() == np.array([value]).astype(type.dtype).tobytes() or np.isnan(output[0]) == (
            value != value
        )


@each_compiler
def test_debug_faults(compiler: Compiler) -> None:
    def body(builder: Builder, x: Value, out: Value) -> None:
        (i,) = builder.thread_index(1)
        value = builder.load(x, (i,))
        builder.store(out, call(builder, "div", builder.const(int32, 6), value), (i,))

    kernel = Compiled(make([ArrayType(int32, 1)] * 2, body), compiler, debug=True)
    x, out = np.array([1, 2, 3], np.int32), np.zeros(3, np.int32)
    assert kernel((3,), describe(x), describe(out)).kind == 0
    np.testing.assert_array_equal(out, [6, 3, 2])
    fault = kernel((4,), describe(x), describe(out))
    assert (fault.kind, fault.line, fault.item) == (3, 7, 3) or fault.kind == 2
    x[1] = 0
    fault = kernel((3,), describe(x), describe(out))
    assert (fault.kind, fault.line, fault.item) == (2, 7, 1)
    assert out[1] == 0


@each_compiler
def test_verify_fp_reports_what_is_not_finite(compiler: Compiler) -> None:
    array = ArrayType(float32, 1)
    kernel = Compiled(make([float32, array, array], saxpy), compiler, verify_fp=True)
    x, y = np.array([1, np.inf, 1], np.float32), np.zeros(3, np.float32)
    fault = kernel((3,), np.float32(2), describe(x), describe(y))
    assert (fault.kind, fault.line, fault.item) == (4, 7, 1)
