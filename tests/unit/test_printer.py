"""Printed IR is stable: these texts are golden."""

from __future__ import annotations

from tests.unit.ir_programs import HERE, build, call, kernel, region, reverse_loop

from warp._src.ir.builder import Builder
from warp._src.ir.core import Value
from warp._src.ir.ops import Native, Space
from warp._src.ir.printer import print_function
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float32, float64, int32
from warp._src.types.structs import struct
from warp._src.types.tensors import vector

VEC = vector(3, float32)


@struct
class Particle:
    position: VEC
    mass: float32


def test_memory_and_values() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        (i,) = b.thread_index(1)
        mass = b.load(p[0], [i], ("mass",))
        x = b.load(p[0], [i], ("position", None), [i], Space.GRADIENT)
        total = call(b, "add", mass, x)
        v = b.construct(VEC, [total, total, x])
        b.store(p[0], b.insert(v, b.extract(v, (1,)), (0,)), [i], ("position",))
        b.atomic("max", p[1], b.cast(float64, total), [i, i])
        b.atomic("cas", p[1], b.const(float64, 0.5), [i, i], expected=b.zero(float64))
        b.append(Native(loc=HERE, operands=(i,), names=("i",), snippet="f(i);", name="snip"))

    function = kernel([ArrayType(Particle, 1), ArrayType(float64, 2)], body)
    assert print_function(function) == (
        "kernel k(%0: array(dtype=Particle, ndim=1), %1: array(dtype=float64, ndim=2)) {\n"
        "  %2: int32 = thread_index\n"
        "  %3: float32 = load %0[%2].mass\n"
        "  %4: float32 = load grad %0[%2].position[%2]\n"
        "  %5: float32 = add(%3, %4)\n"
        "  %6: vec3f = construct %5, %5, %4\n"
        "  %7: float32 = extract %6[1]\n"
        "  %8: vec3f = insert %6[0] <- %7\n"
        "  store %0[%2].position <- %8\n"
        "  %9: float64 = cast %5\n"
        "  %10: float64 = atomic max %1[%2, %2] <- %9\n"
        "  %11: float64 = const 0.5\n"
        "  %12: float64 = const 0.0\n"
        "  %13: float64 = atomic cas %1[%2, %2] <- %11 if %12\n"
        "  native snip(i=%2)\n"
        "  yield\n"
        "}\n"
    )


def test_control() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> tuple[Value, ...]:
        condition = region(b, [float64], lambda b, a: [call(b, "lt", a[0], p[1])])
        step = region(b, [int32, float64], lambda b, a: [call(b, "mul", a[1], a[1])])
        state, count = b.loop(p[0], [p[1]], condition, step)
        (chosen,) = b.if_(p[2], region(b, [], lambda b, a: [state]), region(b, [], lambda b, a: [p[1]]))
        advance = region(b, [int32, float64], lambda b, a: [a[1]])
        reverse = region(b, [int32, float64, float64], lambda b, a: [a[2]])
        return reverse_loop(b, count, [chosen], [state], advance, reverse, site=0, is_saved=True)

    function = build([int32, float64, bool_], body, name="g")
    text = (
        "func g(%0: int32, %1: float64, %2: bool) -> float64 {\n"
        "  %3: float64, %4: int32 = loop %0 (%1) while |%5: float64| {\n"
        "    %6: bool = lt(%5, %1)\n"
        "    yield %6\n"
        "  } do |%7: int32, %8: float64| {\n"
        "    %9: float64 = mul(%8, %8)\n"
        "    yield %9\n"
        "  }\n"
        "  %10: float64 = if %2 {\n"
        "    yield %3\n"
        "  } else {\n"
        "    yield %1\n"
        "  }\n"
        "  %11: float64 = reverse_loop %4 (%10) adjoints (%3) site 0, saved advance |%12: int32, %13: float64| {\n"
        "    yield %13\n"
        "  } reverse |%14: int32, %15: float64, %16: float64| {\n"
        "    yield %16\n"
        "  }\n"
        "  yield %11\n"
        "}\n"
    )
    assert print_function(function) == text


def test_locations_are_optional_and_invalid_code_prints() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        b.cast(float64, p[0])
        return [Value(float64, "ghost")]

    function = build([float32], body)
    assert "  %1: float64 = cast %0  @ example.py:7\n" in print_function(function, locations=True)
    assert "  yield %?ghost\n" in print_function(function)
