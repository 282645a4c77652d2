"""Values that adjoints need: overwritten, changed off the tape, stale, or computed again."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.elementwise import double, square, vector

from warp._src.array.array import array
from warp._src.array.copying import copy
from warp._src.array.creation import zeros, zeros_like
from warp.errors import AutogradError, WarpWarning
from warp.recording import is_watching
from warp_autograd.tape import Tape

pytestmark = pytest.mark.cpu


def test_value_overwritten_later_on_the_tape_can_be_an_error() -> None:
    a, c = vector(1, 2), vector(-1, -2)
    b = zeros_like(a)
    with Tape(overwrite="error") as tape:
        square(a, b)
        double(c, a)
    with pytest.raises(AutogradError, match=r"overwritten later on the tape by 'elementwise' \(test.py:1\)"):
        tape.backward(grads={b: vector(1, 1)})
    assert not a.grad.numpy().any()


def test_linear_readers_may_be_overwritten() -> None:
    a, c = vector(1, 2), vector(-1, -2)
    b = zeros_like(a)
    with Tape() as tape:
        double(a, b)
        double(c, a)
    tape.backward(grads={b: vector(1, 1)})
    np.testing.assert_allclose(a.grad.numpy(), [2, 2])


def test_disjoint_columns_do_not_count_as_overwritten() -> None:
    x = vector(1, 2)
    m, o = zeros((2, 2), requires_grad=True), zeros(2, requires_grad=True)
    with Tape() as tape:
        double(x, m[:, 0])
        square(m[:, 0], o)
        double(x, m[:, 1])
    tape.backward(grads={o: vector(1, 1)})
    np.testing.assert_allclose(x.grad.numpy(), [8, 16])


def test_leaf_changed_off_the_tape_is_reported_once() -> None:
    x = vector(3)
    y = zeros_like(x)
    with Tape() as tape:
        square(x, y)
    x.fill_(100.0)
    with pytest.warns(WarpWarning, match=r"elementwise.*array of shape \(1,\).*modified off the tape"):
        tape.backward(y)
    np.testing.assert_allclose(x.grad.numpy(), [200])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape.backward(y)
    tape.strict = True
    with pytest.raises(AutogradError, match="modified"):
        tape.backward(y)


@pytest.mark.parametrize("change", [lambda x: x.assign([5.0]), lambda x: copy(x, vector(5)), lambda x: x.zero_()])
def test_stale_intermediate_is_an_error(change: Callable[[array], None]) -> None:
    x = vector(3)
    y, z = zeros_like(x), zeros_like(x)
    with Tape() as tape:
        square(x, y)
        square(y, z)
    change(x)
    with pytest.raises(AutogradError, match="stale"):
        tape.backward(z)


def test_intermediate_overwritten_off_the_tape_is_an_error() -> None:
    x = vector(3)
    y, z = zeros_like(x), zeros_like(x)
    with Tape() as tape:
        square(x, y)
        square(y, z)
    y.fill_(1.0)
    with pytest.raises(AutogradError, match="overwritten off the tape"):
        tape.backward(z)


def test_staleness_travels_through_linear_operations() -> None:
    x = vector(3)
    y, z, w = zeros_like(x), zeros_like(x), zeros_like(x)
    with Tape() as tape:
        double(x, y)
        double(y, z)
        square(z, w)
    x.fill_(1.0)
    with pytest.raises(AutogradError, match="stale"):
        tape.backward(w)


def test_change_through_a_short_lived_view_is_noticed() -> None:
    x = vector(3, 4)
    y = zeros_like(x)
    with Tape() as tape:
        square(x, y)
    x[1:].fill_(100.0)
    gc.collect()
    with pytest.warns(WarpWarning, match="modified off the tape"):
        tape.backward(grads={y: vector(1, 1)})


def test_tape_recorded_once_serves_many_steps() -> None:
    x = vector(3)
    y, z = zeros_like(x), zeros_like(x)
    tape = Tape()
    with tape:
        square(x, y)
        square(y, z, adds=True)
    for value in (3.0, 1.0, -2.0):
        x.numpy()[...] = value
        z.zero_()
        square(x, y)
        square(y, z, adds=True)
        tape.backward(z)
        np.testing.assert_allclose(x.grad.numpy(), [4 * value**3])
        tape.zero()


def test_repeated_operation_on_one_tape_is_repeated_in_order() -> None:
    x, total, out = vector(2), vector(0), vector(0)
    tape = Tape()

    def forward() -> None:
        double(x, total, adds=True)
        double(x, total, adds=True)
        square(total, out)

    with tape:
        forward()
    for value in (2.0, 5.0):
        x.numpy()[...] = value
        total.zero_()
        forward()
        tape.backward(out)
        np.testing.assert_allclose(x.grad.numpy(), [32 * value])
        tape.zero()


def test_nothing_is_watched_without_a_tape() -> None:
    x = vector(3)
    y = zeros_like(x)
    gc.collect()
    before = is_watching()
    with Tape() as tape:
        square(x, y)
    assert is_watching()
    tape.reset()
    assert is_watching() == before


def test_partial_repetition_is_stale() -> None:
    x = vector(3)
    y, z = zeros_like(x), zeros_like(x)
    with Tape() as tape:
        square(x, y)
        square(y, z)
    x.numpy()[...] = 2.0
    square(y, z)
    tape.backward(z)  # shared memory gives no message: x is read at its present value
    square(x, y)
    tape.backward(z)
    x.assign([4.0])
    square(y, z)
    with pytest.raises(AutogradError, match="stale"):
        tape.backward(z)
