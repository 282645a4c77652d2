"""Copies between arrays of any layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError


def test_offsets_on_a_strided_destination() -> None:
    base = wp.array([9, 0, 9, 0, 9, 0, 9, 0], dtype=wp.int32)
    wp.copy(base[::2], wp.array([1, 2, 3, 4], dtype=wp.int32), src_offset=1, dest_offset=1, count=2)
    np.testing.assert_array_equal(base.numpy(), [9, 0, 2, 0, 3, 0, 9, 0])


def test_offsets_on_strided_matrices() -> None:
    dest = np.zeros((3, 4), np.float32)
    src = np.arange(12, dtype=np.float32).reshape(4, 3)
    wp.copy(wp.array(dest, copy=False)[:, 1:3], wp.array(src, copy=False).transpose(), 1, 2, 4)
    expected = np.zeros((3, 4), np.float32)
    part = expected[:, 1:3].copy().reshape(-1)
    part[1:5] = src.T.reshape(-1)[2:6]
    expected[:, 1:3] = part.reshape(3, 2)
    np.testing.assert_array_equal(dest, expected)


def test_overlapping_ranges() -> None:
    for dest_offset, src_offset in ((0, 2), (2, 0)):
        made = wp.array(np.arange(8), dtype=wp.int32)
        expected = np.arange(8)
        expected[dest_offset : dest_offset + 6] = np.arange(8)[src_offset : src_offset + 6]
        wp.copy(made, made, dest_offset, src_offset, 6)
        np.testing.assert_array_equal(made.numpy(), expected)


def test_overlapping_views_of_different_strides() -> None:
    made = wp.array(np.arange(10), dtype=wp.int32)
    wp.copy(made[::3], made[3:7])
    np.testing.assert_array_equal(made.numpy(), [3, 1, 2, 4, 4, 5, 5, 7, 8, 6])


def test_shapes_may_differ_and_count_defaults_to_the_source() -> None:
    dest = wp.zeros((2, 3), dtype=float)
    wp.copy(dest, wp.array([1, 2, 3, 4], dtype=float))
    np.testing.assert_array_equal(dest.numpy(), [[1, 2, 3], [4, 0, 0]])


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: wp.copy(wp.zeros(2, dtype=float), wp.zeros(3, dtype=float)), "dest has 2"),
        (lambda: wp.copy(wp.zeros(2, dtype=float), wp.zeros(2, dtype=int)), "int32"),
        (lambda: wp.copy(wp.zeros(2, dtype=float), [1, 2]), "src"),
        (lambda: wp.copy(wp.zeros(9), wp.zeros(2), src_offset=1, count=2), "src_offset"),
        (lambda: wp.copy(wp.zeros(9), wp.zeros(2), dest_offset=-1), "dest_offset"),
        (lambda: wp.clone(3), "src"),
    ],
)
def test_errors(call: Callable[[], None], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        call()


def test_clone() -> None:
    source = wp.array(np.arange(6.0).reshape(2, 3), requires_grad=True)
    made = wp.clone(source.transpose())
    assert made.is_contiguous
    assert made.requires_grad
    assert not wp.clone(source, requires_grad=False).requires_grad
    np.testing.assert_array_equal(made.numpy(), source.numpy().T)
