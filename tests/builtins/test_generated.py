"""Every overload class: C++ against the reference, and adjoints against central differences of the reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.builtins.adjoint_calls import adjoints, central_differences, is_differentiable
from tests.builtins.instances import Sampler, instances, records, scalar_type, shaped
from tests.builtins.native_calls import NativeCalls

from warp._src.build import available_compilers
from warp._src.builtins.declare import Builtin, NonDifferentiable, Overload
from warp._src.types.scalars import bfloat16, float64, is_scalar

RECORDS = records()
INSTANCES = {record: instances(record) for record in RECORDS}
# Beyond these names results rest on the elementary functions of the C library, where a few units are allowed.
EXACT_GROUPS = ("Operators", "Vector math", "Matrix math", "Internal", "Spatial math")
EXACT_NAMES = frozenset(
    "floor ceil trunc rint round frac abs sign step nonzero isfinite isnan isinf min max clamp where select sqrt lerp "
    "smoothstep radians degrees quat_rotate quat_rotate_inv quat_inverse quat_to_matrix quat_from_matrix dot length "
    "normalize transform_point transform_vector transform_inverse transform_multiply".split()
)
# Iterative methods; the samples keep singular values and eigenvalues 0.15 apart.
UNITS = {"Decompositions": 400}
ids = [record.signature for record in RECORDS]


COMPILERS = {compiler.family: compiler for compiler in available_compilers()}


@pytest.fixture(scope="module", params=sorted(COMPILERS))
def native(request: pytest.FixtureRequest) -> NativeCalls:
    overloads = [overload for found in INSTANCES.values() for overload in found]
    return NativeCalls(overloads, COMPILERS[request.param])


def test_there_are_two_compilers() -> None:
    assert len(COMPILERS) >= 2


@pytest.mark.parametrize("record", RECORDS, ids=ids)
def test_cpp_is_the_reference(record: Builtin, native: NativeCalls) -> None:
    is_exact = record.name in EXACT_NAMES or (record.group in EXACT_GROUPS and record.name != "pow")
    for overload, rows, expected in _samples(record):
        for row, wanted, found in zip(rows, expected, native.run(overload, rows), strict=True):
            for want, got in zip(wanted, found, strict=True):
                _compare(overload, row, want, got, is_exact)


@cache
def _samples(record: Builtin) -> list[tuple[Overload, list[list[Any]], list[tuple[Any, ...]]]]:
    """Give arguments for each overload, and what the reference makes of them; the same for every compiler."""
    found = []
    for overload in INSTANCES[record]:
        sampler = Sampler(overload, np.random.default_rng(7))
        rows = [sampler.draw() for _ in range(record.sampling.count)]
        found.append((overload, rows, [_referenced(overload, row) for row in rows]))
    return found


def _referenced(overload: Overload, row: list[Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        expected = overload.builtin.reference(*row)
    results = (expected,) if len(overload.result_types) == 1 else expected
    return tuple(shaped(type, result) for type, result in zip(overload.result_types, results, strict=True))


def _compare(overload: Overload, row: list[Any], want: Any, got: Any, is_exact: bool) -> None:
    message = f"{overload.label} of {row}: C++ {got}, reference {want}"
    if want.dtype.kind != "f" or is_exact:
        np.testing.assert_array_equal(got, want, err_msg=message)
        return
    eps = max(2.0**-7 if scalar_type(type) is bfloat16 else 0.0 for type in overload.result_types)
    allowed = UNITS.get(overload.builtin.group, 8) * (eps or float(np.finfo(want.dtype).eps))
    np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=allowed, atol=allowed, err_msg=message)


def _float64_instances(record: Builtin) -> list[Overload]:
    def in_float64(type: Any) -> bool:
        return not is_differentiable(type) or (type if is_scalar(type) else type.scalar) is float64

    return [
        overload
        for overload in INSTANCES[record]
        if all(in_float64(type) for type in overload.param_types) and any(map(is_differentiable, overload.param_types))
    ]


DIFFERENTIABLE = [r for r in RECORDS if isinstance(r.adjoint, Mapping) and _float64_instances(r)]


@pytest.mark.parametrize("record", DIFFERENTIABLE, ids=[record.signature for record in DIFFERENTIABLE])
def test_adjoint_is_the_derivative(record: Builtin) -> None:
    for overload in _float64_instances(record):
        random = np.random.default_rng(11)
        sampler = Sampler(overload, random)
        for _ in range(min(4, record.sampling.count)):
            args = sampler.draw()
            incoming = [_incoming(random, type) for type in overload.result_types]
            found = adjoints(overload, args, *incoming)
            expected = central_differences(overload, args, *incoming)
            assert found.keys() <= expected.keys()
            for name, want in expected.items():
                np.testing.assert_allclose(
                    found.get(name, np.zeros_like(want)),
                    want,
                    rtol=1e-6,
                    atol=1e-7,
                    err_msg=f"{overload.label} by {name} at {args}",
                )


def _incoming(random: np.random.Generator, type: Any) -> Any:
    if not is_differentiable(type):
        return scalar_type(type).dtype.type(0)
    adj = random.uniform(-2.0, 2.0, () if is_scalar(type) else type.shape)
    return adj if adj.shape else np.float64(adj)


CONSTANT = [r for r in RECORDS if isinstance(r.adjoint, NonDifferentiable) and not r.internal and _float64_instances(r)]


@pytest.mark.parametrize("record", CONSTANT, ids=[record.signature for record in CONSTANT])
def test_without_adjoint_the_derivative_is_zero(record: Builtin) -> None:
    for overload in _float64_instances(record):
        args = Sampler(overload, np.random.default_rng(5)).draw()
        if all(map(is_differentiable, overload.result_types)):
            for name, slope in central_differences(overload, args, *[1.0] * len(overload.result_types)).items():
                np.testing.assert_array_equal(slope, 0.0, err_msg=f"{overload.label} by {name} at {args}")


def test_every_float_parameter_of_a_public_builtin_has_a_rule() -> None:
    for record in RECORDS:
        if isinstance(record.adjoint, Mapping) and not record.internal:
            for overload in INSTANCES[record]:
                for name, type in zip(record.parameters, overload.param_types, strict=True):
                    assert not is_differentiable(type) or name in record.adjoint, f"{record.signature}: {name}"


def test_every_builtin_is_documented() -> None:
    for record in RECORDS:
        assert record.doc.endswith("."), record.signature
        assert record.group, record.signature
