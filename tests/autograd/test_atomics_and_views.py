"""Gradients of accumulations into arrays, of views, and of arrays of vectors, matrices and structs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.autograd.checking import Values, array_of, check_gradients, weights_of

import warp as wp

Floats = wp.array(dtype=wp.float64)
Ints = wp.array(dtype=wp.int32)
Table = wp.array2d(dtype=wp.float64)

X = np.array([0.71, 1.13, -0.94, 0.43, 1.21, 0.58])


def run_on(kernel: wp.Kernel, size: int, *others: object) -> Callable[[wp.array], wp.array]:
    """Return a program: one thread per element of the input, into a float64 array of `size` zeros."""

    def run(x: wp.array) -> wp.array:
        out = wp.zeros(size, dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=x.shape[0], inputs=[x, *others], outputs=[out])
        return out

    return run


@wp.kernel
def scattered(x: Floats, bins: Ints, out: Floats):
    t = wp.tid()
    wp.atomic_add(out, bins[t], x[t] * x[t])
    wp.atomic_sub(out, 0, x[t] * x[0])
    out[bins[t]] += 0.5 * x[t]
    out[1] -= x[t] * x[t]


def test_additions_to_shared_elements() -> None:
    bins = np.array([2, 0, 2, 1, 2, 3], dtype=np.int32)
    values = check_gradients(run_on(scattered, 4, wp.array(bins, dtype=wp.int32)), X)[0]
    expected = np.zeros(4)
    np.add.at(expected, bins, X**2 + 0.5 * X)
    expected[:2] -= [np.sum(X * X[0]), np.sum(X**2)]
    np.testing.assert_allclose(values, expected, rtol=1e-13)


@wp.kernel
def extremes(x: Floats, lowest: Floats, out: Floats):
    t = wp.tid()
    wp.atomic_max(out, t % 2, x[t] * x[t])
    wp.atomic_min(lowest, 0, x[t] * 2.0)


def test_extremes_send_the_gradient_to_the_winner() -> None:
    def run(x: wp.array) -> tuple[wp.array, wp.array]:
        out = wp.zeros(2, dtype=wp.float64, requires_grad=True)
        lowest = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        wp.launch(extremes, dim=6, inputs=[x], outputs=[lowest, out])
        return out, lowest

    highest, lowest = check_gradients(run, X)
    np.testing.assert_allclose(highest, [1.21**2, 1.13**2], rtol=1e-14)
    np.testing.assert_allclose(lowest, [2.0 * -0.94], rtol=1e-14)


@wp.kernel
def largest(x: Floats, out: Floats):
    wp.atomic_max(out, 0, x[wp.tid()])


@pytest.mark.parametrize(("initial", "to_x", "to_initial"), [(0.0, 1.0, 0.0), (10.0, 0.0, 1.0)])
def test_initial_value_of_an_extreme(initial: float, to_x: float, to_initial: float) -> None:
    x = wp.array([1.0, 3.0, 2.0], dtype=wp.float64, requires_grad=True)
    start = wp.array([initial], dtype=wp.float64, requires_grad=True)
    out = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(out, start)
        wp.launch(largest, dim=3, inputs=[x], outputs=[out])
    tape.backward(out)
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, to_x, 0.0])
    np.testing.assert_array_equal(start.grad.numpy(), [to_initial])


def test_tie_of_an_extreme_has_one_winner() -> None:
    x = wp.array([2.0, 2.0, 1.0], dtype=wp.float64, requires_grad=True)
    out = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(largest, dim=3, inputs=[x], outputs=[out])
    tape.backward(out)
    np.testing.assert_array_equal(np.sort(x.grad.numpy()), [0.0, 0.0, 1.0])
    assert x.grad.numpy()[2] == 0.0


@wp.kernel
def falling(x: Floats, m: Floats, out: Floats):
    t = wp.tid()
    wp.atomic_min(m, 0, x[t])
    out[t] = wp.sin(wp.atomic_min(m, 0, x[t] - 1.0))


@wp.kernel
def rising(x: Floats, m: Floats, out: Floats):
    t = wp.tid()
    if x[t] > 0.0:
        wp.atomic_max(m, 0, x[t])
    out[t] = wp.sin(wp.atomic_max(m, 0, x[t] + 1.0))


@wp.kernel
def falling_below(x: Floats, m: Floats, out: Floats):
    t = wp.tid()
    wp.atomic_min(m, 0, x[t])
    out[t] = wp.sin(wp.atomic_add(m, 0, -0.25))


@pytest.mark.cpu
@pytest.mark.parametrize(("kernel", "sign"), [(falling, -1.0), (rising, 1.0), (falling_below, -1.0)])
def test_an_extreme_that_was_seen_before_it_was_beaten(kernel: wp.Kernel, sign: float) -> None:
    def run(x: wp.array) -> wp.array:
        m = wp.array([-10.0 * sign], dtype=wp.float64, requires_grad=True)
        out = wp.zeros(4, dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=4, inputs=[x, m], outputs=[out])
        return out

    # Every thread finds what it has just put there, and beats it; what is there at the end nobody has seen.
    values = sign * np.array([0.4, 2.1, 4.3, 7.2])
    check_gradients(run, values)
    np.testing.assert_allclose(run(wp.array(values, dtype=wp.float64)).numpy(), np.sin(values), rtol=1e-12)


@wp.kernel
def accumulated_in_loop(x: Floats, highest: Floats, out: Floats):
    t = wp.tid()
    s = x[t]
    for i in range(4):
        s = s * x[i] + 0.3
        wp.atomic_max(highest, i % 2, s)
        wp.atomic_add(out, 0, s * s)


def test_accumulations_of_carried_values() -> None:
    def run(x: wp.array) -> tuple[wp.array, wp.array]:
        out = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        highest = wp.zeros(2, dtype=wp.float64, requires_grad=True)
        wp.launch(accumulated_in_loop, dim=6, inputs=[x], outputs=[highest, out])
        return out, highest

    total, highest = check_gradients(run, X)
    s, rows = X, []
    for i in range(4):
        s = s * X[i] + 0.3
        rows.append(s)
    np.testing.assert_allclose(total, [np.sum(np.square(rows))], rtol=1e-14)
    np.testing.assert_allclose(highest, [np.max(rows[::2]), np.max(rows[1::2])], rtol=1e-14)


@wp.kernel
def sum_of_row(table: Table, out: Floats):
    t = wp.tid()
    row = table[t]
    s = wp.float64(0.0)
    for k in range(row.shape[0]):
        s += row[k] * row[0]
    out[t] = s


@wp.func
def product_of(row: Floats):
    p = wp.float64(1.0)
    for k in range(row.shape[0]):
        p *= row[k]
    return p


@wp.kernel
def product_of_row(table: Table, out: Floats):
    t = wp.tid()
    out[t] = product_of(table[t]) + product_of(table[(t + 1) % 2])


@pytest.mark.parametrize("kernel", [sum_of_row, product_of_row], ids=lambda kernel: kernel.key)
def test_rows(kernel: wp.Kernel) -> None:
    table = X.reshape(2, 3)
    values = check_gradients(run_on(kernel, 2), table)[0]
    rows = table.sum(axis=1) * table[:, 0] if kernel is sum_of_row else np.full(2, table.prod(axis=1).sum())
    np.testing.assert_allclose(values, rows, rtol=1e-14)


@wp.kernel
def squared(x: Floats, out: Floats):
    t = wp.tid()
    wp.atomic_add(out, t, x[t] * x[t])


@wp.kernel
def squared_table(x: Table, out: Table):
    i, j = wp.tid()
    out[i, j] = x[i, j] * x[i, j]


def launch_squared(x: wp.array, out: wp.array) -> None:
    wp.launch(squared, dim=x.shape[0], inputs=[x], outputs=[out])


VIEWS = {
    "slice": (lambda a: a[1:4], slice(1, 4)),
    "strided": (lambda a: a[::2], slice(None, None, 2)),
    "flattened table": (lambda a: a.reshape((2, 3)).flatten(), slice(None)),
    "row": (lambda a: a.reshape((2, 3))[1], slice(3, 6)),
}


@pytest.mark.parametrize(("view", "selected"), VIEWS.values(), ids=VIEWS)
def test_views_share_the_gradient_of_the_array(view: Callable[[wp.array], wp.array], selected: slice) -> None:
    def run(x: wp.array) -> wp.array:
        part = view(x)
        out = wp.zeros(part.shape[0], dtype=wp.float64, requires_grad=True)
        launch_squared(part, out)
        return out

    np.testing.assert_allclose(check_gradients(run, X)[0], X[selected] ** 2, rtol=1e-15)


def test_outputs_that_are_views() -> None:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros(6, dtype=wp.float64, requires_grad=True)
        launch_squared(x[:3], out[3:])
        launch_squared(x[1:4], out[::2])
        return out

    check_gradients(run, X)


def test_transposed_table() -> None:
    def run(x: wp.array) -> wp.array:
        out = wp.zeros((3, 2), dtype=wp.float64, requires_grad=True)
        wp.launch(squared_table, dim=(3, 2), inputs=[x.transpose()], outputs=[out])
        return out

    np.testing.assert_allclose(check_gradients(run, X.reshape(2, 3))[0], X.reshape(2, 3).T ** 2, rtol=1e-15)


@wp.struct
class Body:
    mass: wp.float64
    place: wp.vec2d


@wp.struct
class Fields:
    weight: wp.array(dtype=wp.float64)
    scale: wp.float64


@wp.kernel
def energy(bodies: wp.array(dtype=Body), out: Floats):
    t = wp.tid()
    body = bodies[t]
    out[t] = body.mass * wp.dot(body.place, body.place) + bodies[t].mass * bodies[t].place[0]


def test_array_of_structs() -> None:
    rows = [(1.5, (0.3, 0.7)), (0.4, (1.1, -0.6))]
    values = []
    for mass, place in rows:
        body = Body()
        body.mass = mass
        body.place = wp.vec2d(*place)
        values.append(body)
    bodies = wp.array(values, dtype=Body, requires_grad=True)
    out = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(energy, dim=2, inputs=[bodies], outputs=[out])
    tape.backward(grads={out: wp.array([1.0, 2.0], dtype=wp.float64)})
    gradient = bodies.grad.numpy()
    for index, (mass, (x, y)) in enumerate(rows):
        seed = 1.0 + index
        assert gradient["mass"][index] == pytest.approx(seed * (x * x + y * y + x))
        assert gradient["place"][index] == pytest.approx([seed * (2.0 * mass * x + mass), seed * 2.0 * mass * y])


@wp.kernel
def weighted(fields: Fields, out: Floats):
    t = wp.tid()
    out[t] = fields.weight[t] * fields.weight[t] * fields.scale


def test_struct_with_an_array() -> None:
    def run(x: wp.array) -> wp.array:
        fields = Fields()
        fields.weight = x
        fields.scale = 1.5
        out = wp.zeros(6, dtype=wp.float64, requires_grad=True)
        wp.launch(weighted, dim=6, inputs=[fields], outputs=[out])
        return out

    np.testing.assert_allclose(check_gradients(run, X)[0], 1.5 * X**2, rtol=1e-15)


@wp.kernel
def vectors_and_matrices(v: wp.array(dtype=wp.vec2d), m: wp.array(dtype=wp.mat22d), out: Floats):
    t = wp.tid()
    p = m[t] * v[t]
    out[t] = wp.dot(p, v[0]) + m[t][0, 1] * v[t][1] + v[t].x * p.y


def test_arrays_of_vectors_and_matrices() -> None:
    vectors, matrices = X.reshape(3, 2), 0.3 + np.arange(12.0).reshape(3, 2, 2) / 7.0

    def run(v: wp.array, m: wp.array) -> wp.array:
        out = wp.zeros(3, dtype=wp.float64, requires_grad=True)
        wp.launch(vectors_and_matrices, dim=3, inputs=[v, m], outputs=[out])
        return out

    inputs = [wp.array(vectors, dtype=wp.vec2d), wp.array(matrices, dtype=wp.mat22d)]
    products = np.einsum("tij,tj->ti", matrices, vectors)
    expected = products @ vectors[0] + matrices[:, 0, 1] * vectors[:, 1] + vectors[:, 0] * products[:, 1]
    np.testing.assert_allclose(check_gradients(run, *inputs)[0], expected, rtol=1e-14)


@wp.kernel
def components_of_elements(x: Floats, out: wp.array(dtype=wp.vec2d)):
    t = wp.tid()
    out[t][0] = x[t] * x[t]
    out[t][1] = x[t] * x[0]


def test_components_of_elements_are_stored_one_by_one() -> None:
    x = array_of(X, X)
    out = wp.zeros(6, dtype=wp.vec2d, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(components_of_elements, dim=6, inputs=[x], outputs=[out])
    seed: Values = weights_of((6, 2))
    tape.backward(grads={out: wp.array(seed, dtype=wp.vec2d)})
    expected = 2.0 * X * seed[:, 0] + X[0] * seed[:, 1]
    expected[0] += np.sum(X * seed[:, 1])
    np.testing.assert_allclose(out.numpy(), np.stack([X**2, X * X[0]], axis=1), rtol=1e-15)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)
