"""Values that later operations of a tape overwrite: kept in part, shared, limited, put back."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.elementwise import double, square, vector

import warp as wp
from warp.errors import ArgumentError, AutogradError, LaunchError, WarpWarning

pytestmark = pytest.mark.cpu

Step = tuple[str, slice, slice]


@wp.kernel
def refuse(x: wp.array(dtype=float)):
    i = wp.tid()
    assert x[i] < 0.0
    x[i] = 1.0


def zeros_like(x: wp.array) -> wp.array:
    return wp.zeros_like(x)


def test_overwritten_values_are_kept_once_for_all_readers() -> None:
    a, c = vector(1, 2), vector(-1, -2)
    b, d = zeros_like(a), zeros_like(a)
    with wp.Tape() as tape:
        square(a, b)
        square(a, d)
        double(c, a)
    assert tape.snapshot_bytes == 8
    for calls in (1, 2):
        tape.backward(grads={b: vector(1, 1), d: vector(10, 10)})
        np.testing.assert_allclose(a.grad.numpy(), calls * np.array([22, 44]))
        np.testing.assert_array_equal(a.numpy(), [-2, -4])
    tape.reset()
    assert tape.snapshot_bytes == 0


def test_linear_readers_need_no_copy() -> None:
    a, c = vector(1, 2), vector(-1, -2)
    b = zeros_like(a)
    with wp.Tape() as tape:
        double(a, b)
        double(c, a)
        a.zero_()
    assert tape.snapshot_bytes == 0
    tape.backward(grads={b: vector(1, 1)})
    np.testing.assert_allclose(a.grad.numpy(), [2, 2])


def test_no_copy_where_no_gradient_can_pass() -> None:
    a, c = vector(1, 2, requires_grad=False), vector(-1, -2, requires_grad=False)
    b = zeros_like(a)
    with wp.Tape() as tape:
        square(a, b)
        double(c, a)
    assert tape.snapshot_bytes == 0


@pytest.mark.parametrize(
    "overwrite",
    [
        lambda a: a.fill_(7.0),
        lambda a: a.zero_(),
        lambda a: a.assign([7.0, 8.0]),
        lambda a: wp.copy(a, vector(7, 8)),
        lambda a: a.__setitem__(slice(0, 1), 3.0),
        lambda a: wp.copy(a, a, dest_offset=1, src_offset=0, count=1),
    ],
)
def test_every_recorded_write_keeps_what_it_overwrites(overwrite: Callable[[wp.array], object]) -> None:
    x = vector(1, 2)
    b = zeros_like(x)
    with wp.Tape() as tape:
        a = wp.clone(x)
        square(a, b)
        overwrite(a)
    after = a.numpy().copy()
    tape.backward(grads={b: vector(1, 1)})
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])
    np.testing.assert_array_equal(a.numpy(), after)


def test_only_what_is_overwritten_is_copied() -> None:
    a, c = vector(*range(100)), vector(-1)
    b = zeros_like(a)
    with wp.Tape() as tape:
        square(a, b)
        for index in range(0, 50, 5):
            double(c, a[index : index + 1])
            a[index : index + 1].zero_()
    assert tape.snapshot_bytes == 10 * 4
    tape.backward(grads={b: wp.ones(100)})
    np.testing.assert_allclose(a.grad.numpy(), 2.0 * np.arange(100))


@pytest.mark.parametrize("repeat", [1, 3])
def test_columns_are_copied_apart(repeat: int) -> None:
    m = wp.array(np.arange(6.0).reshape(3, 2), dtype=float, requires_grad=True)
    o, p = wp.zeros((3, 2), requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        square(m, o)
        square(m[:, 1], p)
        for _ in range(repeat):
            m[:, 1].fill_(9.0)
    assert tape.snapshot_bytes == 12
    tape.backward(grads={o: wp.ones((3, 2)), p: wp.ones(3)})
    np.testing.assert_allclose(m.grad.numpy(), [[0, 4], [4, 12], [8, 20]])


def test_a_trajectory_in_slices_is_linear_in_memory() -> None:
    steps = 50
    trajectory = wp.zeros((steps + 1, 8), requires_grad=True)
    trajectory.fill_(0.9)
    with wp.Tape() as tape:
        for k in range(steps):
            square(trajectory[k], trajectory[k + 1])
    assert tape.snapshot_bytes == 0
    state, other = vector(*[0.5] * 8), vector(*[0.0] * 8)
    with wp.Tape() as tape:
        for _ in range(steps):
            square(state, other)
            double(other, state)
    assert tape.snapshot_bytes == steps * 32


@wp.kernel
def advance(trajectory: wp.array2d(dtype=wp.float64), k: int):
    i = wp.tid()
    x = trajectory[k, i]
    trajectory[k + 1, i] = x + 0.1 * x * wp.sin(x)


def test_a_trajectory_in_one_array_is_linear_in_memory() -> None:
    steps, size = 60, 16
    trajectory = wp.zeros((steps + 1, size), dtype=wp.float64, requires_grad=True)
    start = np.linspace(-2.0, 2.0, size)
    trajectory[0].assign(start)
    with wp.Tape() as tape:
        for k in range(steps):
            wp.launch(advance, dim=size, inputs=[trajectory, k])
    assert tape.snapshot_bytes <= 3 * trajectory.capacity
    seed = np.zeros((steps + 1, size))
    seed[-1] = 1.0
    tape.backward(grads={trajectory: wp.array(seed, dtype=wp.float64)})
    x, slope = start, np.ones(size)
    for _ in range(steps):
        slope = slope * (1 + 0.1 * np.sin(x) + 0.1 * x * np.cos(x))
        x = x + 0.1 * x * np.sin(x)
    np.testing.assert_allclose(trajectory.grad.numpy()[0], slope, rtol=1e-12)
    np.testing.assert_allclose(trajectory.numpy()[-1], x, rtol=1e-12)


@wp.kernel
def put(x: wp.array(dtype=wp.float64), places: wp.array(dtype=int), value: wp.float64):
    x[places[wp.tid()]] = value


@pytest.mark.parametrize("seed", range(8))
def test_operations_that_change_little_leave_the_rest_to_be_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 400
    start = rng.uniform(-1.0, 1.0, size)
    x = wp.array(start, dtype=wp.float64, requires_grad=True)
    seen, squares, slopes = start.copy(), [], np.zeros(size)
    is_first = np.ones(size, bool)
    with wp.Tape() as tape:
        for _ in range(12):
            if rng.random() < 0.4:
                y = wp.zeros(size, dtype=wp.float64, requires_grad=True)
                square(x, y)
                squares.append(y)
                slopes += np.where(is_first, 2 * seen, 0)
            places = rng.choice(size, rng.choice([1, 5, 300, size]), replace=False)
            # Some of what is written is what was there, bit for bit or not.
            value = float(rng.choice([seen[places[0]], 0.0, -0.0, 3.0]))
            wp.launch(put, dim=len(places), inputs=[x, wp.array(places, dtype=int), value])
            seen[places] = value
            is_first[places] = False
    ones = wp.ones(size, dtype=wp.float64)
    if squares:
        for calls in (1, 2):
            tape.backward(grads=dict.fromkeys(squares, ones))
            np.testing.assert_allclose(x.grad.numpy(), calls * slopes, rtol=1e-12)
            np.testing.assert_array_equal(x.numpy(), seen)


def test_off_tape_changes_after_the_overwrite_do_no_harm() -> None:
    x = vector(3)
    force, y, z = zeros_like(x), zeros_like(x), zeros_like(x)
    with wp.Tape() as tape:
        square(x, force)
        square(force, y)
        square(y, force)
        double(force, z)
    force.zero_()
    tape.backward(z)
    np.testing.assert_allclose(x.grad.numpy(), [2 * 8 * 3.0**7])
    assert force.numpy()[0] == 0


def test_values_changed_off_the_tape_before_they_were_kept_are_an_error() -> None:
    x = vector(3)
    y, z = zeros_like(x), zeros_like(x)
    with wp.Tape() as tape:
        square(x, y)
        square(y, z)
    y.fill_(100.0)
    with tape:
        double(x, y)
    with pytest.raises(AutogradError, match="off the tape"):
        tape.backward(z)


def test_repeating_an_operation_whose_values_were_overwritten_is_an_error() -> None:
    x, c = vector(3), vector(1)
    a, b = zeros_like(x), zeros_like(x)

    def forward() -> None:
        double(x, a)
        square(a, b)
        double(c, a)

    with wp.Tape() as tape:
        forward()
    tape.backward(b)
    np.testing.assert_allclose(x.grad.numpy(), [24])
    x.numpy()[...] = 5.0
    forward()
    with pytest.raises(AutogradError, match=r"was run again off the tape.*Record a new tape"):
        tape.backward(b)


def test_a_write_that_was_not_announced_is_an_error_if_it_matters() -> None:
    x = vector(3)
    y, z, other = zeros_like(x), zeros_like(x), zeros_like(x)
    with wp.Tape() as tape:
        double(x, y)
        square(y, z)
        y.numpy()[...] = 0
        y.mark_write()
        tape.record_func(lambda: None, [y])
        double(x, y)
        double(y, other)
    with pytest.raises(AutogradError, match="overwritten later on the tape by '<lambda>'"):
        tape.backward(z)
    tape.backward(other)


def test_function_that_needs_an_array() -> None:
    x = vector(3)
    y = zeros_like(x)

    def adjoint() -> None:
        x.grad.numpy()[...] += 2 * x.numpy() * y.grad.numpy()
        y.grad.numpy()[...] = 0

    with wp.Tape() as tape:
        y.numpy()[...] = x.numpy() ** 2
        x.mark_read()
        y.mark_write()
        tape.record_func(adjoint, [x, y])
        x.fill_(100.0)
    tape.backward(y)
    assert x.numpy()[0] == 100.0
    assert x.grad.numpy()[0] == 6.0


def test_limit() -> None:
    a, c = vector(1, 2), vector(-1, -2)
    b = zeros_like(a)
    with wp.Tape(snapshot_limit=7) as tape:
        square(a, b)
        with pytest.raises(AutogradError, match=r"array of shape \(2,\).*8 bytes.*snapshot_limit=7.*checkpointed_loop"):
            double(c, a)
        np.testing.assert_array_equal(a.numpy(), [1, 2])
    tape.backward(grads={b: vector(1, 1)})
    np.testing.assert_allclose(a.grad.numpy(), [2, 4])
    with pytest.raises(ArgumentError, match="snapshot_limit"):
        wp.Tape(snapshot_limit=-1)
    with pytest.raises(ArgumentError, match="overwrite"):
        wp.Tape(overwrite="never")


def test_errors_and_ignoring_are_still_there() -> None:
    for overwrite in ("error", "ignore"):
        a, c = vector(1, 2), vector(-1, -2)
        b = zeros_like(a)
        with wp.Tape(overwrite) as tape:
            square(a, b)
            double(c, a)
        assert tape.snapshot_bytes == 0
        if overwrite == "error":
            with pytest.raises(AutogradError, match="overwritten later"):
                tape.backward(grads={b: vector(1, 1)})
        else:
            tape.backward(grads={b: vector(1, 1)})
            np.testing.assert_allclose(a.grad.numpy(), [-4, -8])


def test_memory_is_put_back_after_a_failing_adjoint() -> None:
    a = vector(1, 2)
    b = zeros_like(a)

    def fail() -> None:
        assert a.numpy()[0] == 1.0
        raise KeyError("stop")

    with wp.Tape() as tape:
        tape.record_func(fail, [])
        square(a, b)
        a.zero_()
    with pytest.raises(KeyError):
        tape.backward(grads={b: vector(1, 1)})
    np.testing.assert_array_equal(a.numpy(), [0, 0])


def test_gradients_on_their_way_do_not_survive_a_failing_adjoint() -> None:
    a = vector(1, 2)
    b, c = zeros_like(a), zeros_like(a)
    c.grad.fill_(5.0)

    def fail() -> None:
        raise KeyError("stop")

    with wp.Tape() as tape:
        square(a, b)
        tape.record_func(fail, [])
        double(b, c)
    for _ in range(2):
        with pytest.raises(KeyError):
            tape.backward(grads={c: vector(1, 1)})
        np.testing.assert_array_equal(a.grad.numpy(), [0, 0])
        np.testing.assert_array_equal(b.grad.numpy(), [0, 0])
        np.testing.assert_array_equal(c.grad.numpy(), [5, 5])


def test_a_gradient_that_the_pass_changes_is_no_value_to_rely_on() -> None:
    a = vector(1, 2)
    b, c = zeros_like(a), zeros_like(a)
    a.grad.fill_(3.0)
    with wp.Tape() as tape:
        square(a, b)
        square(a.grad, c)
    with pytest.raises(AutogradError, match=r"gradient of the .* changes it"):
        tape.backward(grads={b: vector(1, 1), c: vector(1, 1)})
    np.testing.assert_array_equal(a.grad.numpy(), [3, 3])
    with wp.Tape() as tape:
        square(a, b)
        square(wp.clone(a.grad), c)
    tape.backward(grads={b: vector(1, 1), c: vector(1, 1)})
    np.testing.assert_array_equal(a.grad.numpy(), [5, 7])


def test_a_refused_operation_leaves_the_tape_usable() -> None:
    a = vector(1, 2)
    b = zeros_like(a)
    with wp.Tape() as tape:
        square(a, b)
        with pytest.raises(TypeError):
            a.assign(3.0)
    tape.backward(grads={b: vector(1, 1)})
    np.testing.assert_allclose(a.grad.numpy(), [2, 4])


def test_an_operation_that_failed_announces_nothing_for_the_next_one() -> None:
    a = vector(1, 2)
    b, other = zeros_like(a), zeros_like(a)
    with wp.Tape() as tape:
        square(a, b)
        with pytest.raises(LaunchError):
            wp.launch(refuse, dim=2, inputs=[a])
        wp.launch(refuse, dim=0, inputs=[other])
        a.numpy()[...] = 5.0
        a.mark_write()
        tape.record_func(lambda: None, [a])
    with pytest.raises(AutogradError, match="overwritten later on the tape by '<lambda>'"):
        tape.backward(grads={b: vector(1, 1)})


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_tape_keeps_its_own_values_of_one_array(count: int) -> None:
    a, c = vector(1, 2), vector(-1, -2)
    results = [zeros_like(a) for _ in range(count)]
    tapes = [wp.Tape() for _ in range(count + 1)]
    for scale, (tape, b) in enumerate(zip(tapes, results, strict=False), 1):
        with tape:
            square(a, b)
            a.assign([scale + 1.0, scale + 2.0])
    with tapes[-1]:
        double(c, a)
    for scale, (tape, b) in enumerate(zip(tapes, results, strict=False), 1):
        a.grad.zero_()
        tape.backward(grads={b: vector(1, 1)})
        np.testing.assert_allclose(a.grad.numpy(), [2 * scale, 2 * (scale + 1)])
    c.grad.zero_()
    tapes[-1].backward(grads={a: vector(1, 1)})
    np.testing.assert_allclose(c.grad.numpy(), [2, 2])


def _random_slice(rng: random.Random, size: int, extent: int) -> slice:
    step = rng.choice([1, 1, 1, 2, 3])
    start = rng.randrange(size - (extent - 1) * step)
    return slice(start, start + (extent - 1) * step + 1, step)


def _random_steps(rng: random.Random, size: int) -> list[Step]:
    steps: list[Step] = []
    while len(steps) < 12:
        extent = rng.randint(1, 4)
        source, target = (_random_slice(rng, size, extent) for _ in range(2))
        kind = rng.choice(["square", "square", "double", "add", "copy", "zero"])
        is_apart = not set(range(size)[source]) & set(range(size)[target])
        if is_apart or kind in ("copy", "zero"):
            steps.append((kind, source, target))
    return steps


def _run(steps: list[Step], memory: wp.array) -> None:
    for kind, source, target in steps:
        x, y = memory[source], memory[target]
        if kind == "copy":
            wp.copy(y, x)
        elif kind == "zero":
            y.zero_()
        else:
            {"square": square, "double": double}.get(kind, square)(x, y, adds=kind == "add")


def _expected_gradient(steps: list[Step], values: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """Multiply the seed with the Jacobian of every step on all of the memory."""
    jacobian = np.eye(len(values))
    values = values.copy()
    for kind, source, target in steps:
        local = np.eye(len(values))
        x = values[source].copy()
        rows, columns = range(len(values))[target], range(len(values))[source]
        slope = {"square": 2 * x, "add": 2 * x, "double": 2 + 0 * x, "copy": 1 + 0 * x, "zero": 0 * x}[kind]
        result = {"square": x * x, "add": x * x, "double": 2 * x, "copy": x, "zero": 0 * x}[kind]
        if kind == "add":
            values[target] += result
        else:
            values[target] = result
            local[list(rows)] = 0
        for row, column, value in zip(rows, columns, slope, strict=True):
            local[row, column] += value
        jacobian = local @ jacobian
    return np.asarray(seed @ jacobian)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_in_one_memory(seed: int) -> None:
    rng = random.Random(seed)
    size = 10
    steps = _random_steps(rng, size)
    start = np.array([rng.uniform(0.3, 1.2) for _ in range(size)])
    weights = np.array([rng.uniform(-1, 1) for _ in range(size)])
    memory = wp.array(start, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        _run(steps, memory)
    final = memory.numpy().copy()
    expected = _expected_gradient(steps, start, weights)
    for calls in (1, 2):
        before = memory.grad.numpy().copy()
        tape.backward(grads={memory: wp.array(weights, dtype=wp.float64)})
        np.testing.assert_allclose(memory.grad.numpy() - before, expected, rtol=1e-12, atol=1e-12, err_msg=str(calls))
        np.testing.assert_array_equal(memory.numpy(), final)


def test_leaf_is_read_at_its_present_value_and_reported_once() -> None:
    x = vector(3)
    y = zeros_like(x)
    with wp.Tape() as tape:
        square(x, y)
    x.numpy()[...] = 5.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape.backward(y)
    np.testing.assert_allclose(x.grad.numpy(), [10])
    x.fill_(6.0)
    with pytest.warns(WarpWarning, match="modified off the tape"):
        tape.backward(y)
    np.testing.assert_allclose(x.grad.numpy(), [22])
