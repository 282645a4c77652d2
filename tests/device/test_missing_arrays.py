"""None for an array: behind a condition it is fine, an access is an error with its line, and never a crash."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import warp as wp
from warp.errors import LaunchError


@wp.kernel
def doubled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def added(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i])


@wp.kernel
def first_of_row(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    row = x[i]
    y[i] = row[0]


@wp.struct
class Source:
    x: wp.array(dtype=float)
    factor: float


@wp.kernel
def from_struct(source: Source, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = source.factor * source.x[i]


@wp.kernel
def optional(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if x:
        y[i] = 2.0 * x[i]
    else:
        y[i] = float(i)


@pytest.mark.parametrize("is_taped", [False, True])
@pytest.mark.parametrize("kernel", [doubled, added, first_of_row, from_struct], ids=lambda kernel: kernel.key)
@pytest.mark.parametrize("missing", [0, 1])
def test_an_access_names_its_line(kernel, missing, is_taped):
    x = wp.ones((3, 1)) if kernel is first_of_row else wp.ones(3)
    y = wp.zeros(3)
    args = [x, y]
    if kernel is from_struct:
        args[0] = Source()
        args[0].x, args[0].factor = (None if missing == 0 else x), 1.0
    if not (kernel is from_struct and missing == 0):
        args[missing] = None
    with (
        pytest.raises(LaunchError, match=r"which has 0 elements, at line \d+"),
        wp.Tape() if is_taped else contextlib.nullcontext(),
    ):
        wp.launch(kernel, 3, inputs=args)
    assert np.all(y.numpy() == 0.0)
    assert np.all(x.numpy() == 1.0)


def test_an_access_behind_a_condition_is_fine_and_has_a_gradient():
    y = wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(optional, 3, inputs=[None, y])
    assert y.numpy().tolist() == [0.0, 1.0, 2.0]
    tape.backward(grads={y: wp.ones(3)})
    x = wp.ones(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(optional, 3, inputs=[x, y])
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad.numpy().tolist() == [2.0, 2.0, 2.0]


def test_a_launch_for_running_again_is_checked_as_well():
    y = wp.zeros(3)
    command = wp.launch(doubled, 3, inputs=[wp.ones(3), y], record_cmd=True)
    command.set_param_by_name("x", None)
    with pytest.raises(LaunchError, match="line"):
        command.launch()
    command.set_param_by_name("x", wp.ones(3))
    command.launch()
    assert y.numpy().tolist() == [2.0, 2.0, 2.0]
