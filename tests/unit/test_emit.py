"""The text of emitted kernels: structure, names and constants; what it computes is tested by running it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.ir_programs import HERE, build, call, kernel, region, reverse_loop

from warp._src.emit.cpp import emit_kernel
from warp._src.emit.names import cpp_constant, cpp_type, field_name, struct_name
from warp._src.emit.options import EmitOptions
from warp._src.emit.paths import component
from warp._src.emit.prelude import NATIVE_DIRECTORY, prelude
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Call
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float16, float32, float64, int8, int32, int64, uint64
from warp._src.types.structs import struct
from warp._src.types.tensors import matrix, quaternion, transformation, vector
from warp.errors import CompileError

FLOATS = ArrayType(float32, 1)
OPTIONS = EmitOptions(libm="struct wp_libm_stub {};")
vec3 = vector(3, float32)


def text_of(function: Function, **options: Any) -> str:
    """Give what follows the prelude."""
    text = emit_kernel(function, EmitOptions(libm="", **options))
    return text[text.index("struct arguments {") :]


def double(builder: Builder, params: tuple[Value, ...]) -> None:
    (i,) = builder.thread_index(1)
    value = builder.load(params[0], (i,))
    builder.store(params[0], call(builder, "add", value, value), (i,))


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        (bool_, True, "true"),
        (int32, -5, "(-5)"),
        (int32, -(2**31), "(-2147483647 - 1)"),
        (int64, 7, "7ll"),
        (uint64, 2**64 - 1, "18446744073709551615ull"),
        (int8, -3, "((wp::int8)-3)"),
        (float32, 1.0, "1.0f"),
        (float64, -0.0, "(-0.0)"),
        (float64, float("inf"), "__builtin_inf()"),
        (float32, float("nan"), '__builtin_nanf("")'),
        (float16, 1.0, "wp::half::from_bits(0x3c00)"),
    ],
)
def test_constants(type: Any, value: float, text: str) -> None:
    assert cpp_constant(type, value) == text


def test_type_names() -> None:
    assert cpp_type(float16) == "wp::half"
    assert cpp_type(int8) == "wp::int8"
    assert cpp_type(vec3) == "wp::vec<3, float>"
    assert cpp_type(matrix((2, 3), float64)) == "wp::mat<2, 3, double>"
    assert cpp_type(quaternion(float32)) == "wp::quat<float>"
    assert cpp_type(FLOATS) == "wp_array"


def test_struct_names_follow_the_layout() -> None:
    def define(kind: Any) -> Any:
        @struct
        class Pair:
            a: kind
            b: int32

        return Pair

    assert struct_name(define(float32)) == struct_name(define(float32))
    assert struct_name(define(float32)) != struct_name(define(float64))
    assert struct_name(define(float32)).startswith("struct_Pair_")


def test_fields_that_cpp_does_not_allow() -> None:
    assert field_name("mass") == "mass"
    assert field_name("new") == "new_"
    assert field_name("größe").isascii()


def test_components() -> None:
    m = matrix((2, 3), float32)
    assert component("m", m, (1, 2), ()) == "m.c[5]"
    assert component("m", m, (None, 2), ["i"]) == "m.c[(wp::int64)i * 3 + 2]"
    assert component("m", m, (1,), ()) == "wp::part<wp::vec<3, float>>(m.c, 3)"
    assert component("t", transformation(float32), ("q", 1), ()) == "t.c[4]"
    assert component("t", transformation(float32), ("q",), ()) == "wp::part<wp::quat<float>>(t.c, 3)"


def test_small_kernels_are_specialised_for_packed_arrays() -> None:
    function = kernel([FLOATS], double)
    assert "wp::run<true>" in text_of(function)
    assert "wp::run<true>" not in text_of(function, debug=True)
    assert "wp::run<true>" not in text_of(function, specialise=False)


def test_the_text_depends_on_nothing_else() -> None:
    assert emit_kernel(kernel([FLOATS], double), OPTIONS) == emit_kernel(kernel([FLOATS], double), OPTIONS)


def test_debug_mode_names_the_line() -> None:
    text = text_of(kernel([FLOATS], double), debug=True)
    assert f"wp::raise_bounds(launch, {HERE.line}, item, " in text
    assert "wp_raise_fault" not in text_of(kernel([FLOATS], double))


def test_entries_and_exports() -> None:
    text = text_of(kernel([FLOATS], double), entry="wp_backward", descending=True)
    assert "WP_EXPORT void wp_backward(" in text
    assert "wp_forward" not in text
    assert "item >= stop; --item" in text
    assert text.endswith("WP_EXPORT const int wp_abi = WP_ABI_VERSION;\n")


def test_python_names_show_and_never_clash() -> None:
    array = Value(FLOATS, "class")
    builder = Builder(Region((array,)))
    zero = builder.const(int32, 0)
    builder.store(array, builder.load(array, (zero,)), (zero,))
    builder.yield_()
    text = text_of(Function("k", (array,), (), builder.region, HERE, is_kernel=True))
    assert "wp_array v1_class = p.p0;" in text


def test_only_needed_headers_are_pasted() -> None:
    text = emit_kernel(kernel([FLOATS], double), OPTIONS)
    for absent in ("struct half", "tensor_dot", "struct checkpoints", "struct accessor", "#include"):
        assert absent not in text
    assert text.index("struct wp_launch") < text.index("wp_libm_stub") < text.index("struct vec")


def test_every_header_can_be_pasted() -> None:
    for path in NATIVE_DIRECTORY.glob("*.h"):
        pasted = prelude(f"wp::{path.stem}", frozenset({"half", "tensor", "rotation", "snippet"}), "")
        assert "#include" not in pasted
        assert pasted.count("#if") == pasted.count("#endif")


def test_printf_and_assert() -> None:
    def body(builder: Builder, params: tuple[Value, ...]) -> None:
        for name, operands, attributes in (
            ("printf", params, ('a "%f" %d\n',)),
            ("assert_", (builder.const(bool_, False),), ("message",)),
        ):
            record = SimpleNamespace(name=name, has_effects=True)
            builder.append(Call(loc=HERE, operands=operands, builtin=record, attributes=attributes))

    text = text_of(kernel([float32, int32], body))
    assert r'wp_m.printf("a \042%f\042 %d\012", (double)v1_p0, v2_p1);' in text
    assert f"if (!(false)) wp_raise_fault(launch, WP_FAULT_ASSERT, {HERE.line}, item);" in text


def test_a_state_beyond_the_arena_is_an_error() -> None:
    huge = vector(70_000, float64)

    def body(builder: Builder, params: tuple[Value, ...]) -> None:
        start, one = builder.zero(huge), builder.const(float64, 1)
        advance = region(builder, [int32, huge], lambda _, args: args[1:])
        reverse = region(builder, [int32, huge, float64], lambda _, args: args[2:])
        reverse_loop(builder, params[0], (start,), (one,), advance, reverse)

    with pytest.raises(CompileError, match=r"example.py:7: this loop carries 560000 bytes"):
        text_of(kernel([int32], body))


def test_callees_come_before_their_callers() -> None:
    inner = build([float32], lambda builder, params: (call(builder, "add", params[0], params[0]),), name="inner")
    outer = build([float32], lambda builder, params: builder.invoke(inner, params), name="outer")

    def body(builder: Builder, params: tuple[Value, ...]) -> None:
        builder.invoke(outer, params)
        builder.invoke(inner, params)

    text = emit_kernel(kernel([float32], body), OPTIONS)
    assert text.count("WP_FN void function1_inner(") == 1
    assert text.index("WP_FN void function1_inner(") < text.index("WP_FN void function0_outer(")
