"""Arrays in kernels, compiled: slices and their gradients, negative strides, checks of debug mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell
from warp._src.lang.source import build_kernel
from warp.errors import LaunchError

Floats = wp.array(dtype=float)


@wp.func
def total(values: Floats):
    result = float(0.0)
    for i in range(values.shape[0]):
        result += values[i] * values[i]
    return result


@wp.kernel
def sliced(x: wp.array2d(dtype=float), y: Floats, n: int):
    i = wp.tid()
    row = x[i]
    y[i] = total(row[n:]) + total(x[:, 0]) + row[::-1][0]


def test_slices_have_gradients() -> None:
    values = np.arange(1.0, 9.0, dtype=np.float32).reshape(2, 4)
    x = wp.array(values, dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sliced, 2, inputs=[x], outputs=[y, 2])
    expected = (values[:, 2:] ** 2).sum(axis=1) + (values[:, 0] ** 2).sum() + values[:, -1]
    np.testing.assert_allclose(y.numpy(), expected)
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    gradient = np.zeros((2, 4))
    gradient[:, 2:] = 2 * values[:, 2:]
    gradient[:, 0] += 4 * values[:, 0]
    gradient[:, -1] += 1
    np.testing.assert_allclose(x.grad.numpy(), gradient)


@wp.kernel
def doubled(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def numbered(x: wp.array2d(dtype=float)):
    i, j = wp.tid()
    x[i, j] = float(i * 10 + j)


def test_negative_strides() -> None:
    x = wp.array(np.arange(4, dtype=np.float32), requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(doubled, 4, inputs=[x[::-1]], outputs=[y])
    assert y.numpy().tolist() == [6, 4, 2, 0]
    tape.backward(grads={y: wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)})
    assert x.grad.numpy().tolist() == [8, 6, 4, 2]


@pytest.mark.cpu
def test_negative_strides_of_numpy() -> None:
    y = wp.zeros(4, dtype=float)
    wp.launch(doubled, 4, inputs=[np.arange(4, dtype=np.float32)[::-1], y])
    assert y.numpy().tolist() == [6, 4, 2, 0]


def test_writing_with_negative_strides() -> None:
    plane = wp.zeros((3, 4), dtype=float)
    wp.launch(numbered, (3, 2), inputs=[plane[::-1, ::-2]])
    expected = np.zeros((3, 4))
    expected[::-1, ::-2] = [[0, 1], [10, 11], [20, 21]]
    np.testing.assert_array_equal(plane.numpy(), expected)


@pytest.fixture
def debug() -> Iterator[None]:
    wp.config.mode = "debug"
    yield
    wp.config.mode = "release"


@wp.kernel
def reading_beyond(image: wp.array2d(dtype=float), y: Floats):
    i = wp.tid()
    y[i] = image[i, i + 7]


@wp.kernel
def writing_before(y: Floats):
    y[wp.tid() - 3] = 1.0


@wp.kernel
def component_beyond(points: wp.array(dtype=wp.vec3), k: int):
    points[0][k] = 1.0


@wp.kernel
def local_component_beyond(y: Floats, k: int):
    v = wp.vec3(1.0, 2.0, 3.0)
    y[0] = v[k]


@wp.kernel
def asserting(y: Floats):
    assert y[0] > 1.0, "too small"


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        (
            reading_beyond,
            ["image", "line"],
            "index 7 is out of bounds for array 'image', which has 3 elements in d",
        ),
        (writing_before, ["line"], "index -3 is out of bounds for array 'y', which has 2 elements, at line"),
        (component_beyond, ["points", 5], "component 5 of 'points' is out of bounds: there are 3"),
        (local_component_beyond, ["line", -1], "component -1 of 'v' is out of bounds: there are 3"),
        (asserting, ["line"], 'assert y[0] > 1.0, "too small"'),
    ],
)
def test_debug_mode_names_array_and_index(kernel: Any, arguments: list[Any], words: str) -> None:
    made = {
        "image": wp.zeros((2, 3), dtype=float),
        "line": wp.zeros(2, dtype=float),
        "points": wp.zeros(1, dtype=wp.vec3),
    }
    with pytest.raises(LaunchError) as caught:
        wp.launch(kernel, 2, inputs=[made.get(argument, argument) for argument in arguments])
    message = str(caught.value)
    assert words in message
    assert "in the thread with index (0)" in message
    line = kernel.func.__code__.co_firstlineno
    assert line < caught.value.line <= line + 5
    assert f'File "{__file__}", line {caught.value.line}' in message


@wp.kernel
def dividing(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = 1.0 / x[i]


def test_verify_fp_names_the_value() -> None:
    wp.config.verify_fp = True
    try:
        with pytest.raises(LaunchError, match=r"is inf, not a finite number, at line \d+, .* index \(2\)"):
            wp.launch(dividing, 4, inputs=[wp.array([1.0, 2.0, 0.0, 4.0], dtype=float), wp.zeros(4, dtype=float)])
    finally:
        wp.config.verify_fp = False


@wp.func
def weighted_sum(values: wp.array(dtype=wp.float64)):
    total = wp.float64(0.0)
    for i in range(values.shape[0]):
        total += values[i] * values[i] * wp.float64(i + 1)
    return total


@wp.kernel
def sliced_indexed(x: wp.indexedarray2d(dtype=wp.float64), n: int, y: wp.array(dtype=wp.float64)):
    y[0] = weighted_sum(x[1]) + weighted_sum(x[:, 1])
    y[1] = weighted_sum(x[1:n, 0]) + weighted_sum(x[0, -2:])
    part = x[n - 2 :, 1:]
    y[2] = part[0, 1] * part[1, 0] + wp.float64(part.shape[0] * 10 + part.shape[1])


@wp.kernel
def stepped(x: wp.indexedarray(dtype=float), y: wp.array(dtype=float)):
    y[0] = x[::2][0]


@pytest.mark.parametrize("lists", [([3, 0, 2], [1, 4, 2]), (None, [1, 4, 2]), ([3, 0, 2], None)])
def test_slices_and_rows_of_indexed_arrays(lists: Any) -> None:
    base = np.random.default_rng(1).uniform(-1, 1, (4, 5) if lists[0] else (3, 5))
    rows, columns = (slice(None) if part is None else part for part in lists)
    weights = np.array([1.0, 2.0, -1.0])

    def run(values: Any) -> Any:
        x, w = values[rows][:, columns], np.arange(1, 6)
        part = x[1:, 1:]
        return np.array(
            [
                x[1] ** 2 @ w[: x.shape[1]] + x[:, 1] ** 2 @ w[:3],
                x[1:3, 0] ** 2 @ w[:2] + x[0, -2:] ** 2 @ w[:2],
                part[0, 1] * part[1, 0] + part.shape[0] * 10 + part.shape[1],
            ]
        )

    x = wp.array(base, dtype=wp.float64, requires_grad=True)
    indices = [None if part is None else wp.array(part, dtype=int) for part in lists]
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sliced_indexed, dim=1, inputs=[wp.indexedarray(x, indices), 3], outputs=[y])
    np.testing.assert_allclose(y.numpy(), run(base), rtol=1e-12)
    tape.backward(grads={y: wp.array(weights, dtype=wp.float64)})
    slopes = np.zeros_like(base)
    for place in np.ndindex(base.shape):
        step = np.zeros_like(base)
        step[place] = 1e-6
        slopes[place] = (run(base + step) - run(base - step)) @ weights / 2e-6
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6, atol=1e-8)
    found = np.zeros(3)
    tables = tuple(None if part is None else np.array(part, np.int32) for part in lists)
    cell = ArrayCell(base, None, wp.float64, tables)
    run_kernel(build_kernel(sliced_indexed, tuple(t for _, t in sliced_indexed.parameters)), 1, [cell, 3, found])
    np.testing.assert_allclose(found, run(base), rtol=1e-12)


def test_steps_in_slices_of_indexed_arrays_are_refused_with_the_line() -> None:
    x = wp.indexedarray(wp.zeros(3, dtype=float), [wp.array([0, 2], dtype=int)])
    with pytest.raises(wp.errors.CompileError, match=r"has the step 1(.|\n)*x\[::2\]"):
        wp.launch(stepped, dim=1, inputs=[x, wp.zeros(1, dtype=float)])


@wp.kernel
def from_the_end(
    x: wp.array2d(dtype=wp.float64), picked: wp.indexedarray(dtype=wp.float64), y: wp.array(dtype=wp.float64)
):
    y[-1] = x[-1, -2] * x[0, -1]
    wp.atomic_add(y, -2, x[-2][-3])
    y[0] = x[1:, -1][-1] + picked[-2]


def test_negative_numbers_count_from_the_end() -> None:
    values = np.arange(1.0, 13.0).reshape(3, 4)
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    picked = wp.indexedarray(x.flatten(), [wp.array([5, 9, 2], dtype=int)])
    with wp.Tape() as tape:
        wp.launch(from_the_end, dim=1, inputs=[x, picked], outputs=[y])
    assert y.numpy().tolist() == [12.0 + 10.0, 6.0, 11.0 * 4.0]
    tape.backward(grads={y: wp.array([1.0, 10.0, 100.0], dtype=wp.float64)})
    expected = np.zeros((3, 4))
    expected[2, 2], expected[0, 3], expected[1, 1], expected[2, 3] = 400.0, 1100.0, 10.0, 1.0
    expected[2, 1] += 1.0
    np.testing.assert_array_equal(x.grad.numpy(), expected)
