"""The CUDA text, compiled for the host, against the text for the CPU: results, gradients and faults of every kernel."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tests.cuda import batches
from tests.cuda.kernels import CASES, Case
from tests.cuda.running import Arguments, load, run_cpu, run_hosted

from warp._src.build import find_compiler

UNITS = [batches.units_of(case.kernel) for case in CASES]
FLAT = [unit for units in UNITS for unit in units]
FIRST = [sum(map(len, UNITS[:index])) for index in range(len(UNITS))]
ids = [case.kernel.key for case in CASES]


@pytest.fixture(scope="module")
def hosted() -> ctypes.CDLL:
    return load(batches.hosted_text(FLAT), find_compiler())


@pytest.fixture(scope="module")
def cpu() -> ctypes.CDLL:
    return load(batches.cpp_text(FLAT), find_compiler())


@pytest.mark.parametrize(("grid", "block", "slots"), [(2, 3, 0), (5, 32, 3)])
@pytest.mark.parametrize("number", range(len(CASES)), ids=ids)
def test_cuda_text_computes_what_the_cpu_does(
    number: int, grid: int, block: int, slots: int, hosted: ctypes.CDLL, cpu: ctypes.CDLL
) -> None:
    units, first = UNITS[number], FIRST[number]
    # The forward kernel alone; then the forward that a tape runs, if it is another, and its adjoint.
    last = len(units) - 1
    for indices in ([0], [last - 1, last]):
        want, got = Arguments(CASES[number]), Arguments(CASES[number])
        for index in indices:
            run_cpu(cpu, f"{units[index].entry}_{first + index}", want)
            run_hosted(hosted, f"run_{first + index}", got, grid, block, slots)
        assert (want.fault.kind, got.fault.kind, got.record.missing) == (0, 0, 0)
        untouched = Arguments(CASES[number])
        assert any(map(differ, untouched.arrays, want.arrays)), "the kernel has done nothing"
        for expected, actual in zip(want.arrays, got.arrays, strict=True):
            assert_close(actual, expected)


def differ(before: Any, after: Any) -> bool:
    return bool(before.tobytes() != after.tobytes())


def assert_close(got: Any, want: Any) -> None:
    """Sums over work items may round in another order."""
    if want.dtype.names:
        for name in want.dtype.names:
            assert_close(got[name], want[name])
    elif want.dtype.kind == "f":
        unit = float(np.finfo(want.dtype).eps)
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=64 * unit, atol=16 * unit)
    else:
        np.testing.assert_array_equal(got, want)


def test_every_case_has_an_adjoint() -> None:
    assert [units[-1].entry for units in UNITS] == ["wp_backward"] * len(CASES)


def test_the_fault_of_the_lowest_item_is_reported(hosted: ctypes.CDLL) -> None:
    number = ids.index("reports")
    case = CASES[number]

    def arguments(random: np.random.Generator) -> list[Any]:
        values = case.arguments(random)
        values[0][[4, 9, 20]] = 5000.0
        return values

    given = Arguments(Case(case.kernel, case.shape, arguments))
    run_hosted(hosted, f"run_{FIRST[number]}", given, 2, 3, 0)
    assert (given.fault.kind, given.fault.item) == (1, 4)
