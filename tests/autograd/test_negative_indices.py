"""Indices that are negative when a kernel runs count from the end, and gradients go where the values came from."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autograd.checking import check_gradients

import warp as wp

Floats = wp.array(dtype=wp.float64)
Table = wp.array2d(dtype=wp.float64)
Places = wp.array(dtype=int)
X = np.array([0.7, -1.3, 0.4, 1.9, 0.2])
COUNT = len(X)


def empty() -> wp.array:
    return wp.zeros(COUNT, dtype=wp.float64, requires_grad=True)


@wp.kernel
def periodic(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i - 1] * x[i] + wp.sin(x[i - 2])


def test_neighbours_across_the_end() -> None:
    def run(x: wp.array) -> wp.array:
        y = empty()
        wp.launch(periodic, dim=COUNT, inputs=[x], outputs=[y])
        return y

    (found,) = check_gradients(run, X)
    np.testing.assert_allclose(found, np.roll(X, 1) * X + np.sin(np.roll(X, 2)), rtol=1e-14)


@wp.kernel
def shifted(x: Floats, offset: int, y: Floats):
    i = wp.tid()
    y[i + offset] = x[i] * x[i]


@pytest.mark.parametrize("offset", [-COUNT, -2, -1, 0])
def test_stores_by_an_offset(offset: int) -> None:
    def run(x: wp.array) -> wp.array:
        y = empty()
        wp.launch(shifted, dim=COUNT, inputs=[x, offset], outputs=[y])
        return y

    (found,) = check_gradients(run, X)
    np.testing.assert_allclose(found, np.roll(X**2, offset), rtol=1e-14)


@wp.kernel
def in_time(x: Floats, y: Floats):
    for t in range(x.shape[0]):
        x[t] = wp.sin(x[t - 1]) + 0.5 * x[t] * x[t]
        y[t - 3] = x[t] * y[t - 1]


def in_time_in_python(x: np.ndarray, y: np.ndarray) -> None:
    for t in range(COUNT):
        x[t] = np.sin(x[t - 1]) + 0.5 * x[t] * x[t]
        y[t - 3] = x[t] * y[t - 1]


def test_a_loop_that_reads_at_its_start_what_it_overwrites_at_its_end() -> None:
    def run(x: wp.array, y: wp.array) -> tuple[wp.array, wp.array]:
        x, y = wp.clone(x), wp.clone(y)
        wp.launch(in_time, dim=1, inputs=[x], outputs=[y])
        return x, y

    found = check_gradients(run, X, X + 0.5)
    expected = X.copy(), X + 0.5
    in_time_in_python(*expected)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-13)


@wp.func
def taken(x: Floats, i: int):
    return x[i] * x[i]


@wp.kernel
def gathered(x: Floats, table: Table, places: Places, y: Floats, sums: Floats):
    i = wp.tid()
    place = places[i]
    row = table[place]
    y[i] = taken(x, place) * row[place - 1] + taken(x, i)
    wp.atomic_add(sums, place, table[i, place])


def test_indices_from_memory_in_rows_functions_and_atomics() -> None:
    places = np.array([-1, 2, -4, 0, -3])
    table = np.random.default_rng(1).uniform(0.5, 1.5, (COUNT, COUNT))

    def run(x: wp.array, table: wp.array) -> tuple[wp.array, wp.array]:
        y, sums = empty(), empty()
        wp.launch(gathered, dim=COUNT, inputs=[x, table, wp.array(places, dtype=int)], outputs=[y, sums])
        return y, sums

    found, totals = check_gradients(run, X, table)
    expected, sums = np.zeros(COUNT), np.zeros(COUNT)
    for i, place in enumerate(places):
        expected[i] = X[place] ** 2 * table[place][place - 1] + X[i] ** 2
        sums[place] += table[i, place]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(totals, sums, rtol=1e-13)


@wp.kernel
def of_every_type(x: Floats, small: wp.int8, long: wp.int64, y: Floats):
    y[0] = x[small] + 10.0 * x[long] + 100.0 * x[wp.int16(small) - wp.int16(1)]


def test_every_signed_type() -> None:
    y = empty()
    x = wp.array(X, dtype=wp.float64)
    wp.launch(of_every_type, dim=1, inputs=[x, wp.int8(-1), wp.int64(-4), y])
    np.testing.assert_allclose(y.numpy()[0], X[-1] + 10 * X[-4] + 100 * X[-2])


@wp.kernel
def of_an_indexed_array(x: wp.indexedarray(dtype=wp.float64), y: Floats):
    i = wp.tid()
    y[i] = x[i - 1]


def test_indexed_arrays() -> None:
    chosen = wp.indexedarray(wp.array(X, dtype=wp.float64), [wp.array([4, 1, 3], dtype=int)])
    y = empty()
    wp.launch(of_an_indexed_array, dim=3, inputs=[chosen, y])
    np.testing.assert_array_equal(y.numpy()[:3], X[[3, 4, 1]])
