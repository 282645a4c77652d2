"""Simplification: fewer operations, the same results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.ir_programs import build, call, region

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.interp import run_function
from warp._src.ir.ops import Cast, Construct, Extract, If, Insert
from warp._src.ir.traverse import clone_function
from warp._src.ir.verify import verify
from warp._src.passes.simplify import simplify
from warp._src.types.scalars import bool_, float64, int32, uint8
from warp._src.types.structs import struct
from warp._src.types.tensors import matrix, transformation, vector

VEC = vector(3, float64)
MAT = matrix((2, 2), float64)
TRANSFORM = transformation(float64)


@struct
class Particle:
    position: VEC
    mass: float64


@struct
class Body:
    pose: TRANSFORM
    mass: float64


def simplified(types: Sequence[Any], body: Any) -> tuple[Function, Function]:
    before = build(types, body)
    after = clone_function(before)
    simplify(after.body)
    verify(after)
    return before, after


def kinds(function: Function) -> set[type]:
    return {type(op) for op in function.walk()}


def test_components_of_what_was_just_built() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        v = b.construct(VEC, p)
        m = b.construct(MAT, [p[0], p[1], p[2], p[0]])
        return [b.extract(v, (1,)), b.extract(m, (1, 0))]

    _, after = simplified([float64] * 3, body)
    assert Extract not in kinds(after)
    assert Construct not in kinds(after)
    assert run_function(after, [1.0, 2.0, 3.0]) == (2.0, 3.0)


def test_a_row_of_a_matrix_stays() -> None:
    before, after = simplified([float64], lambda b, p: [b.extract(b.construct(MAT, [p[0]] * 4), (1,))])
    assert Extract in kinds(after)
    assert run_function(after, [2.0])[0].tolist() == run_function(before, [2.0])[0].tolist() == [2, 2]


def test_the_last_insert_counts_and_others_are_looked_through() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        v = b.insert(p[0], p[1], (0,))
        v = b.insert(v, p[2], (0,))
        v = b.insert(v, p[1], (2,))
        return [b.extract(v, (0,)), b.extract(v, (1,)), b.extract(v, (2,))]

    _, after = simplified([VEC, float64, float64], body)
    assert Insert not in kinds(after)
    assert run_function(after, [[1, 2, 3], 8.0, 9.0]) == (9.0, 2.0, 8.0)


def test_a_dynamic_insert_may_be_any_component() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        return [b.extract(b.insert(p[0], p[1], (None,), [p[2]]), (0,))]

    _, after = simplified([VEC, float64, int32], body)
    assert run_function(after, [[1, 2, 3], 9.0, 0]) == (9.0,)
    assert run_function(after, [[1, 2, 3], 9.0, 1]) == (1.0,)


def test_fields_and_their_components() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        s = b.insert(p[0], p[1], ("position", 1))
        s = b.insert(s, p[1], ("mass",))
        s = b.insert(s, b.construct(VEC, [p[1]] * 3), ("position",))
        s = b.insert(s, p[2], ("position", 0))
        return [b.extract(s, ("position", 0)), b.extract(s, ("position", 1)), b.extract(s, ("position",))]

    before, after = simplified([Particle, float64, float64], body)
    args = [{"position": [1, 2, 3], "mass": 4.0}, 8.0, 9.0]
    for function in (before, after):
        x, y, position = run_function(function, args)
        assert (x, y, position.tolist()) == (9, 8, [9, 8, 8])


@pytest.mark.parametrize("prefix", [(), ("pose",)])
def test_parts_of_a_transform_overlap_its_components(prefix: tuple[str, ...]) -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        t = b.insert(p[0], p[1], (*prefix, "p"))
        t = b.insert(t, p[2], (*prefix, 6))
        return [b.extract(t, (*prefix, 1)), b.extract(t, (*prefix, "q", 3)), b.extract(t, (*prefix, "q", 0))]

    _, after = simplified([Body if prefix else TRANSFORM, VEC, float64], body)
    pose = [0, 0, 0, 4, 5, 6, 7]
    args = {"pose": pose, "mass": 1.0} if prefix else pose
    assert run_function(after, [args, [1, 2, 3], 9.0]) == (2, 9, 4)


@pytest.mark.parametrize("taken", [True, False])
def test_decided_branches_are_spliced_also_in_loops(taken: bool) -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> Any:
        def step(b: Builder, a: tuple[Value, ...]) -> Any:
            then = region(b, [], lambda b, _: [call(b, "add", a[1], a[1])])
            return b.if_(b.const(bool_, taken), then, region(b, [], lambda b, _: [a[1]]))

        return b.loop(p[0], [p[1]], None, region(b, [int32, float64], step))[:1]

    _, after = simplified([int32, float64], body)
    assert If not in kinds(after)
    assert run_function(after, [3, 1.0]) == ((8.0,) if taken else (1.0,))


def test_casts_of_constants_wrap() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        return [b.cast(float64, b.cast(uint8, b.const(int32, 300))), b.cast(int32, b.const(float64, -2.7))]

    _, after = simplified([], body)
    assert Cast not in kinds(after)
    assert run_function(after, []) == (44.0, -2)
