"""Jacobians of which one backward pass gives many rows, where every thread keeps to the elements at its own index."""

from __future__ import annotations

import numpy as np
import pytest

import warp as wp
from warp.autograd import jacobian

Floats = wp.array(dtype=wp.float64)
Vectors = wp.array(dtype=wp.vec3d)
SIZE = 7
RNG = np.random.default_rng(3)
X = RNG.uniform(0.5, 1.5, (SIZE, 3))


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Count backward passes."""
    found: list[None] = []
    original = wp.Tape.backward

    def backward(self: wp.Tape, *args: object, **options: object) -> None:
        found.append(None)
        original(self, *args, **options)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(wp.Tape, "backward", backward)
    return found


def vectors(values: np.ndarray) -> wp.array:
    return wp.array(values, dtype=wp.vec3d, requires_grad=True)


def empty(shape: object, dtype: object) -> wp.array:
    return wp.zeros(shape, dtype=dtype, requires_grad=True)


def block_diagonal(blocks: np.ndarray) -> np.ndarray:
    count, rows, columns = blocks.shape
    whole = np.zeros((count, rows, count, columns))
    whole[np.arange(count), :, np.arange(count), :] = blocks
    return whole.reshape(count * rows, count * columns)


@wp.kernel
def powers(x: Vectors, weights: Floats, y: Vectors):
    i = wp.tid()
    v = x[i]
    for _k in range(3):
        v = wp.cw_mul(v, x[i]) * weights[0]
    y[i] = wp.vec3d(v[0], v[1], v[0] * x[i][2])


def powers_in_closed_form(w: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the blocks by x and the matrix by the weight."""
    blocks = np.zeros((SIZE, 3, 3))
    blocks[:, 0, 0] = 4 * w**3 * X[:, 0] ** 3
    blocks[:, 1, 1] = 4 * w**3 * X[:, 1] ** 3
    blocks[:, 2, 0] = blocks[:, 0, 0] * X[:, 2]
    blocks[:, 2, 2] = w**3 * X[:, 0] ** 4
    first = 3 * w**2 * X[:, 0] ** 4
    by_weight = np.stack([first, 3 * w**2 * X[:, 1] ** 4, first * X[:, 2]], axis=1)
    return blocks, by_weight.reshape(-1, 1)


def test_one_pass_for_each_number_of_an_element(passes: list[None]) -> None:
    w = wp.array([0.8], dtype=wp.float64, requires_grad=True)
    found = jacobian(powers, SIZE, [vectors(X), w], [empty(SIZE, wp.vec3d)], input_output_mask=[("x", "y")])
    np.testing.assert_allclose(found[0, 0].numpy(), block_diagonal(powers_in_closed_form(0.8)[0]), rtol=1e-12)
    assert len(passes) == 3


def test_inputs_that_all_threads_share_take_a_pass_each(passes: list[None]) -> None:
    w = wp.array([0.8], dtype=wp.float64, requires_grad=True)
    found = jacobian(powers, SIZE, [vectors(X), w], [empty(SIZE, wp.vec3d)])
    blocks, by_weight = powers_in_closed_form(0.8)
    np.testing.assert_allclose(found[0, 0].numpy(), block_diagonal(blocks), rtol=1e-12)
    np.testing.assert_allclose(found[1, 0].numpy(), by_weight, rtol=1e-12)
    assert len(passes) == 3 + 3 * SIZE


def test_rows_beyond_the_limit_are_nan(passes: list[None]) -> None:
    inputs = [vectors(X), wp.array([1.0], dtype=wp.float64)]
    found = jacobian(powers, SIZE, inputs, [empty(SIZE, wp.vec3d)], max_outputs_per_var=4)[0, 0].numpy()
    np.testing.assert_allclose(found[:4], block_diagonal(powers_in_closed_form(1.0)[0])[:4], rtol=1e-12)
    assert np.isnan(found[4:]).all() and len(passes) == 3


@wp.kernel
def square_grid(x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    i, j = wp.tid()
    y[i, j] = x[i, j] * x[i, j]


@wp.kernel
def add_own(x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    i, j = wp.tid()
    wp.atomic_add(y, i, j, 3.0 * x[i, j])


def test_functions_of_several_launches_and_copies(passes: list[None]) -> None:
    x = wp.array(X, dtype=wp.float64, requires_grad=True)

    def run(x: wp.array) -> wp.array:
        squares, fourths, y = empty(x.shape, wp.float64), empty(x.shape, wp.float64), wp.clone(x)
        wp.launch(square_grid, dim=x.shape, inputs=[x], outputs=[squares])
        wp.launch(square_grid, dim=x.shape, inputs=[squares], outputs=[fourths])
        wp.launch(add_own, dim=x.shape, inputs=[fourths], outputs=[y])
        return y

    found = jacobian(run, inputs=[x])[0, 0].numpy()
    np.testing.assert_allclose(found, np.diag(1 + 12 * X.ravel() ** 3), rtol=1e-12)
    assert len(passes) == 1


@wp.kernel
def neighbours(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i] * x[(i + 1) % x.shape[0]]


@wp.kernel
def swapped(x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    i, j = wp.tid()
    y[i, j] = x[j, i] * x[j, i]


@wp.kernel
def row_sum(x: wp.array2d(dtype=wp.float64), y: Floats):
    i = wp.tid()
    y[i] = x[i, 0] * x[i, 1]


@wp.kernel
def over_a_shared_place(x: Floats, shared: Floats, y: Floats):
    i = wp.tid()
    shared[0] = x[i] * x[i]
    y[i] = shared[0]


@wp.kernel
def square(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def of_two_dimensions(x: Floats, y: Floats):
    i, j = wp.tid()
    wp.atomic_add(y, i, x[i] * x[j])


def shifted_view(x: wp.array) -> wp.array:
    y = empty(4, wp.float64)
    wp.launch(square, dim=4, inputs=[x[1:5]], outputs=[y])
    return y


def through_an_overlap(x: wp.array) -> wp.array:
    y = wp.clone(x)
    wp.launch(square, dim=3, inputs=[y[:3]], outputs=[y[3:]])
    return y


def shuffled(x: wp.array) -> wp.array:
    y = empty(x.shape, wp.float64)
    wp.copy(y, x, dest_offset=2, src_offset=0, count=2)
    return y


def backwards(x: wp.array) -> wp.array:
    y = empty(x.shape, wp.float64)
    wp.launch(square, dim=x.size, inputs=[x[::-1]], outputs=[y])
    return y


def alone(kernel: wp.Kernel, dim: object, shape: object = None) -> object:
    def run(x: wp.array) -> wp.array:
        y = empty(x.shape if shape is None else shape, wp.float64)
        wp.launch(kernel, dim=dim, inputs=[x], outputs=[y])
        return y

    return run


def over_shared(x: wp.array) -> wp.array:
    shared, y = empty(1, wp.float64), empty(x.shape, wp.float64)
    wp.launch(over_a_shared_place, dim=x.size, inputs=[x, shared], outputs=[y])
    return y


MIXING = {
    "neighbours": (alone(neighbours, 6), (6,), lambda x: x * np.roll(x, -1)),
    "transposed": (alone(swapped, (3, 3)), (3, 3), lambda x: x.T**2),
    "rows": (alone(row_sum, 4, 4), (4, 2), lambda x: x[:, 0] * x[:, 1]),
    "two dimensions": (alone(of_two_dimensions, (5, 5)), (5,), lambda x: x * x.sum()),
    "shared place": (over_shared, (6,), lambda x: x * x),
    "shifted view": (shifted_view, (6,), lambda x: x[1:5] ** 2),
    "backwards": (backwards, (6,), lambda x: x[::-1] ** 2),
    "overlap": (through_an_overlap, (6,), lambda x: np.concatenate([x[:3], x[:3] ** 2])),
    "offset": (shuffled, (6,), lambda x: np.concatenate([0 * x[:2], x[:2], 0 * x[4:]])),
}


@pytest.mark.cpu
@pytest.mark.parametrize("name", MIXING)
def test_elements_that_meet_are_not_mixed_up(name: str) -> None:
    run, shape, formula = MIXING[name]
    values = RNG.uniform(0.5, 1.5, shape)
    found = jacobian(run, inputs=[wp.array(values, dtype=wp.float64, requires_grad=True)])[0, 0].numpy()
    expected = np.zeros(found.shape)
    for column in range(values.size):
        step = np.zeros(values.size)
        step[column] = 1e-5
        step = step.reshape(shape)
        expected[:, column] = ((formula(values + step) - formula(values - step)) / 2e-5).ravel()
    np.testing.assert_allclose(found, expected, atol=1e-8)


@wp.struct
class Body:
    place: wp.vec3d
    charge: wp.float64
    kind: wp.int32


@wp.kernel
def energy(bodies: wp.array(dtype=Body), out: wp.array(dtype=Body)):
    i = wp.tid()
    body = bodies[i]
    out[i].charge = wp.dot(body.place, body.place) * body.charge
    out[i].place = body.place * body.charge


@pytest.mark.cpu
def test_arrays_of_structs_and_strided_ones(passes: list[None]) -> None:
    wide = wp.zeros(2 * SIZE, dtype=Body, requires_grad=True)
    charges = RNG.uniform(1.0, 2.0, SIZE)
    for place, values in zip(("place", "charge"), (X, charges), strict=True):
        wide.numpy()[place][::2] = values
    out = wp.zeros(SIZE, dtype=Body, requires_grad=True)
    found = jacobian(energy, SIZE, [wide[::2]], [out])[0, 0].numpy()
    blocks = np.zeros((SIZE, 4, 4))
    blocks[:, :3, :3] = charges[:, None, None] * np.eye(3)
    blocks[:, :3, 3] = X
    blocks[:, 3, :3] = 2 * X * charges[:, None]
    blocks[:, 3, 3] = (X * X).sum(axis=1)
    np.testing.assert_allclose(found, block_diagonal(blocks), rtol=1e-12, atol=1e-14)
    assert len(passes) == 4
