"""Statements of kernels, translated and run on the interpreter; the right answers are those of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.ir.interp import run_kernel
from warp._src.ir.ops import Atomic, If, Loop
from warp._src.ir.verify import verify
from warp._src.lang.source import build_kernel

f = wp.float64
Doubles = wp.array(dtype=wp.float64)


def run(kernel: Any, *args: Any, dim: Any = 1) -> None:
    function = build_kernel(kernel, [t for _, t in kernel.parameters])
    verify(function)
    run_kernel(function, dim, list(args))


def results(kernel: Any, *args: Any, count: int = 8) -> list[float]:
    """Run a kernel whose first parameter is the output."""
    out = np.zeros(count)
    run(kernel, out, *args)
    return out.tolist()


@wp.kernel
def ranges(out: Doubles, n: int):
    digits = f(0.0)
    for i in range(n, 0, -2):
        digits = digits * f(10.0) + f(i)
    out[0] = digits
    total = 0
    for i in range(0, 7, n):
        total += i
    out[1] = f(total)
    total = 0
    for i in range(7, 0, -n):
        total += i
    out[2] = f(total)
    total = 0
    for i in range(n, 0):
        total += 1
    for i in range(0, n, n - n):
        total += 1
    out[3] = f(total)
    for last in range(n):
        square = last * last
    out[4] = f(last + square)
    wide = wp.int64(0)
    for j in range(wp.int64(n)):
        wide += j
    out[5] = f(wide)


def test_every_form_of_range() -> None:
    assert results(ranges, 3)[:6] == [31.0, 0 + 3 + 6, 7 + 4 + 1, 0.0, 2 + 4, 0 + 1 + 2]


def test_a_name_first_bound_in_a_loop_that_never_ran_is_zero() -> None:
    assert results(ranges, -1)[4] == 0.0


@wp.kernel
def unrolled(out: Doubles):
    total = f(0.0)
    for i in range(3):
        total += f(wp.static(i * 10))
    for weight, value in ((1.0, 2.0), (3.0, 4.0)):
        total += f(weight) * f(value)
    for part in wp.vec3d(1.0, 2.0, 3.0):
        if part == 1.0:
            continue
        if part > 2.5:
            break
        total += part
    out[0] = total


def test_loops_over_constants_tuples_and_vectors_are_unrolled() -> None:
    assert results(unrolled)[0] == 30 + 2 + 12 + 2
    function = build_kernel(unrolled, [Doubles])
    assert not any(isinstance(op, Loop) for op in function.walk())


@wp.kernel
def whiles(out: Doubles, n: int):
    count = 0
    is_done = False
    while not is_done:
        count += 1
        is_done = count >= n
    out[0] = f(count)
    steps = 0
    while True:
        steps += 1
        if steps % 2 == 0:
            continue
        if steps > n:
            break
    out[1] = f(steps)
    index = 0
    while index < n and out[index] > 0.0:
        index += 1
    out[2] = f(index)


def test_while_break_and_continue() -> None:
    assert results(whiles, 5)[:3] == [5.0, 7.0, 2.0]


@wp.kernel
def early(out: Doubles, n: int):
    i = wp.tid()
    if i >= n:
        return
    out[i] = 1.0
    if i > 0:
        if i == 1:
            return
        out[i] = 2.0
    for k in range(n):
        if k == i:
            return
        out[i] = out[i] + 10.0
    out[i] = -1.0


def test_return_anywhere() -> None:
    out = np.zeros(5)
    run(early, out, 4, dim=5)
    assert out.tolist() == [1.0, 1.0, 22.0, 32.0, 0.0]


def test_a_guard_at_the_start_needs_no_flag() -> None:
    function = build_kernel(early, [t for _, t in early.parameters])
    guard = next(op for op in function.body.ops if isinstance(op, If))
    assert guard.results == ()
    assert len(guard.regions[0].ops) == 1


@wp.kernel
def adopting(out: Doubles, x: Doubles, n: int):
    product = 1.0
    count = 0
    best = -1.0e30
    for i in range(n):
        for j in range(n):
            if x[i] * x[j] > best:
                best = x[i] * x[j]
                count = i
        product = product * x[i]
        if x[i] > 100.0:
            product = 0.0
    out[0] = product
    out[1] = best
    out[2] = f(count)


def test_numbers_without_a_type_take_that_of_the_loop() -> None:
    assert results(adopting, np.array([0.1, 3.0, 2.0]), 3)[:3] == [0.1 * 3.0 * 2.0, 9.0, 1.0]


@wp.kernel
def expressions(out: Doubles, x: Doubles):
    out[0] = f(1.0) if 0.0 < x[0] <= 0.5 < x[1] else f(2.0)
    out[1] = f(1.0) if not (x[0] > 1.0 or x[1] > 1.0) else f(2.0)
    out[2] = x[0] ** 2.0 - -x[1] / 2.0
    out[3] = f(7 // 2 + 7 % 4 + (1 << 3) + (6 & 3) + 7 / 2 + -7 / 2)
    out[4] = f(1.0 / 3.0)
    a, (b, c) = x[0], (x[1], 3.0 * x[2])
    a, b = b, a
    out[5] = a + 10.0 * b + 100.0 * c
    out[6] += 2.0
    out[6] -= 0.5
    out[6] *= 4.0
    width: f = 2.0
    out[7] = width


def test_expressions_and_assignments() -> None:
    got = results(expressions, np.array([0.5, 2.0, 3.0]))
    assert got == [1.0, 2.0, 0.25 + 1.0, 3 + 3 + 8 + 2 + 3 - 3, 1.0 / 3.0, 2 + 5 + 900, 6.0, 2.0]


def test_additions_to_array_elements_are_atomic_and_products_are_not() -> None:
    function = build_kernel(expressions, [Doubles, Doubles])
    assert [op.kind for op in function.walk() if isinstance(op, Atomic)] == ["add", "sub"]


@wp.struct
class Inner:
    v: wp.vec3d
    a: wp.float64


@wp.struct
class Outer:
    inner: Inner
    n: int
    values: wp.array(dtype=wp.float64)


@wp.kernel
def components(out: Doubles, s: Outer, rows: wp.array2d(dtype=wp.vec2d), parts: wp.array(dtype=Inner), n: int):
    s.inner.v[1] = 5.0
    s.inner.v.x += 2.0
    copy = s
    copy.inner.a = 100.0
    out[0] = s.inner.v.x + s.inner.v.y + s.inner.a
    s.values[0] = s.values[1] * f(s.n)
    m = wp.mat22d(1.0, 2.0, 3.0, 4.0)
    m[n, 1] *= 5.0
    m[0] = wp.vec2d(7.0, 8.0)
    out[1] = m[0, 1] + m[1, 1] + m[n][0]
    t = wp.transformd(p=wp.vec3d(1.0, 2.0, 3.0))
    t.p = t.p * 2.0
    t.q.w = 3.0
    out[2] = t.p.z + t.q.w + t[1]
    rows[1][0].y += 1.0
    rows[1, 0][0] *= 3.0
    row = rows[1]
    out[3] = row[0].x + row[0][1] + f(row.shape[0]) + f(len(rows)) + f(rows.shape[-1])
    parts[0].v[n] = 4.0
    parts[0].a = parts[0].v[1] + 1.0
    local = wp.zeros(shape=(3,), dtype=f)
    for i in range(3):
        local[i] = f(i)
    out[4] = local[2] + local[1]
    v = wp.vec4d(1.0, 2.0, 3.0, 4.0)
    out[5] = wp.dot(v[1:3], m[:, 0])
    made = Inner(wp.vec3d(1.0), a=2.0)
    out[6] = made.v[2] + made.a


def test_components_fields_rows_and_local_arrays() -> None:
    outer = {"inner": {"v": [1.0, 2.0, 3.0], "a": 0.5}, "n": 4, "values": (values := np.array([0.0, 2.0]))}
    rows = np.arange(8.0).reshape(2, 2, 2)
    parts = np.array([{"v": np.zeros(3), "a": np.float64(0)}], dtype=object)
    out = np.zeros(8)
    run(components, out, outer, rows, parts, 1)
    assert out[:7].tolist() == [3 + 5 + 0.5, 8 + 20 + 3, 6 + 3 + 4, 12 + 6 + 2 + 2 + 2, 3.0, 2 * 7 + 3 * 3, 3.0]
    assert values.tolist() == [8.0, 2.0]
    assert rows[1, 0].tolist() == [12.0, 6.0]
    assert parts[0]["v"].tolist() == [0.0, 4.0, 0.0]
    assert parts[0]["a"] == 5.0


@wp.kernel
def constructors(out: Doubles, x: Doubles):
    a = wp.vector(x[0], x[1])
    b = wp.matrix(1.0, 2.0, 3.0, 4.0, shape=(2, 2), dtype=f)
    rows = wp.matrix_from_rows(a, wp.vec2d(5.0, 6.0))
    columns = wp.matrix_from_cols(a, wp.vec2d(5.0, 6.0))
    out[0] = a[0] + a[1] + b[1, 0]
    out[1] = rows[0, 1] + 10.0 * columns[0, 1]
    out[2] = wp.identity(n=3, dtype=f)[2, 2] + wp.quat_identity(dtype=f).w
    kind = wp.types.vector(length=5, dtype=f)
    out[3] = kind(2.0)[4] + f(len(kind()))
    out[4] = wp.vec3d(wp.vec3(1.0, 2.0, 3.0))[1] + f(int(x[1] + 0.5))
    out[5] = f(bool(x[0])) + f(wp.int8(300))
    out[6] = wp.quatd(wp.vec3d(1.0, 2.0, 3.0), x[0]).w


def test_constructors_and_casts() -> None:
    got = results(constructors, np.array([0.5, 2.0]))
    assert got[:7] == [5.5, 2.0 + 50.0, 2.0, 7.0, 4.0, 1.0 + 44.0, 0.5]


@wp.kernel
def indices(out: wp.array4d(dtype=wp.int32)):
    i, j, k, l = wp.tid()
    wp.atomic_max(out, i, j, k, l, i + 10 * j + 100 * k + 1000 * l)


def test_thread_indices_of_four_dimensions() -> None:
    out = np.zeros((1, 2, 3, 2), np.int32)
    run(indices, out, dim=(1, 2, 3, 2))
    assert out[0, 1, 2, 1] == 1210


@wp.kernel
def printing(x: Doubles, n: wp.int64):
    wp.printf("%d %5.2f 100%%\n", n, x[0])
    print("x is", x[0], wp.vec2(1.0, 2.0), 3)
    assert x[0] > 0.0


def test_print_and_assert() -> None:
    trace: list[Any] = []
    run_kernel(build_kernel(printing, [Doubles, wp.int64]), 1, [np.array([0.5]), 7], trace=trace)
    assert [attributes for _, attributes, _ in trace[:2]] == [("%lld %5.2f 100%%\n",), ("x is %g [%g, %g] 3\n",)]
    assert trace[2][0] == "assert_"


@pytest.mark.parametrize("limit", [0, 16])
def test_unrolling_changes_no_result(limit: int) -> None:
    @wp.kernel(module="unique", module_options={"max_unroll": limit})
    def kernel(out: Doubles):
        for i in range(3):
            for j in range(i):
                out[i] = out[i] + f(j + 1)
        for i in range(4, 8):
            out[i] = f(i)
        out[3] = f(i)

    assert results(kernel) == [0.0, 1.0, 3.0, 7.0, 4.0, 5.0, 6.0, 7.0]
    assert any(isinstance(op, Loop) for op in build_kernel(kernel, [Doubles]).walk()) is (limit == 0)


@wp.kernel
def decided(out: Doubles, maybe: Doubles):
    if maybe:
        out[0] = maybe[0]
    if maybe.dtype == float or maybe.ndim == 2:
        out[1] = undefined  # noqa: F821 - decided while compiling, so it does not exist
    elif maybe.dtype is wp.float64:
        out[1] = 1.0
    mask = wp.uint32(0xFFFFFFFF) & wp.uint32(255)
    out[2] = f(mask)


def test_conditions_known_while_compiling_and_null_arrays() -> None:
    assert results(decided, np.array([7.0]))[:3] == [7.0, 1.0, 255.0]
    assert results(decided, None)[:3] == [0.0, 1.0, 255.0]


@wp.kernel
def deep(out: Doubles, n: int):
    i = 0
    while i < n:
        total = 0.0
        for j in range(n):
            for k in range(j, n):
                if k == 2:
                    break
                total += f(k)
            if total > 2.5:
                continue
            total += 0.25
        out[i] = total
        i += 1


def test_nested_loops_with_untyped_numbers() -> None:
    def expected(n: int) -> float:
        total = 0.0
        for j in range(n):
            for k in range(j, n):
                if k == 2:
                    break
                total += k
            if total > 2.5:
                continue
            total += 0.25
        return total

    assert results(deep, 5)[:5] == [expected(5)] * 5


@wp.kernel
def counting_down(out: Doubles, x: Doubles):
    v = wp.vec3d(1.0, 2.0, 3.0)
    j = 3
    found = -1
    largest = 0
    while j > 0:
        j -= 1
        largest = max(largest, 2)
        if found >= 0:
            out[0] = x[found] + v[j]
        if largest == 2:
            found = j

    out[1] = f(found + largest)


def test_numbers_that_change_in_a_loop_are_not_taken_for_constants() -> None:
    assert results(counting_down, np.array([10.0, 20.0, 30.0]))[:2] == [20.0 + 1.0, 0 + 2.0]
