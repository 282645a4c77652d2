"""Kernels that overwrite what earlier launches of the tape have read; threads; tapes recorded once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import warp as wp
from warp.errors import AutogradError, WarpWarning


@wp.kernel
def square_kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    tid = wp.tid()
    y[tid] = x[tid] * x[tid]


@wp.kernel
def overwrite_kernel(z: wp.array(dtype=float), x: wp.array(dtype=float)):
    tid = wp.tid()
    x[tid] = z[tid]


@wp.kernel
def loss_kernel(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    tid = wp.tid()
    wp.atomic_add(loss, 0, x[tid])


def floats(*values: float) -> wp.array:
    return wp.array(values, dtype=float, requires_grad=True)


def zeros(size: int) -> wp.array:
    return wp.zeros(size, dtype=float, requires_grad=True)


def test_an_array_overwritten_between_kernels() -> None:
    a = wp.array(np.array([1.0, 2.0, 3.0]), dtype=float, requires_grad=True)
    b = wp.zeros_like(a)
    c = wp.array(np.array([-1.0, -2.0, -3.0]), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    tape = wp.Tape()
    with tape:
        wp.launch(square_kernel, a.shape, inputs=[a], outputs=[b])
        wp.launch(overwrite_kernel, c.shape, inputs=[c], outputs=[a])
        wp.launch(loss_kernel, a.shape, inputs=[b, loss])
    tape.backward(loss)

    assert str(a.grad) == "[2. 4. 6.]"
    assert str(a) == "[-1. -2. -3.]"
    assert tape.snapshot_bytes == 12
    tape.backward(loss)
    assert str(a.grad) == "[ 4.  8. 12.]"


@wp.kernel
def compute_forces(x: wp.array(dtype=float), v: wp.array(dtype=float), force: wp.array(dtype=float)):
    i = wp.tid()
    force[i] = -wp.sin(x[i]) - 0.1 * v[i] * v[i]


@wp.kernel
def simulate(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    force: wp.array(dtype=float),
    x1: wp.array(dtype=float),
    v1: wp.array(dtype=float),
):
    i = wp.tid()
    speed = v[i] + 0.1 * force[i] * force[i]
    v1[i] = speed
    x1[i] = x[i] + 0.1 * speed


@wp.kernel
def compute_loss(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


def two_steps(share_force: bool, share_state: bool) -> np.ndarray:
    n = 5
    x = [wp.array(np.linspace(0.1, 0.9, n), dtype=float, requires_grad=True)]
    v = [wp.array(np.linspace(0.5, -0.5, n), dtype=float, requires_grad=True)]
    start = x[0], v[0]
    force = zeros(n)
    loss = zeros(1)
    with wp.Tape() as tape:
        if share_state:
            x[0], v[0] = wp.clone(x[0]), wp.clone(v[0])
            other = zeros(n), zeros(n)
        for step in range(4):
            target = force if share_force else zeros(n)
            if share_state:
                x.append(other[0] if step % 2 == 0 else x[0])
                v.append(other[1] if step % 2 == 0 else v[0])
            else:
                x.append(zeros(n))
                v.append(zeros(n))
            wp.launch(compute_forces, dim=n, inputs=[x[-2], v[-2]], outputs=[target])
            wp.launch(simulate, dim=n, inputs=[x[-2], v[-2], target], outputs=[x[-1], v[-1]])
        wp.launch(compute_loss, dim=n, inputs=[x[-1]], outputs=[loss])
    tape.backward(loss)
    return np.concatenate([array.grad.numpy() for array in start])


def test_a_simulation_that_reuses_its_arrays() -> None:
    expected = two_steps(share_force=False, share_state=False)
    assert np.abs(expected).min() > 1e-3
    np.testing.assert_array_equal(two_steps(share_force=True, share_state=False), expected)
    np.testing.assert_array_equal(two_steps(share_force=True, share_state=True), expected)


@wp.kernel
def gather(x: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[index[i]]


def test_indices_that_are_overwritten() -> None:
    x, y = floats(1, 2, 3), zeros(2)
    index = wp.array([2, 0], dtype=int)
    with wp.Tape() as tape:
        wp.launch(gather, dim=2, inputs=[x, index], outputs=[y])
        index.zero_()
    assert tape.snapshot_bytes == 8
    tape.backward(grads={y: floats(1, 10)})
    np.testing.assert_array_equal(x.grad.numpy(), [30, 0, 3])
    np.testing.assert_array_equal(index.numpy(), [0, 0])


@wp.struct
class State:
    x: wp.array(dtype=float)
    y: wp.array(dtype=float)


@wp.kernel
def square_in_struct(state: State):
    i = wp.tid()
    state.y[i] = state.x[i] * state.x[i]


def test_members_of_structs() -> None:
    state = State()
    state.x, state.y = floats(1, 2), zeros(2)
    c = floats(7, 8)
    with wp.Tape() as tape:
        wp.launch(square_in_struct, dim=2, inputs=[state])
        wp.launch(overwrite_kernel, dim=2, inputs=[c], outputs=[state.x])
    tape.backward(grads={state.y: floats(1, 1)})
    np.testing.assert_array_equal(state.x.grad.numpy(), [2, 4])
    np.testing.assert_array_equal(c.grad.numpy(), [0, 0])


@wp.kernel
def scale(x: wp.array(dtype=float), factor: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = factor * x[i] * x[i]


def test_recorded_launches_inside_a_tape() -> None:
    x, y = floats(1, 2), zeros(2)
    command = wp.launch(scale, dim=2, inputs=[x, 2.0], outputs=[y], record_cmd=True)
    with wp.Tape() as tape:
        command.launch()
        x.fill_(5.0)
        command.set_param_by_name("factor", 3.0)
        z = zeros(2)
        command.set_param_by_name("y", z)
        command.launch()
    command.set_param_by_name("factor", 100.0)
    tape.backward(grads={y: floats(1, 1)})
    np.testing.assert_array_equal(x.grad.numpy(), [4, 8])
    tape.zero()
    tape.backward(grads={z: floats(1, 1)})
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0])


@wp.kernel(enable_backward=False)
def square_without_adjoint(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def test_kernel_without_adjoint() -> None:
    x, y, z = floats(1, 2), zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square_without_adjoint, dim=2, inputs=[x], outputs=[y])
        wp.launch(square_kernel, dim=2, inputs=[x], outputs=[z])
        x.zero_()
    with pytest.raises(AutogradError, match=r"square_without_adjoint.*enable_backward=False"):
        tape.backward(grads={y: floats(1, 1)})
    tape.backward(grads={z: floats(1, 1)})
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


def test_forward_programs_never_see_errors_about_gradients() -> None:
    x, y = floats(1, 2), zeros(2)
    with wp.Tape():
        wp.launch(square_without_adjoint, dim=2, inputs=[x], outputs=[y])
        x.zero_()
    np.testing.assert_array_equal(y.numpy(), [1, 4])


@wp.kernel
def step_row(trajectory: wp.array2d(dtype=float), k: int):
    i = wp.tid()
    trajectory[k + 1, i] = 0.1 * wp.sin(trajectory[k, i]) + trajectory[k, i]


@pytest.mark.parametrize("write", ["whole", "rows"])
def test_a_trajectory_in_one_array(write: str) -> None:
    steps, n = 6, 3
    start = np.array([0.3, 0.6, 0.9])
    trajectory = wp.zeros((steps + 1, n), dtype=float, requires_grad=True)
    trajectory[0].assign(start)
    with wp.Tape() as tape:
        for k in range(steps):
            if write == "whole":
                wp.launch(step_row, dim=n, inputs=[trajectory, k])
            else:
                wp.launch(step_row, dim=n, inputs=[trajectory[k : k + 2], 0])
    seed = wp.zeros_like(trajectory)
    seed[steps].fill_(1.0)
    tape.backward(grads={trajectory: seed})
    x, expected = start.copy(), np.ones(n)
    for _ in range(steps):
        expected *= 0.1 * np.cos(x) + 1.0
        x = 0.1 * np.sin(x) + x
    np.testing.assert_allclose(trajectory.numpy()[steps], x, rtol=1e-5)
    np.testing.assert_allclose(trajectory.grad.numpy()[0], expected, rtol=1e-5)


@wp.kernel
def residual(x: wp.array(dtype=float), target: wp.array(dtype=float), r: wp.array(dtype=float)):
    i = wp.tid()
    r[i] = x[i] * x[i] - target[i]


@wp.kernel
def descend(x: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    x[i] = x[i] - rate * gradient[i]


def test_optimiser_with_a_tape_recorded_once() -> None:
    """The forward pass is launched again, in order, and the tape serves every step."""
    x, target, r, loss = floats(1.5, 0.5), floats(4, 1), zeros(2), zeros(1)

    def forward() -> None:
        loss.zero_()
        wp.launch(residual, dim=2, inputs=[x, target], outputs=[r])
        wp.launch(compute_loss, dim=2, inputs=[r], outputs=[loss])

    tape = wp.Tape()
    with tape:
        forward()
    value, rate = np.array([1.5, 0.5]), 0.02
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            forward()
            tape.backward(loss)
            np.testing.assert_allclose(x.grad.numpy(), 4 * value * (value**2 - [4, 1]), rtol=1e-5)
            wp.launch(descend, dim=2, inputs=[x, x.grad, rate])
            value -= rate * 4 * value * (value**2 - [4, 1])
            tape.zero()
    np.testing.assert_allclose(x.numpy(), value, rtol=1e-5)


def test_forgotten_forward_pass_is_an_error() -> None:
    x, target, r, loss = floats(1.5, 0.5), floats(4, 1), zeros(2), zeros(1)
    with wp.Tape() as tape:
        wp.launch(residual, dim=2, inputs=[x, target], outputs=[r])
        wp.launch(compute_loss, dim=2, inputs=[r], outputs=[loss])
    tape.backward(loss)
    wp.launch(descend, dim=2, inputs=[x, x.grad, 0.1])
    with pytest.raises(AutogradError, match=r"parameter 'x'.*stale.*'residual' \(.*run|record a new tape"):
        tape.backward(loss)


def in_thread(function: Callable[[], object]) -> list[Exception]:
    errors: list[Exception] = []

    def run() -> None:
        try:
            function()
        except (AssertionError, AutogradError) as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return errors


def test_unrecorded_writes_of_other_threads_are_reported_once() -> None:
    x, y, unrelated = floats(1, 2), zeros(2), zeros(2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with wp.Tape() as tape:
            wp.launch(square_kernel, dim=2, inputs=[x], outputs=[y])
            in_thread(lambda: unrelated.fill_(1.0))
            x[0:1].grad.zero_()
            assert not seen
            in_thread(lambda: x.fill_(1.0))
            in_thread(lambda: x.fill_(2.0))
    (warning,) = seen
    assert issubclass(warning.category, WarpWarning)
    assert "attach()" in str(warning.message)
    with wp.Tape(strict=True) as tape:
        wp.launch(square_kernel, dim=2, inputs=[x], outputs=[y])
        (error,) = in_thread(lambda: x.fill_(1.0))
        assert isinstance(error, AutogradError)
    assert len(tape.events) == 1


def test_attached_threads_record_and_keep() -> None:
    x, y = floats(1, 2), zeros(2)
    with wp.Tape(strict=True) as tape:
        wp.launch(square_kernel, dim=2, inputs=[x], outputs=[y])

        def work() -> None:
            with tape.attach():
                x.fill_(9.0)

        assert not in_thread(work)
    assert [event.label for event in tape.events] == ["square_kernel", "fill_"]
    tape.backward(grads={y: floats(1, 1)})
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


def test_an_unrecorded_launch_inside_the_tape_is_noticed() -> None:
    x, y, z = floats(1, 2), zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square_kernel, dim=2, inputs=[x], outputs=[y])
        wp.launch(square_kernel, dim=2, inputs=[y], outputs=[z])
        wp.launch(overwrite_kernel, dim=2, inputs=[floats(5, 5)], outputs=[y], record_tape=False)
    with pytest.raises(AutogradError, match="overwritten off the tape"):
        tape.backward(grads={z: floats(1, 1)})


@pytest.mark.cpu
def test_two_wrappers_of_one_memory_with_gradients_of_their_own_are_refused() -> None:
    memory = np.zeros(2, dtype=np.float32)
    x = wp.array([2.0, 3.0], dtype=float, requires_grad=True)
    first = wp.array(memory, dtype=float, copy=False, requires_grad=True)
    second = wp.array(memory, dtype=float, copy=False, requires_grad=True)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square_of, dim=2, inputs=[x, first])
        wp.launch(square_of, dim=2, inputs=[second, out])
    with pytest.raises(AutogradError, match="gradients of their own"):
        tape.backward(grads={out: np.ones(2, dtype=np.float32)})
    second.grad = first.grad
    tape.backward(grads={out: np.ones(2, dtype=np.float32)})
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.array([2.0, 3.0]) ** 3)


@pytest.mark.cpu
def test_two_wrappers_of_one_memory_share_the_only_gradient() -> None:
    memory = np.zeros(2, dtype=np.float32)
    x = wp.array([2.0, 3.0], dtype=float, requires_grad=True)
    first = wp.array(memory, dtype=float, copy=False, requires_grad=True)
    second = wp.array(memory, dtype=float, copy=False)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square_of, dim=2, inputs=[x, first])
        wp.launch(square_of, dim=2, inputs=[second, out])
    tape.backward(grads={out: np.ones(2, dtype=np.float32)})
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.array([2.0, 3.0]) ** 3)
    assert not second.requires_grad


@wp.kernel
def square_of(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = a[i] * a[i]
