"""The tape: seeds, accumulation, gradients by array, custom functions, scopes, threads, and optimiser loops."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest

import warp as wp
from warp.errors import AutogradError

Floats = wp.array(dtype=wp.float64)


@wp.kernel
def square(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = x[t] * x[t]


@wp.kernel
def total(x: Floats, sum: Floats):
    wp.atomic_add(sum, 0, x[wp.tid()])


@wp.kernel
def added_square(x: Floats, y: Floats):
    t = wp.tid()
    y[t] += x[t] * x[t]
    wp.atomic_add(y, t, x[t])


def floats(values: object) -> wp.array:
    return wp.array(values, dtype=wp.float64, requires_grad=True)


def zeros(size: int) -> wp.array:
    return wp.zeros(size, dtype=wp.float64, requires_grad=True)


def record_sum_of_squares(x: wp.array) -> tuple[wp.Tape, wp.array, wp.array]:
    squares, loss = zeros(len(x)), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, dim=len(x), inputs=[x], outputs=[squares])
        wp.launch(total, dim=len(x), inputs=[squares], outputs=[loss])
    return tape, squares, loss


def test_backward_from_a_loss() -> None:
    x = floats([1.0, -2.0, 3.0])
    tape, _, loss = record_sum_of_squares(x)
    tape.backward(loss)
    assert loss.numpy()[0] == 14.0
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, -4.0, 6.0])


def test_keyword_of_the_loss() -> None:
    x = floats([3.0])
    tape, _, loss = record_sum_of_squares(x)
    tape.backward(loss=loss)
    np.testing.assert_array_equal(x.grad.numpy(), [6.0])


def test_loss_of_several_elements_is_an_error() -> None:
    x = floats([1.0, 2.0])
    tape, squares, _ = record_sum_of_squares(x)
    with pytest.raises(ValueError, match="element"):
        tape.backward(squares)


def test_second_backward_doubles_the_gradient_of_leaves() -> None:
    x = floats([1.0, -2.0, 3.0])
    once = 2.0 * (x.numpy() ** 2 + x.numpy()) * (2.0 * x.numpy() + 1.0)
    middle, out = zeros(3), zeros(3)
    seed = wp.ones(3, dtype=wp.float64)
    with wp.Tape() as tape:
        wp.launch(added_square, dim=3, inputs=[x], outputs=[middle])
        wp.launch(square, dim=3, inputs=[middle], outputs=[out])
    for times in (1.0, 2.0, 3.0):
        tape.backward(grads={out: seed})
        np.testing.assert_allclose(x.grad.numpy(), times * once, rtol=1e-14)
    np.testing.assert_array_equal(seed.numpy(), np.ones(3))


def test_zero_clears_every_gradient() -> None:
    x = floats([1.0, 2.0])
    tape, squares, loss = record_sum_of_squares(x)
    tape.backward(loss)
    tape.zero()
    for array in (x, squares, loss):
        np.testing.assert_array_equal(array.grad.numpy(), np.zeros(len(array)))
    tape.backward(loss)
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


def test_reset_forgets_the_launches() -> None:
    x = floats([1.0, 2.0])
    tape, _, loss = record_sum_of_squares(x)
    tape.backward(loss)
    tape.reset()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros(2))
    other = zeros(1)
    with tape:
        wp.launch(total, dim=2, inputs=[x], outputs=[other])
    tape.backward(other)
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(2))


def test_gradients_by_array() -> None:
    x = floats([1.0, 2.0])
    tape, _, loss = record_sum_of_squares(x)
    tape.backward(loss)
    np.testing.assert_array_equal(tape.gradients[x].numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(tape.get_adjoint(x).numpy(), [2.0, 4.0])
    assert tape.get_adjoint(wp.zeros(1, dtype=wp.float64)) is None


def test_seed_of_an_array_without_gradient() -> None:
    x = floats([1.0, 2.0])
    y = wp.zeros(2, dtype=wp.float64)
    with wp.Tape() as tape:
        wp.launch(square, dim=2, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.array([1.0, 10.0], dtype=wp.float64)})
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 40.0])


def test_seeds_of_two_outputs_add_up() -> None:
    x = floats([1.0, 2.0])
    first, second = zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, dim=2, inputs=[x], outputs=[first])
        wp.launch(square, dim=2, inputs=[first], outputs=[second])
    tape.backward(grads={first: floats([1.0, 1.0]), second: floats([0.0, 1.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0 + 4.0 * 8.0])


def test_gradients_that_were_there_stay_and_grow() -> None:
    x = floats([1.0, 2.0])
    x.grad.fill_(100.0)
    tape, _, loss = record_sum_of_squares(x)
    tape.backward(loss)
    np.testing.assert_array_equal(x.grad.numpy(), [102.0, 104.0])


def test_backward_leaves_values_as_they_were() -> None:
    x = floats([1.0, 2.0])
    tape, squares, loss = record_sum_of_squares(x)
    tape.backward(loss)
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])
    np.testing.assert_array_equal(squares.numpy(), [1.0, 4.0])
    assert loss.numpy()[0] == 5.0


def test_arguments_are_those_of_the_launch() -> None:
    x = floats([2.0])
    y = zeros(1)
    inputs = [x]
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=inputs, outputs=[y])
        inputs[0] = zeros(1)
    tape.backward(y)
    np.testing.assert_array_equal(x.grad.numpy(), [4.0])


def test_launch_without_recording() -> None:
    x = floats([2.0])
    y, z = zeros(1), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x], outputs=[y])
        wp.launch(square, dim=1, inputs=[x], outputs=[z], record_tape=False)
    tape.backward(grads={y: wp.ones(1, dtype=wp.float64), z: wp.ones(1, dtype=wp.float64)})
    np.testing.assert_array_equal(x.grad.numpy(), [4.0])


@pytest.mark.cpu
def test_recorded_functions_run_in_reverse_order() -> None:
    order = []
    x, y, z = floats([2.0]), zeros(1), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x], outputs=[y])
        z.numpy()[0] = 3.0 * y.numpy()[0]
        z.mark_write()

        def backward() -> None:
            order.append("function")
            y.grad.numpy()[0] += 3.0 * z.grad.numpy()[0]

        tape.record_func(lambda: order.append("first"), [])
        tape.record_func(backward, [y, z])
    tape.backward(z)
    assert order == ["function", "first"]
    np.testing.assert_array_equal(x.grad.numpy(), [12.0])
    tape.zero()
    assert z.grad.numpy()[0] == 0.0


def test_record_launch_by_hand() -> None:
    x, y = floats([3.0]), zeros(1)
    wp.launch(square, dim=1, inputs=[x], outputs=[y])
    tape = wp.Tape()
    tape.record_launch(square, 1, 0, [x], [y], wp.get_device())
    tape.backward(y)
    np.testing.assert_array_equal(x.grad.numpy(), [6.0])


def test_launches_recorded_by_hand_are_stale_when_their_inputs_change() -> None:
    x, y, z = floats([3.0]), zeros(1), zeros(1)
    pairs = ((x, y), (y, z))
    for source, target in pairs:
        wp.launch(square, dim=1, inputs=[source], outputs=[target])
    tape = wp.Tape()
    for source, target in pairs:
        tape.record_launch(square, 1, 0, [source], [target], wp.get_device())
    tape.backward(z)
    np.testing.assert_array_equal(x.grad.numpy(), [4.0 * 27.0])
    x.fill_(5.0)
    with pytest.raises(AutogradError, match="stale"):
        tape.backward(z)


def test_scopes_do_not_change_gradients() -> None:
    x, y, z = floats([3.0]), zeros(1), zeros(1)
    with wp.Tape() as tape:
        tape.record_scope_begin("outer")
        wp.launch(square, dim=1, inputs=[x], outputs=[y])
        with wp.ScopedTimer("inner", print=False):
            wp.launch(square, dim=1, inputs=[y], outputs=[z])
        tape.record_scope_end()
        tape.record_scope_begin("empty")
        tape.record_scope_end(remove_scope_if_empty=True)
    tape.backward(z)
    np.testing.assert_array_equal(x.grad.numpy(), [4.0 * 27.0])


def test_nested_tapes_are_an_error() -> None:
    with wp.Tape(), pytest.raises(RuntimeError), wp.Tape():
        pass
    x, y = floats([3.0]), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)
    np.testing.assert_array_equal(x.grad.numpy(), [6.0])


def test_tapes_of_threads_are_apart() -> None:
    barrier = threading.Barrier(2)
    gradients: dict[float, np.ndarray] = {}

    def work(value: float) -> None:
        x, y = floats([value]), zeros(1)
        with wp.Tape() as tape:
            barrier.wait()
            wp.launch(square, dim=1, inputs=[x], outputs=[y])
            barrier.wait()
        tape.backward(y)
        gradients[value] = x.grad.numpy().copy()

    threads = [threading.Thread(target=work, args=(value,)) for value in (2.0, 5.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60.0)
    np.testing.assert_array_equal(gradients[2.0], [4.0])
    np.testing.assert_array_equal(gradients[5.0], [10.0])


@wp.kernel
def descend(x: Floats, gradient: Floats, rate: wp.float64):
    t = wp.tid()
    x[t] = x[t] - rate * gradient[t]


def test_new_tape_in_every_step_of_an_optimiser() -> None:
    x = floats([1.0, -2.0, 3.0])
    for _ in range(20):
        tape, _, loss = record_sum_of_squares(x)
        tape.backward(loss)
        wp.launch(descend, dim=3, inputs=[x, x.grad, 0.25])
        tape.zero()
    np.testing.assert_allclose(x.numpy(), np.array([1.0, -2.0, 3.0]) * 0.5**20, rtol=1e-12)


def test_one_tape_for_all_steps_of_an_optimiser() -> None:
    x = floats([1.0, 2.0])
    loss = zeros(1)
    with wp.Tape() as tape:
        wp.launch(total, dim=2, inputs=[x], outputs=[loss])
    for _ in range(3):
        tape.backward(loss)
        x.assign(x.numpy() - 0.1 * x.grad.numpy())
        tape.zero()
    np.testing.assert_allclose(x.numpy(), [0.7, 1.7], rtol=1e-12)


def test_adjoint_launch_without_a_tape() -> None:
    x, y = floats([2.0, 3.0]), zeros(2)
    gradient, seed = wp.zeros(2, dtype=wp.float64), wp.array([1.0, 10.0], dtype=wp.float64)
    wp.launch(square, dim=2, inputs=[x], outputs=[y])
    wp.launch(square, dim=2, inputs=[x], outputs=[y], adj_inputs=[gradient], adj_outputs=[seed], adjoint=True)
    np.testing.assert_array_equal(gradient.numpy(), [4.0, 60.0])
    np.testing.assert_array_equal(seed.numpy(), [1.0, 10.0])


class TracingTape(wp.Tape):
    """A tape that notes whose gradients it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[wp.array] = []

    def get_adjoint(self, a: object) -> object:
        self.asked.append(a)
        return super().get_adjoint(a)


def test_subclass() -> None:
    x, y = floats([2.0]), zeros(1)
    with TracingTape() as tape:
        wp.launch(square, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)
    np.testing.assert_array_equal(x.grad.numpy(), [4.0])
    np.testing.assert_array_equal(tape.get_adjoint(x).numpy(), [4.0])
    assert tape.asked[-1] is x


def test_copies_by_the_constructor_carry_gradients() -> None:
    x, loss = floats([1.0, -2.0, 3.0, 4.0]), zeros(1)
    with wp.Tape() as tape:
        rows = wp.array(x, shape=(2, 2), requires_grad=True)
        odd = wp.array(rows[:, 1], requires_grad=True)
        stopped = wp.array(x)
        for part in (odd, rows[0], stopped[:2]):
            squares = zeros(2)
            wp.launch(square, dim=2, inputs=[part], outputs=[squares])
            wp.launch(total, dim=2, inputs=[squares], outputs=[loss])
    tape.backward(loss)
    np.testing.assert_array_equal(loss.numpy(), [4.0 + 16.0 + 2 * (1.0 + 4.0)])
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, -8.0, 0.0, 8.0])


def test_copies_by_the_copy_module() -> None:
    x, y = floats([1.0, -2.0]), zeros(2)
    with wp.Tape() as tape:
        deep, shallow = copy.deepcopy({"state": x})["state"], copy.copy(y)
        wp.launch(square, dim=2, inputs=[deep], outputs=[shallow])
    tape.backward(grads={y: np.ones(2)})
    np.testing.assert_array_equal(y.numpy(), [1.0, 4.0])
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, -4.0])
    twin = copy.deepcopy(x)
    twin.grad.fill_(7.0)
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, -4.0])
    np.testing.assert_array_equal(copy.deepcopy(x).grad.numpy(), [2.0, -4.0])


def test_a_backward_pass_is_no_part_of_another_tape() -> None:
    x = floats([1.0, -2.0])
    tape, _, loss = record_sum_of_squares(x)
    with wp.Tape(), pytest.warns(wp.errors.WarpWarning, match=r"another tape records.* wp\.autograd\.hvp") as found:
        tape.backward(loss)
    assert found[0].filename == __file__
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, -4.0])
    with tape:
        tape.backward(loss)
    strict = wp.Tape(strict=True)
    with strict:
        wp.launch(square, dim=2, inputs=[x], outputs=[zeros(2)])
    with wp.Tape(), pytest.raises(wp.errors.AutogradError, match="another tape records"):
        strict.backward()
