"""Affine forms of index expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.ir_programs import build, call

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Value
from warp._src.ir.traverse import definitions
from warp._src.passes.affine import Affine, AffineForms
from warp._src.types.scalars import float64, int8, int16, int32, int64, uint8, uint32


def form_of(types: Sequence[Any], body: Any) -> tuple[Affine, Function]:
    """Give the form of the value that `body` builds."""
    function = build(types, lambda b, p: [body(b, p)])
    return AffineForms(definitions(function)).of(function.body.terminator.operands[0]), function


def const(b: Builder, value: int) -> Value:
    return b.const(int32, value)


def test_constants_sums_and_multiples() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> Value:
        twice = call(b, "mul", const(b, 2), call(b, "add", p[0], const(b, 3)))
        return call(b, "sub", call(b, "neg", p[1]), call(b, "mul", twice, const(b, -1)))

    form, function = form_of([int32, int32], body)
    assert (form.constant, dict(form.terms)) == (6, {function.params[0]: 2, function.params[1]: -1})


def test_terms_cancel() -> None:
    form, _ = form_of([int32], lambda b, p: call(b, "sub", call(b, "add", p[0], const(b, 1)), p[0]))
    assert form == Affine(1, {})
    form, _ = form_of([int32], lambda b, p: call(b, "mul", p[0], const(b, 0)))
    assert form == Affine(0, {})


@pytest.mark.parametrize("name", ["mul", "mod", "floordiv", "min"])
def test_other_operations_stand_for_themselves(name: str) -> None:
    form, function = form_of([int32, int32], lambda b, p: call(b, name, p[0], p[1]))
    assert dict(form.terms) == {function.body.terminator.operands[0]: 1}


@pytest.mark.parametrize("target", [int32, int64, uint32])
def test_casts_between_wide_integers_change_nothing(target: Any) -> None:
    form, function = form_of([int32], lambda b, p: b.cast(target, call(b, "add", p[0], const(b, 1))))
    assert (form.constant, dict(form.terms)) == (1, {function.params[0]: 1})


@pytest.mark.parametrize("target", [int8, uint8, int16])
def test_narrow_integers_wrap_within_the_bounds_of_arrays(target: Any) -> None:
    form, function = form_of([int32], lambda b, p: b.cast(int32, b.cast(target, p[0])))
    assert function.params[0] not in form.terms
    form, function = form_of([target], lambda b, p: call(b, "add", p[0], p[0]))
    assert function.params[0] not in form.terms


def test_a_float_is_opaque() -> None:
    form, function = form_of([float64], lambda b, p: b.cast(int32, p[0]))
    assert dict(form.terms) == {function.body.terminator.operands[0]: 1}


def test_numbers_that_overflow_are_opaque() -> None:
    def body(b: Builder, p: tuple[Value, ...]) -> Value:
        high = call(b, "mul", p[0], const(b, 1 << 16))
        return call(b, "mul", high, const(b, 1 << 16))

    form, function = form_of([int32], body)
    assert function.params[0] not in form.terms


def test_a_value_can_be_given_a_form() -> None:
    function = build([int32, int32], lambda b, p: [call(b, "add", p[1], const(b, 1))])
    forms = AffineForms(definitions(function))
    forms.set(function.params[1], Affine(4, {function.params[0]: 1}))
    assert forms.of(function.body.terminator.operands[0]) == Affine(5, {function.params[0]: 1})
