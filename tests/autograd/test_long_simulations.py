"""Long time loops: what a tape keeps per launch, and loops that compute their states again."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from math import comb

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError, AutogradError
from warp_autograd.time_loops import next_distance


@wp.kernel
def oscillate(x: wp.array(dtype=wp.float64), v: wp.array(dtype=wp.float64), stiffness: wp.array(dtype=wp.float64)):
    i = wp.tid()
    speed = v[i] - stiffness[0] * wp.sin(x[i]) * wp.float64(1e-3)
    v[i] = speed
    x[i] = x[i] + speed * wp.float64(1e-3)


@wp.kernel
def grow(x: wp.array(dtype=wp.float64), rate: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] + wp.float64(1e-4) * rate[0] * x[i] * (wp.float64(1.0) - x[i])


@wp.kernel
def store(x: wp.array(dtype=wp.float64), row: wp.array(dtype=wp.float64)):
    i = wp.tid()
    row[i] = x[i] * x[i]


@wp.kernel
def accumulate(x: wp.array(dtype=wp.float64), total: wp.array(dtype=wp.float64)):
    i = wp.tid()
    total[0] = total[0] * wp.float64(0.9) + x[i]


@wp.kernel
def to_scratch(x: wp.array(dtype=wp.float64), scratch: wp.array(dtype=wp.float64)):
    i = wp.tid()
    scratch[i] = wp.sin(x[i])


@wp.kernel
def from_scratch(scratch: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] + wp.float64(0.1) * scratch[i] * scratch[i]


def floats(*values: float, requires_grad: bool = True) -> wp.array:
    return wp.array(values, dtype=wp.float64, requires_grad=requires_grad)


def logistic_gradients(x: float, rate: float, steps: int) -> tuple[float, float]:
    """Return the derivatives of the last state by the first one and by the rate, forward in time."""
    by_x, by_rate = 1.0, 0.0
    for _ in range(steps):
        by_rate = by_rate + 1e-4 * (x * (1 - x) + rate * (1 - 2 * x) * by_rate)
        by_x = by_x * (1 + 1e-4 * rate * (1 - 2 * x))
        x = x + 1e-4 * rate * x * (1 - x)
    return by_x, by_rate


def test_ten_thousand_steps() -> None:
    steps = 10_000
    x, rate, start = floats(0.0), floats(3.0), floats(0.1)
    with wp.Tape() as tape:
        wp.copy(x, start)
        wp.autograd.checkpointed_loop(lambda k: wp.launch(grow, dim=1, inputs=[x, rate]), [x], steps)
    final = x.numpy()[0]
    # The closed form of the differential equation, to the order of the step.
    assert final == pytest.approx(0.1 * np.exp(3.0) / (1 + 0.1 * (np.exp(3.0) - 1)), abs=1e-4)
    tape.backward(grads={x: floats(1.0)})
    by_x, by_rate = logistic_gradients(0.1, 3.0, steps)
    np.testing.assert_allclose(start.grad.numpy(), [by_x], rtol=1e-10)
    np.testing.assert_allclose(rate.grad.numpy(), [by_rate], rtol=1e-10)
    assert x.numpy()[0] == final
    assert len(tape.events) == 2


def pendulum(slots: int | None, steps: int = 37) -> tuple[list[np.ndarray], wp.Tape, dict[wp.array, wp.array]]:
    start, speed = floats(0.3, 0.5, -0.2), floats(1.0, 0.0, 2.0)
    stiffness = floats(400.0)
    trajectory = wp.zeros((steps, 3), dtype=wp.float64, requires_grad=True)

    def step(k: int) -> None:
        wp.launch(oscillate, dim=3, inputs=[x, v, stiffness])
        wp.launch(store, dim=3, inputs=[x], outputs=[trajectory[k]])

    with wp.Tape() as tape:
        x, v = wp.clone(start), wp.clone(speed)
        if slots is None:
            for k in range(steps):
                step(k)
        else:
            wp.autograd.checkpointed_loop(step, [x, v], steps, slots)
        final = wp.zeros(3, dtype=wp.float64, requires_grad=True)
        wp.launch(store, dim=3, inputs=[x], outputs=[final])
        x.zero_()
    seeds = {final: floats(1, 2, 3), trajectory: wp.ones_like(trajectory)}
    tape.backward(grads=seeds)
    return [array.grad.numpy() for array in (start, speed, stiffness)], tape, seeds


@pytest.mark.cpu
@pytest.mark.parametrize("slots", [1, 2, 3, 8, 64])
def test_number_of_slots_does_not_change_gradients(slots: int) -> None:
    expected, _, _ = pendulum(None)
    found, tape, seeds = pendulum(slots)
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-13)
    tape.backward(grads=seeds)
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(array, 2 * wanted, rtol=1e-13)


def test_scratch_arrays_need_not_be_in_the_state() -> None:
    gradients = []
    for slots in (None, 2):
        start, scratch = floats(0.5), floats(0.0, requires_grad=False)
        with wp.Tape() as tape:
            x = wp.clone(start)

            def step(_: int, x: wp.array = x, scratch: wp.array = scratch) -> None:
                wp.launch(to_scratch, dim=1, inputs=[x], outputs=[scratch])
                wp.launch(from_scratch, dim=1, inputs=[scratch], outputs=[x])

            if slots is None:
                for k in range(9):
                    step(k)
            else:
                wp.autograd.checkpointed_loop(step, [x], 9, slots)
        tape.backward(x)
        gradients.append(start.grad.numpy()[0])
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-13)


def test_values_carried_outside_the_state_are_an_error() -> None:
    x, total = floats(0.5), floats(0.0)
    with wp.Tape(), pytest.raises(AutogradError, match=r"parameter 'total'.*add it to state"):
        wp.autograd.checkpointed_loop(lambda _: wp.launch(accumulate, dim=1, inputs=[x, total]), [], 3)
    with wp.Tape() as tape:
        wp.autograd.checkpointed_loop(lambda _: wp.launch(accumulate, dim=1, inputs=[x, total]), [total], 3)
    tape.backward(total)
    np.testing.assert_allclose(x.grad.numpy(), [1 + 0.9 + 0.81])


def test_changed_parameters_are_an_error_and_overwritten_ones_are_kept() -> None:
    x, rate = floats(0.1), floats(3.0)
    with wp.Tape() as tape:
        wp.autograd.checkpointed_loop(lambda _: wp.launch(grow, dim=1, inputs=[x, rate]), [x], 5)
        rate.fill_(50.0)
    tape.backward(x)
    assert x.grad.numpy()[0] == pytest.approx(logistic_gradients(0.1, 3.0, 5)[0], rel=1e-12)
    with wp.Tape() as tape:
        wp.autograd.checkpointed_loop(lambda _: wp.launch(grow, dim=1, inputs=[x, rate]), [x], 5)
    rate.fill_(3.0)
    with pytest.raises(AutogradError, match="overwritten off the tape"):
        tape.backward(x)


def test_without_a_tape_and_bad_arguments() -> None:
    x, rate = floats(0.1), floats(3.0)
    wp.autograd.checkpointed_loop(lambda _: wp.launch(grow, dim=1, inputs=[x, rate]), [x], 4)
    expected = 0.1
    for _ in range(4):
        expected += 1e-4 * 3.0 * expected * (1 - expected)
    assert x.numpy()[0] == pytest.approx(expected)
    with wp.Tape() as tape:
        wp.autograd.checkpointed_loop(lambda _: None, [x], 0)
    assert not tape.events
    for step, state, steps, slots, name in (
        (None, [x], 1, None, "step"),
        (print, x, 1, None, "state"),
        (print, [1], 1, None, "state"),
        (print, [x], -1, None, "steps"),
        (print, [x], 2.0, None, "steps"),
        (print, [x], 2, 0, "slots"),
    ):
        with pytest.raises(ArgumentError, match=name):
            wp.autograd.checkpointed_loop(step, state, steps, slots)


@pytest.mark.parametrize(("steps", "slots"), [(1, 1), (10, 1), (10, 3), (100, 4), (165, 3), (1000, 10), (1000, 31)])
def test_the_schedule_is_binomial(steps: int, slots: int) -> None:
    """No step runs more than r times before its own turn, r the least with C(slots + r, slots) >= steps."""
    rounds = next(r for r in range(1, steps + 1) if comb(slots + r, slots) >= steps)
    runs: Counter[int] = Counter()
    kept = [0]
    for k in range(steps - 1, -1, -1):
        while kept[-1] > k:
            kept.pop()
        position = kept[-1]
        while position < k:
            stop = position + next_distance(k + 1 - position, slots - len(kept))
            assert position < stop <= k
            runs.update(range(position, stop))
            position = stop
            if len(kept) < slots:
                kept.append(position)
        assert len(kept) <= slots
    assert max(runs.values(), default=0) <= rounds


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def test_a_tape_keeps_few_bytes_per_launch() -> None:
    """Counted here is what tape and recording layer keep, without the event that the launch makes."""
    a, b = wp.zeros(4, requires_grad=True), wp.zeros(4, requires_grad=True)
    count = 2000

    def run() -> None:
        for _ in range(count // 2):
            wp.launch(double, dim=4, inputs=[a], outputs=[b])
            wp.launch(double, dim=4, inputs=[b], outputs=[a])

    with wp.Tape() as tape:
        run()
        tracemalloc.start()
        before = tracemalloc.take_snapshot()
        run()
        gc.collect()
        after = tracemalloc.take_snapshot()
        tracemalloc.stop()
    assert tape.snapshot_bytes == 0
    ours = [
        difference.size_diff
        for difference in after.compare_to(before, "filename")
        if "warp_autograd" in difference.traceback[0].filename or "/recording/" in difference.traceback[0].filename
    ]
    assert 0 < sum(ours) / count < 150
