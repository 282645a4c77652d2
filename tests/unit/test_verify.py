"""The verifier: valid functions pass, each kind of broken IR is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.ir_programs import HERE, build, call, kernel, region, reverse_loop, with_body_op

from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import (
    Atomic,
    Call,
    Const,
    Construct,
    Extract,
    Load,
    Loop,
    Native,
    Store,
    ThreadIndex,
    View,
    Yield,
)
from warp._src.ir.traverse import clone_function
from warp._src.ir.verify import verify
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float32, float64, int32, int64
from warp._src.types.tensors import matrix, vector
from warp.errors import InternalCompilerError

VEC = vector(3, float32)
MAT = matrix((2, 3), float32)
ARRAY = ArrayType(float32, 1)


def scalar_function() -> Function:
    return build([float32, int32], lambda b, p: [call(b, "add", p[0], b.const(float32, 2.0))])


def memory_kernel() -> Function:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        (i,) = b.thread_index(1)
        value = b.load(p[0], [i])
        b.store(p[0], value, [i])
        b.atomic("add", p[1], value, [i, i], (1, None), [i])

    return kernel([ARRAY, ArrayType(MAT, 2)], body)


def loop_function() -> Function:
    def body(b: Builder, p: tuple[Value, ...]) -> tuple[Value, ...]:
        condition = region(b, [float32], lambda b, a: [call(b, "lt", a[0], p[1])])
        step = region(b, [int32, float32], lambda b, a: [call(b, "add", a[1], p[1])])
        return b.loop(p[0], [p[1]], condition, step)

    return build([int32, float32], body)


def branch_function() -> Function:
    def body(b: Builder, p: tuple[Value, ...]) -> tuple[Value, ...]:
        return b.if_(p[0], region(b, [], lambda b, a: [p[1]]), region(b, [], lambda b, a: [b.const(float32, 0.0)]))

    return build([bool_, float32], body)


def reverse_function() -> Function:
    def body(b: Builder, p: tuple[Value, ...]) -> tuple[Value, ...]:
        advance = region(b, [int32, float64], lambda b, a: [a[1]])
        reverse = region(b, [int32, float64, float32], lambda b, a: [a[2]])
        return reverse_loop(b, p[0], [p[2]], [p[1]], advance, reverse)

    return build([int32, float32, float64], body)


FACTORIES = (scalar_function, memory_kernel, loop_function, branch_function, reverse_function)


@pytest.mark.parametrize("factory", FACTORIES)
def test_valid_functions_pass(factory: Callable[[], Function]) -> None:
    verify(factory())


@pytest.mark.parametrize("factory", FACTORIES)
def test_clones_share_nothing_and_are_valid(factory: Callable[[], Function]) -> None:
    original = factory()
    copy = clone_function(original)
    verify(copy)
    values = {value for op in original.walk() for value in op.results} | set(original.params)
    assert not any(value in values for op in copy.walk() for value in (*op.results, *op.operands))


def rejects(function: Function, fault: str) -> None:
    with pytest.raises(InternalCompilerError, match=fault) as caught:
        verify(function, after="simplify")
    assert "after pass 'simplify'" in str(caught.value)
    assert f"{function.name}(" in str(caught.value)


def test_undefined_value() -> None:
    rejects(
        build([], lambda b, p: [Value(float32, "ghost")]), r"Yield at .*operand 0 \('ghost'\) is not defined before"
    )


def test_use_before_definition() -> None:
    function = scalar_function()
    function.body.ops[0], function.body.ops[1] = function.body.ops[1], function.body.ops[0]
    rejects(function, r"Call at example\.py:7: operand 1 .*not defined before")


def test_value_used_outside_its_region() -> None:
    function = branch_function()
    inner = function.body.ops[0].regions[1].ops[0].result
    rejects(with_body_op(function, 1, operands=(inner,)), "not visible here")


def test_value_defined_twice() -> None:
    function = scalar_function()
    function.body.ops.insert(0, function.body.ops[0])
    rejects(function, "defined twice")


def test_parameters_and_body_disagree() -> None:
    rejects(replace(scalar_function(), params=(Value(float64), Value(int32))), r"the body takes \(float32, int32\)")


def test_kernel_with_results() -> None:
    rejects(replace(scalar_function(), is_kernel=True), "a kernel has results")


def test_missing_terminator() -> None:
    function = scalar_function()
    function.body.ops.pop()
    rejects(function, "does not end with a yield")


def test_terminator_in_the_middle() -> None:
    function = scalar_function()
    function.body.ops.insert(0, Yield(loc=HERE))
    rejects(function, "a yield only ends a region")


def test_result_types_of_the_function() -> None:
    rejects(replace(scalar_function(), result_types=(float64,)), r"yields \(float32\), expected \(float64\)")


@pytest.mark.parametrize(
    ("type", "value", "fault"),
    [
        (float32, 1, "not a Python float"),
        (float32, 0.1, "not a float32"),
        (int32, 1 << 31, "not a int32"),
        (bool_, 1, "not a Python bool"),
        (VEC, 1.0, "not a scalar"),
    ],
)
def test_constants(type: object, value: float, fault: str) -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        b.append(Const(loc=HERE, results=(Value(type),), value=value))
        return []

    rejects(build([], body), fault)


def test_cast_between_shapes() -> None:
    rejects(build([VEC], lambda b, p: [b.cast(float32, p[0])]), "from vec3f to float32")


def test_construct_with_too_few_scalars() -> None:
    rejects(build([float32], lambda b, p: [b.construct(VEC, [p[0]])]), r"the scalars are \(float32\)")


@pytest.mark.parametrize(
    ("path", "result", "fault"),
    [
        ((), VEC, "the path is empty"),
        ((5,), float32, "component 5 is out of range"),
        (("p",), float32, "no field 'p'"),
        ((None,), float32, "has 0 dynamic indices"),
        ((0,), float64, r"results are \(float64\), expected \(float32\)"),
    ],
)
def test_extract(path: tuple[int | str | None, ...], result: object, fault: str) -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        b.append(Extract(loc=HERE, results=(Value(result),), operands=p, path=path))
        return []

    rejects(build([VEC], body), fault)


def test_insert_of_another_type() -> None:
    rejects(build([VEC, float64], lambda b, p: [b.insert(p[0], p[1], (0,))]), r"component are \(float64\)")


def test_dynamic_index_that_is_no_integer() -> None:
    rejects(build([VEC, float32], lambda b, p: [b.extract(p[0], (None,), [p[1]])]), "an index has type float32")


def test_thread_index() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.append(ThreadIndex(loc=HERE, results=(Value(int64),)))

    rejects(kernel([], body), r"the results are \(int64\), expected \(int32\)")


def test_call_arguments() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        overload = resolve("add", [float64, float64])
        b.append(Call(loc=HERE, results=(Value(float64),), operands=p, builtin=overload))
        return []

    rejects(
        build([float32, float32], body), r"arguments of add are \(float32, float32\), expected \(float64, float64\)"
    )


def test_invoke_arguments_and_kernels() -> None:
    callee = scalar_function()
    rejects(build([float64], lambda b, p: b.invoke(callee, p)), "the arguments of 'f' are")
    rejects(build([], lambda b, p: b.invoke(kernel([], lambda b, p: None), p)), "'k' is a kernel")


def test_native_names() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.append(Native(loc=HERE, operands=p, names=(), snippet=""))

    rejects(kernel([float32], body), "0 names for 1 operands")


def test_array_rank_and_index_types() -> None:
    rejects(build([ArrayType(float32, 2), int32], lambda b, p: [b.load(p[0], [p[1]])]), "1 indices for array")
    rejects(build([ARRAY, float32], lambda b, p: [b.load(p[0], [p[1]])]), "an index has type float32")


def test_access_of_something_that_is_no_array() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.append(Load(loc=HERE, results=(Value(float32),), operands=(p[0], p[1]), rank=1))

    rejects(kernel([VEC, int32], body), "of vec3f, not an array")


def test_store_of_another_type() -> None:
    rejects(kernel([ARRAY, int32, float64], lambda b, p: b.store(p[0], p[2], [p[1]])), r"the value are \(float64\)")


def test_store_with_results() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.append(Store(loc=HERE, results=(Value(float32),), operands=(p[0], p[2], p[1]), rank=1))

    rejects(kernel([ARRAY, int32, float32], body), "has results")


@pytest.mark.parametrize(("kind", "fault"), [("mul", "unknown kind 'mul'"), ("xor", "'xor' of float32")])
def test_atomics(kind: str, fault: str) -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.append(Atomic(loc=HERE, operands=(p[0], p[2], p[1]), rank=1, kind=kind))

    rejects(kernel([ARRAY, int32, float32], body), fault)


def test_view_of_full_rank() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> None:
        b.append(View(loc=HERE, results=(Value(float32),), operands=p))

    rejects(kernel([ARRAY, int32], body), "1 indices into array")


def test_if_condition_and_yields() -> None:
    function = branch_function()
    then = function.body.ops[0].regions[0]
    then.ops[-1] = replace(then.ops[-1], operands=())
    rejects(function, r"the region yields \(\), expected \(float32\)")
    condition = branch_function()
    rejects(with_body_op(condition, 0, operands=(condition.params[1],)), r"operands are \(float32\), expected \(bool\)")


def test_loop_arity_and_types() -> None:
    function = loop_function()
    loop = function.body.ops[0]
    assert isinstance(loop, Loop)
    rejects(with_body_op(loop_function(), 0, results=(Value(float32),)), "the results are")
    rejects(with_body_op(function, 0, has_condition=False), "has 2 regions, expected 1")
    rejects(with_body_op(loop_function(), 0, saved=(0,)), "saves states without a site")
    rejects(with_body_op(loop_function(), 0, saved=(3,), site=0), r"saves \[3\] of 1 states")


def test_loop_that_never_ends() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> tuple[Value, ...]:
        return b.loop(None, [p[0]], None, region(b, [int64, float32], lambda b, a: [a[1]]))

    rejects(build([float32], body), "neither trip count nor condition")


def test_loop_body_arguments() -> None:
    function = loop_function()
    body = function.body.ops[0].regions[1]
    changed = Region((Value(int64), *body.args[1:]), body.ops)
    rejects(with_body_op(function, 0, regions=(function.body.ops[0].regions[0], changed)), "a region takes")


def test_reverse_loop() -> None:
    rejects(with_body_op(reverse_function(), 0, states=2), "the results are")
    rejects(with_body_op(reverse_function(), 0, is_saved=True), "uses saved states without a site")
    function = reverse_function()
    advance, reverse = function.body.ops[0].regions
    rejects(with_body_op(function, 0, regions=(reverse, advance)), "a region takes")


def test_construct_of_a_scalar() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> list[Value]:
        b.append(Construct(loc=HERE, results=(Value(float32),), operands=p))
        return []

    rejects(build([float32], body), "cannot be made from parts")
