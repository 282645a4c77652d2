"""Kernels that overwrite what their gradient needs, on compiled code, against differences and closed forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.autograd.checking import check_gradients

import warp as wp
from warp._src.launch.program import executor
from warp.recording import recording

Float = wp.float64
Floats = wp.array(dtype=wp.float64)
Ints = wp.array(dtype=wp.int32)

X = np.array([0.71, 1.13, -0.94, 0.43, 1.21, 0.58])
Y = np.array([0.35, -0.62, 1.07, 0.81, -1.15, 0.27])


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    before = executor().workers
    executor().set_workers(request.param)
    yield request.param
    executor().set_workers(before)


# -- one launch over two arrays, against differences ---------------------------------------------------------


@wp.kernel
def product(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    y[t] *= x[t]


@wp.kernel
def quotient(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    x[t] /= y[t]


@wp.kernel
def own_product(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    x[t] *= x[t] + y[t]


@wp.kernel
def squared_twice(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    x[t] = x[t] * x[t]
    y[t] = wp.sin(x[t])
    x[t] = x[t] * x[t]


@wp.kernel
def swapped(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    x[t], y[t] = y[t] * y[t], wp.sin(x[t])


@wp.kernel
def swapped_with_next(x: Floats, y: Floats, n: Ints):
    """Threads that meet: each element wanders to the end."""
    t = wp.tid()
    if t < 5:
        y[t] = x[t] * x[t + 1]
        x[t], x[t + 1] = x[t + 1], x[t]


@wp.kernel
def two_writers(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    x[t % 2] = wp.sin(x[t % 2]) * y[t]


@wp.kernel
def powers(x: Floats, y: Floats, n: Ints):
    """A dynamic loop, with a branch and a break that look at what it overwrites."""
    t = wp.tid()
    for k in range(n[t]):
        if x[t] > 1.5:
            break
        x[t] *= x[t] + Float(0.5)
        if k % 2 == 1:
            y[t] = y[t] * x[t] + wp.sin(y[t])


@wp.kernel
def newton(x: Floats, y: Floats, n: Ints):
    """A while loop that changes its array until it is done."""
    t = wp.tid()
    change = Float(1.0)
    count = 0
    while change > Float(1.0e-3) and count < 20:
        before = x[t]
        x[t] = Float(0.5) * (x[t] + (y[t] * y[t] + Float(1.0)) / x[t])
        change = wp.abs(x[t] - before)
        count += 1


@wp.kernel
def nested_scratch(x: Floats, y: Floats, n: Ints):
    """Loops of different lengths over scratch memory that all threads use."""
    t = wp.tid()
    for j in range(n[t]):
        for k in range(j):
            y[k] = wp.sin(y[k] * x[t]) + x[k]
        x[j % 6] *= y[j % 6]


@wp.kernel
def counters(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    n[t] += 1
    y[n[t] % 6] = x[t] * x[t]
    n[t] *= 2
    y[n[t] % 6] *= x[t]


@wp.kernel
def tickets(x: Floats, y: Floats, n: Ints):
    """An index from a counter, several times in each thread."""
    t = wp.tid()
    for k in range(3):
        ticket = wp.atomic_add(n, 0, 1) % 6
        y[ticket] = y[ticket] * x[t] + wp.sin(x[ticket])


@wp.kernel
def sums(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    before = wp.atomic_add(y, 0, x[t] * x[t])
    after = wp.atomic_sub(y, 1, before * x[t])
    x[t] = before * after


@wp.kernel
def exchanges(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    before = wp.atomic_exch(y, t % 2, wp.sin(x[t]))
    x[t] = before * before


@wp.kernel
def swaps_if_equal(x: Floats, y: Floats, n: Ints):
    """Threads 0, 2 and 4 find what they expect."""
    t = wp.tid()
    expected = y[0]
    if t % 2 == 1:
        expected = Float(7.0)
    before = wp.atomic_cas(y, 0, expected, x[t] * x[t])
    x[t] *= before


@wp.kernel
def claims(x: Floats, y: Floats, n: Ints):
    """An integer compare-and-swap decides who writes."""
    t = wp.tid()
    if wp.atomic_cas(n, t % 3, n[t % 3], -1) != -1:
        y[t % 3] = x[t] * y[t % 3]
    n[t % 3] = 5


@wp.kernel
def extremes(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    highest = wp.atomic_max(y, 0, x[t] * x[t])
    lowest = wp.atomic_min(y, 1, x[t] * highest)
    y[0] *= Float(0.9)
    x[t] = highest * lowest


@wp.func
def grown(values: Floats, at: int):
    values[at] = values[at] * values[at] + Float(0.3)
    return wp.sin(values[at])


@wp.kernel
def by_function(x: Floats, y: Floats, n: Ints):
    t = wp.tid()
    for _k in range(2):
        y[t] *= grown(x, t)
    y[(t + 1) % 6] *= grown(x, (t + 1) % 6)


ON_TWO_ARRAYS = (
    product,
    quotient,
    own_product,
    squared_twice,
    swapped,
    swapped_with_next,
    two_writers,
    powers,
    newton,
    nested_scratch,
    counters,
    tickets,
    sums,
    exchanges,
    swaps_if_equal,
    claims,
    extremes,
    by_function,
)


def on_two_arrays(kernel: wp.Kernel) -> Callable[[wp.array, wp.array], list[wp.array]]:
    def run(x: wp.array, y: wp.array) -> list[wp.array]:
        wp.launch(kernel, dim=6, inputs=[x, y, wp.array([3, 0, 2, 5, 1, 4], dtype=wp.int32)])
        return [x, y]

    return run


RACES = (
    swapped_with_next,
    two_writers,
    nested_scratch,
    counters,
    tickets,
    sums,
    exchanges,
    swaps_if_equal,
    claims,
    extremes,
    by_function,
)
"""Kernels whose work items meet: they have a gradient where they run in order."""


def in_order(kernels: Iterable[wp.Kernel]) -> list[Any]:
    return [pytest.param(k, marks=pytest.mark.cpu if k in RACES else (), id=k.key) for k in kernels]


@pytest.mark.parametrize("kernel", in_order(ON_TWO_ARRAYS))
def test_overwritten_values(kernel: wp.Kernel) -> None:
    check_gradients(on_two_arrays(kernel), np.abs(X) if kernel is newton else X, Y)


@pytest.mark.parametrize("kernel", in_order([product, own_product, swapped_with_next, exchanges, tickets]))
def test_several_launches_in_a_row(kernel: wp.Kernel) -> None:
    """Each launch overwrites what the one before needs, and keeps a record of its own."""

    def run(x: wp.array, y: wp.array) -> list[wp.array]:
        for _ in range(3):
            on_two_arrays(kernel)(x, y)
        return [x, y]

    check_gradients(run, 0.8 * X, 0.8 * Y, rtol=1e-6)


# -- overlapping arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", in_order([product, own_product, squared_twice, swapped, powers, sums]))
def test_an_array_passed_twice(kernel: wp.Kernel) -> None:
    check_gradients(lambda x: on_two_arrays(kernel)(x, x)[:1], X)


@pytest.mark.cpu
@pytest.mark.parametrize("kernel", [product, own_product, squared_twice, swapped, powers, tickets], ids=lambda k: k.key)
def test_overlapping_views(kernel: wp.Kernel) -> None:
    def run(x: wp.array) -> wp.array:
        on_two_arrays(kernel)(x[:6], x[2:8])
        return x

    check_gradients(run, np.concatenate([X, Y[:2]]))


# -- closed forms --------------------------------------------------------------------------------------------


@wp.kernel
def polynomial(x: wp.array(dtype=float)):
    tid = wp.tid()
    x[tid] = x[tid] ** 2.0 + 3.0 * x[tid] + 1.0


def test_a_polynomial_in_place() -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(polynomial, x.shape, inputs=[x])
    tape.backward(grads={x: wp.ones_like(x)})
    assert (str(x), str(x.grad)) == ("[ 5. 11. 19.]", "[5. 7. 9.]")


@wp.kernel
def roots(counter: wp.array(dtype=int), given: wp.array(dtype=float), output: wp.array(dtype=float)):
    idx = wp.atomic_add(counter, 0, 1)
    output[idx] = wp.sqrt(given[idx])


def test_an_index_from_an_atomic_needs_no_replay_function() -> None:
    given = wp.array(np.arange(1, 9), dtype=wp.float32, requires_grad=True)
    counter, output = wp.zeros(1, dtype=int), wp.zeros(8, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(roots, 8, inputs=[counter, given], outputs=[output])
    tape.backward(grads={output: wp.array(np.ones(8), dtype=wp.float32)})
    assert counter.numpy().tolist() == [8]
    np.testing.assert_allclose(given.grad.numpy(), 0.5 / np.sqrt(np.arange(1, 9)), rtol=1e-6)
    assert given.grad.numpy()[:2].tolist() == [0.5, np.float32(0.35355338)]


@wp.kernel
def highest(x: Floats, best: Floats):
    wp.atomic_max(best, 0, x[wp.tid()])


@wp.kernel
def highest_then_scaled(x: Floats, best: Floats):
    t = wp.tid()
    before = wp.atomic_max(best, 0, x[t])
    if before > Float(100.0):
        best[0] = Float(0.0)


@pytest.mark.parametrize(
    "kernel",
    [highest, pytest.param(highest_then_scaled, marks=pytest.mark.cpu)],
    ids=["highest", "highest_then_scaled"],
)
@pytest.mark.parametrize("start", [0.0, 0.9])
def test_a_tie_has_exactly_one_winner(kernel: wp.Kernel, start: float) -> None:
    x = wp.array([0.5, 0.9, 0.1, 0.9, 0.9], dtype=wp.float64, requires_grad=True)
    best = wp.full(1, start, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, 5, inputs=[x, best])
    best.grad.fill_(1.0)
    tape.backward()
    assert sorted([*x.grad.numpy(), *best.grad.numpy()]) == [0, 0, 0, 0, 0, 1]


def test_no_threads() -> None:
    x = wp.array(X, dtype=wp.float64, requires_grad=True)
    n = wp.zeros(6, dtype=wp.int32)
    with wp.Tape() as tape:
        wp.launch(product, dim=0, inputs=[x, x, n])
        wp.launch(powers, dim=0, inputs=[x, x, n])
    x.grad.fill_(2.0)
    tape.backward()
    assert x.grad.numpy().tolist() == [2.0] * 6


# -- several workers -----------------------------------------------------------------------------------------

SIZE = 40_000


@wp.kernel
def many_cubes(x: Floats, y: Floats):
    t = wp.tid()
    x[t] *= x[t] * x[t]
    y[t] *= x[t]


@wp.kernel
def many_powers(x: Floats, y: Floats):
    """x^2 where t is even, x^4 where it is odd, by way of a stream."""
    t = wp.tid()
    for _k in range(t % 2 + 1):
        x[t] *= x[t]
    y[t] *= x[t]


@wp.kernel
def many_tickets(x: Floats, y: Floats, counter: Ints):
    at = wp.atomic_add(counter, 0, 1)
    y[at] *= x[at] * x[at]


def gradients(kernel: wp.Kernel, *others: wp.array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Give x and y before the launch, and their gradients for seeds of one."""
    x, y = np.random.default_rng(1).uniform(0.5, 1.5, (2, SIZE))
    arrays = [wp.array(values, dtype=wp.float64, requires_grad=True) for values in (x, y)]
    with wp.Tape() as tape:
        wp.launch(kernel, SIZE, inputs=[*arrays, *others])
    for array in arrays:
        array.grad.fill_(1.0)
    tape.backward()
    return x, y, arrays[0].grad.numpy(), arrays[1].grad.numpy()


def test_cubes_on_several_workers(workers: int) -> None:
    x, y, by_x, by_y = gradients(many_cubes)
    np.testing.assert_allclose(by_x, 3 * x**2 * (1 + y), rtol=1e-13)
    np.testing.assert_allclose(by_y, x**3, rtol=1e-13)


def test_powers_on_several_workers(workers: int) -> None:
    x, y, by_x, by_y = gradients(many_powers)
    exponent = np.where(np.arange(SIZE) % 2 == 0, 2, 4)
    np.testing.assert_allclose(by_x, exponent * x ** (exponent - 1) * (1 + y), rtol=1e-13)
    np.testing.assert_allclose(by_y, x**exponent, rtol=1e-13)


def test_tickets_on_several_workers(workers: int) -> None:
    x, y, by_x, by_y = gradients(many_tickets, wp.zeros(1, dtype=wp.int32))
    np.testing.assert_allclose(by_x, 1 + 2 * x * y, rtol=1e-13)
    np.testing.assert_allclose(by_y, x**2, rtol=1e-13)


# -- what is kept --------------------------------------------------------------------------------------------


@wp.kernel
def doubled(x: Floats, y: Floats):
    t = wp.tid()
    x[t] = Float(2.0) * x[t]
    y[t] += x[t] * Float(3.0)
    y[t] -= x[t]


class Kept:
    """A recorder that counts the bytes of each launch's record."""

    def __init__(self) -> None:
        self.bytes: list[int] = []

    def about_to_write(self, arrays: Any) -> None: ...

    def record(self, event: Any) -> None:
        self.bytes.append(0 if event._record is None else event._record.nbytes)

    def begin_scope(self, name: str, metadata: Any = None) -> None: ...

    def end_scope(self) -> None: ...


def kept_bytes(kernel: wp.Kernel, *others: wp.array) -> list[int]:
    x, y = (wp.array(values, dtype=wp.float64, requires_grad=True) for values in (X, Y))
    kept = Kept()
    with recording(kept):
        wp.launch(kernel, 6, inputs=[x, y, *others])
    return kept.bytes


@pytest.mark.cpu
def test_memory_of_a_launch() -> None:
    n = wp.array([3, 0, 2, 5, 1, 4], dtype=wp.int32)
    assert kept_bytes(doubled) == [0]
    assert kept_bytes(product, n) == [8 * 6]  # one float64 for each thread
    assert kept_bytes(many_powers) == [(8 + 8) * 6 + 9 * 8]  # y, where its stream starts, and nine values of x


def test_backward_twice_adds_twice_as_much() -> None:
    x, y = (wp.array(values, dtype=wp.float64, requires_grad=True) for values in (X, Y))
    z = wp.zeros(6, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(z, y)
        wp.launch(powers, 6, inputs=[z, z, wp.full(6, 2, dtype=wp.int32)])
        wp.launch(product, 6, inputs=[x, z, wp.zeros(6, dtype=wp.int32)])
    after = z.numpy().copy()
    tape.backward(grads={z: wp.ones(6, dtype=wp.float64)})
    once = [array.grad.numpy().copy() for array in (x, y)]
    tape.backward(grads={z: wp.ones(6, dtype=wp.float64)})
    for array, expected in zip((x, y), once, strict=True):
        np.testing.assert_allclose(array.grad.numpy(), 2 * expected, rtol=1e-13)
    np.testing.assert_array_equal(z.numpy(), after)


def test_a_reusable_launch_inside_a_tape_keeps_a_record_each_time() -> None:
    def run(x: wp.array, y: wp.array) -> list[wp.array]:
        command = wp.launch(own_product, dim=6, inputs=[x, y, wp.zeros(6, dtype=wp.int32)], record_cmd=True)
        for _ in range(3):
            command.launch()
        return [x, y]

    check_gradients(run, 0.7 * X, 0.7 * Y, rtol=1e-6)
