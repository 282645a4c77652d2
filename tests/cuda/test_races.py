"""Work items of a GPU run in no order: no gradient is made up for what depends on it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autograd.test_recorded_loads import RACES
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp.errors import AutogradError

Floats = wp.array(dtype=wp.float64)
Ints = wp.array(dtype=wp.int32)


@pytest.mark.parametrize("kernel", RACES, ids=lambda kernel: kernel.key)
def test_gradients_through_races_are_refused_with_the_line(kernel: wp.Kernel, driver: FakeDriver) -> None:
    x, y = (wp.array(np.linspace(0.1, 1, 6), dtype=wp.float64, device="cuda", requires_grad=True) for _ in range(2))
    counters = wp.zeros(6, dtype=wp.int32, device="cuda")
    with wp.Tape() as tape:
        wp.launch(kernel, 6, inputs=[x, y, counters], device="cuda")
    before = x.grad.numpy(), y.grad.numpy()
    with pytest.raises(AutogradError, match=r"test_recorded_loads\.py:\d+: .* in no order"):
        tape.backward(grads={x: wp.ones_like(x), y: wp.ones_like(y)})
    np.testing.assert_array_equal(before, (x.grad.numpy(), y.grad.numpy()))


@wp.kernel
def next_of_each(x: Floats, n: Ints):
    t = wp.tid()
    x[t + 1] = wp.sin(x[t])


@wp.kernel
def scaled_at(x: Floats, n: Ints):
    t = wp.tid()
    x[n[t]] = 3.0 * x[n[t]] * x[n[t]]


@wp.kernel
def by_the_first(x: Floats, n: Ints):
    t = wp.tid()
    if t == 0:
        x[5] = x[5] * x[0]


@wp.kernel
def summed(x: Floats, n: Ints):
    t = wp.tid()
    if t < 5:
        wp.atomic_add(x, 5, x[t] * x[t])


@wp.kernel
def stored_and_added(x: Floats, n: Ints):
    t = wp.tid()
    x[t] = 2.0 * wp.float64(t)
    wp.atomic_add(x, n[t], 3.0)


@wp.kernel
def stored_then_added(x: Floats, n: Ints):
    t = wp.tid()
    x[t] = 2.0 * wp.float64(t)
    wp.atomic_add(x, t, 3.0)


def gradient_of(kernel: wp.Kernel) -> list[float]:
    x = wp.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=wp.float64, device="cuda", requires_grad=True)
    order = wp.array([3, 1, 0, 5, 4], dtype=int, device="cuda")
    with wp.Tape() as tape:
        start = wp.clone(x)
        wp.launch(kernel, 5, inputs=[start, order], device="cuda")
    tape.backward(grads={start: wp.ones_like(start)})
    found: list[float] = x.grad.list()
    return found


def test_indices_that_are_not_known_are_taken_to_be_apart(driver: FakeDriver) -> None:
    assert gradient_of(scaled_at) == [6, 12, 1, 24, 30, 36]


def test_one_work_item_may_do_what_it_likes(driver: FakeDriver) -> None:
    assert gradient_of(by_the_first) == [7, 1, 1, 1, 1, 1]


def test_atomic_sums_of_other_elements(driver: FakeDriver) -> None:
    with pytest.raises(AutogradError, match="other work items may write"):
        gradient_of(summed)  # which elements are summed is the guard's affair
    with pytest.raises(AutogradError, match="other work items may write"):
        gradient_of(next_of_each)


def test_stores_where_others_add(driver: FakeDriver) -> None:
    with pytest.raises(AutogradError, match=r"stores where other work items may add(.|\n)*no order"):
        gradient_of(stored_and_added)
    assert gradient_of(stored_then_added) == [0, 0, 0, 0, 0, 1]


@wp.kernel
def squared(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = x[t] * x[t]


def test_an_array_given_twice_is_one_array_and_a_shifted_view_is_not(driver: FakeDriver) -> None:
    x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=wp.float64, device="cuda", requires_grad=True)
    with wp.Tape() as tape:
        y = wp.clone(x)
        wp.launch(squared, 4, inputs=[y, y], device="cuda")
    tape.backward(grads={y: wp.ones_like(y)})
    assert x.grad.list() == [2, 4, 6, 8]
    with wp.Tape() as tape:
        z = wp.clone(x)
        wp.launch(squared, 3, inputs=[z[:3], z[1:]], device="cuda")
    with pytest.raises(AutogradError, match="no order"):
        tape.backward(grads={z: wp.ones_like(z)})
