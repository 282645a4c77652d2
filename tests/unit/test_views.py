"""Accesses through views are accesses of the array behind them: at which indices, and whether threads can meet."""

from __future__ import annotations

from typing import Any

import pytest

import warp as wp
from warp._src.lang.source import build_kernel
from warp._src.passes import pipeline
from warp._src.passes.access import AccessAnalysis

Doubles = wp.array(dtype=wp.float64)
Doubles2 = wp.array2d(dtype=wp.float64)


def analysis(kernel: Any) -> AccessAnalysis:
    return AccessAnalysis(pipeline.forward(build_kernel(kernel, [t for _, t in kernel.parameters])))


@wp.kernel
def rows(x: Doubles2):
    row = x[wp.tid()]
    row[2] = 1.0


@wp.kernel
def columns(x: Doubles2):
    column = x[:, wp.tid()]
    column[2] = 1.0


@wp.kernel
def shifted(x: Doubles):
    tail = x[3:]
    tail[wp.tid()] = 1.0


@wp.kernel
def every_second(x: Doubles):
    part = x[1::2]
    rest = part[1:]
    rest[wp.tid()] = 1.0


@wp.kernel
def reversed_by_constant(x: Doubles2):
    part = x[:, 1:][2]
    part[wp.tid()] = 1.0


@pytest.mark.parametrize(
    ("kernel", "indices"),
    [
        (rows, [(0, [1]), (2, [])]),
        (columns, [(2, []), (0, [1])]),
        (shifted, [(3, [1])]),
        (every_second, [(3, [2])]),
        (reversed_by_constant, [(2, []), (1, [1])]),
    ],
)
def test_indices_into_the_root(kernel: Any, indices: list[tuple[int, list[int]]]) -> None:
    (write,) = analysis(kernel).accesses
    assert write.root == (0,)
    assert write.indices is not None
    assert [(form.constant, list(form.terms.values())) for form in write.indices] == indices
    assert analysis(kernel).summary().is_independent(frozenset({0}))


@wp.kernel
def from_anywhere(x: Doubles, starts: wp.array(dtype=int)):
    part = x[starts[wp.tid()] :]
    part[wp.tid()] = 1.0


def test_a_start_that_differs_between_threads() -> None:
    assert not analysis(from_anywhere).summary().is_independent(frozenset({0}))
