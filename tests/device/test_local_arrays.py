"""Local arrays: every element type and rank, as values and arguments, with gradients; arrays at addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.ir.interp import run_kernel
from warp._src.lang.source import build_kernel

Doubles = wp.array(dtype=wp.float64)


@wp.struct
class Inner:
    q: wp.quatd
    n: int


@wp.struct
class Node:
    mass: wp.float64
    velocity: wp.vec3d
    frame: wp.mat22d
    inner: Inner


@wp.func
def weighted(values: Doubles, factor: wp.float64):
    total = wp.float64(0.0)
    for i in range(values.shape[0]):
        total += values[i] * factor * wp.float64(i + 1)
    return total


@wp.func
def square_all(values: Doubles):
    for i in range(len(values)):
        values[i] = values[i] * values[i]


@wp.kernel
def everything(x: Doubles, k: wp.array(dtype=int), y: Doubles):
    cube = wp.zeros(shape=(2, 3, 2), dtype=wp.float64)
    cube[1, 2, k[0]] = x[0] * x[1]
    cube[k[1], 1][1] = x[1]
    cube[0, k[2], 0] += wp.sin(x[2])
    row = cube[1, 2]
    nodes = wp.zeros(3, dtype=Node)
    nodes[k[2]].mass = x[3]
    nodes[k[1]].velocity = wp.vec3d(x[0], x[1], x[2])
    nodes[1].velocity[k[1]] *= x[4]
    nodes[1].frame = wp.mat22d(x[0], x[1], x[2], x[3])
    nodes[k[2] - 1].frame[k[0], 1] += x[4]
    nodes[2].inner.q = wp.quatd(x[0], x[1], x[2], x[3])
    nodes[2].inner.n = 3
    nodes[0] = nodes[k[2]]
    moved = nodes[0].inner
    frames = wp.ones(shape=(2, 2), dtype=wp.transformd)
    frames[k[0], 1].p = wp.vec3d(x[4], x[3], x[2])
    line = wp.full(5, wp.float64(0.5), dtype=wp.float64)
    line[k[2]] = x[4]
    square_all(line)
    square_all(cube[k[1], 1])
    part = line[1:4]
    y[0] += weighted(line, x[0]) + weighted(row, x[1]) + weighted(part, x[2])
    y[1] += cube[1, 2, 0] * cube[k[1], k[1], 1] + cube[0, 2, 0] + wp.float64(moved.n) * moved.q[k[0]]
    y[2] += nodes[0].mass * nodes[1].velocity[1] + wp.determinant(nodes[1].frame)
    y[3] += wp.length_sq(frames[0, 1].p) * frames[1, 1].q.w + wp.float64(cube.ndim * cube.size + cube.shape[1])


INPUTS = np.array([0.4, -1.2, 0.7, 1.5, 0.9])
INDICES = np.array([0, 1, 2], np.int32)


def expected(x: Any) -> np.ndarray:
    cube = np.zeros((2, 3, 2))
    cube[1, 2, 0], cube[1, 1, 1] = x[0] * x[1], x[1]
    cube[0, 2, 0] += np.sin(x[2])
    row = cube[1, 2].copy()
    line = np.full(5, 0.5)
    line[2] = x[4]
    line, cube[1, 1] = line**2, cube[1, 1] ** 2
    velocity, frame = np.array([x[0], x[1] * x[4], x[2]]), np.array([[x[0], x[1] + x[4]], [x[2], x[3]]])
    return np.array(
        [
            line @ np.arange(1, 6) * x[0] + row @ [1, 2] * x[1] + line[1:4] @ [1, 2, 3] * x[2],
            cube[1, 2, 0] * cube[1, 1, 1] + cube[0, 2, 0] + 3 * x[0],
            x[3] * velocity[1] + np.linalg.det(frame),
            x[4] ** 2 + x[3] ** 2 + x[2] ** 2 + 3 * 12 + 3,
        ]
    )


def test_values_and_gradients() -> None:
    x = wp.array(INPUTS, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(4, dtype=wp.float64, requires_grad=True)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    with wp.Tape() as tape:
        wp.launch(everything, dim=1, inputs=[x, wp.array(INDICES)], outputs=[y])
    np.testing.assert_allclose(y.numpy(), expected(INPUTS), rtol=1e-12)
    tape.backward(grads={y: wp.array(weights, dtype=wp.float64)})
    steps = 1e-6 * np.eye(5)
    slopes = [(expected(INPUTS + s) - expected(INPUTS - s)) @ weights / 2e-6 for s in steps]
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-7, atol=1e-8)


def test_the_interpreter_agrees() -> None:
    y = np.zeros(4)
    run_kernel(build_kernel(everything, tuple(t for _, t in everything.parameters)), 1, [INPUTS.copy(), INDICES, y])
    np.testing.assert_allclose(y, expected(INPUTS), rtol=1e-12)


@wp.kernel
def locally(y: wp.array(dtype=int), values: wp.array(dtype=float)):
    a = wp.zeros(3, dtype=int)
    y[0] = wp.atomic_add(a, 1, 5)
    y[1] = wp.atomic_max(a, 1, 9)
    y[2] = wp.atomic_exch(a, 1, 4)
    y[3] = wp.atomic_cas(a, 1, 4, 6)
    y[4] = wp.atomic_or(a, 1, 9)
    wp.atomic_sub(a, wp.tid(), 2)
    y[5] = a[0] * 100 + a[1]
    sorted_values = wp.zeros(4, dtype=float)
    for i in range(4):
        sorted_values[i] = float(i)
    y[6] = wp.lower_bound(sorted_values, 1.5)
    total = 0.0
    for value in sorted_values[::-1]:
        total = total * 10.0 + value
    values[0] = total
    b = a
    b[0] = 77
    y[7] = a[0] if a else 5


def test_atomics_searching_iterating_and_copying() -> None:
    y, values = wp.zeros(8, dtype=int), wp.zeros(1, dtype=float)
    wp.launch(locally, dim=1, inputs=[y, values])
    assert y.numpy().tolist() == [0, 5, 9, 4, 6, -200 + 15, 2, -2]
    assert values.numpy().tolist() == [3210.0]


@wp.kernel
def filtered(x: Doubles, y: Doubles):
    """A loop that carries a local array: a recursive filter."""
    history = wp.zeros(shape=(2, 2), dtype=wp.float64)
    for i in range(x.shape[0]):
        value = x[i] * x[i] + 0.5 * history[i % 2, 0] - 0.25 * history[(i + 1) % 2, 1]
        history[i % 2, 1] = wp.sin(value)
        history[(i + 1) % 2, 0] = value * history[i % 2, 1]
        y[i] = value


def test_local_arrays_carried_by_loops_have_gradients() -> None:
    def run(x: Any) -> np.ndarray:
        history, y = np.zeros((2, 2)), np.zeros(len(x))
        for i in range(len(x)):
            y[i] = x[i] * x[i] + 0.5 * history[i % 2, 0] - 0.25 * history[(i + 1) % 2, 1]
            history[i % 2, 1] = np.sin(y[i])
            history[(i + 1) % 2, 0] = y[i] * history[i % 2, 1]
        return y

    start = np.random.default_rng(4).uniform(-1, 1, 9)
    x = wp.array(start, dtype=wp.float64, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(filtered, dim=1, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(y.numpy(), run(start), rtol=1e-12)
    steps = 1e-6 * np.eye(9)
    slopes = [np.sum(run(start + s) - run(start - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6, atol=1e-8)


@wp.kernel
def shown():
    a = wp.zeros(shape=(2, 2), dtype=float)
    a[1, 0] = 2.5
    inner = Inner()
    inner.n = 3
    print("a is", a, inner)


def test_local_arrays_and_structs_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    wp.launch(shown, dim=1)
    wp.synchronize()
    assert capfd.readouterr().out == "a is [[0, 0], [2.5, 0]] Inner(q=[0, 0, 0, 0], n=3)\n"


# -- mistakes ------------------------------------------------------------------------------------------


@wp.struct
class Holder:
    values: wp.array(dtype=float)


@wp.kernel
def holds_arrays(y: wp.array(dtype=float)):
    a = wp.zeros(2, dtype=Holder)
    y[0] = a[0].values[0]


@wp.kernel
def beyond(y: wp.array(dtype=float)):
    a = wp.zeros(shape=(2, 3), dtype=float)
    y[0] = a[1, 3]


@wp.kernel
def too_many(y: wp.array(dtype=float)):
    a = wp.zeros(shape=(2, 3), dtype=float)
    y[0] = a[1, 2, 0]


@wp.kernel
def unknown_extent(y: wp.array(dtype=float), n: int):
    a = wp.zeros(shape=(n,), dtype=float)
    y[0] = a[0]


@wp.func
def exchange(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    a[0] = b[0] + 1.0


@wp.kernel
def twice_given(y: wp.array(dtype=float)):
    a = wp.zeros(2, dtype=float)
    exchange(a, a)
    y[0] = a[0]


@wp.kernel
def stored(y: wp.array2d(dtype=float)):
    a = wp.zeros(2, dtype=float)
    y[0] = a


@wp.func_native("y[0] = a[0];")
def native_copy(a: wp.array(dtype=float), y: wp.array(dtype=float)): ...


@wp.kernel
def to_native(y: wp.array(dtype=float)):
    native_copy(wp.zeros(2, dtype=float), y)


@wp.kernel
def as_vectors(y: wp.array(dtype=float)):
    a = wp.zeros(2, dtype=float)
    y[0] = (a + a)[0]


@wp.kernel
def slice_assigned(y: wp.array(dtype=float)):
    a = wp.zeros(3, dtype=float)
    a[1:] = 2.0
    y[0] = a[1]


@wp.kernel
def slice_computed(y: wp.array(dtype=float), n: int):
    a = wp.zeros(3, dtype=float)
    y[0] = a[n:][0]


@wp.kernel
def prints_an_array(y: wp.array(dtype=float)):
    print(y)


@wp.kernel
def without_address(y: wp.array(dtype=float)):
    a = wp.array(shape=(3,), dtype=float)
    y[0] = a[0]


@pytest.mark.parametrize(
    ("kernel", "extra", "text"),
    [
        (holds_arrays, [], "cannot hold arrays, as field 'values'"),
        (beyond, [], "index 3 is out of range for an extent of 3"),
        (too_many, [], "3 indices into a local array of 2 dimensions"),
        (unknown_extent, [2], "a shape must be an integer known while compiling"),
        (twice_given, [], "local array 'a' is given twice"),
        (to_native, [], "argument 'a' of native function 'native_copy' cannot be a local array"),
        (as_vectors, [], r"hint: compute with the elements of a local array in a loop"),
        (slice_assigned, [], "a slice of an array cannot be assigned to"),
        (slice_computed, [1], "local arrays need constant bounds"),
        (prints_an_array, [], "print its elements"),
        (without_address, [], "needs argument 'ptr'"),
    ],
)
def test_mistakes_name_the_line(kernel: Any, extra: list[Any], text: str) -> None:
    with pytest.raises(wp.errors.CompileError, match=text) as caught:
        wp.launch(kernel, dim=1, inputs=[wp.zeros(1, dtype=float), *extra])
    assert __file__ in str(caught.value)


def test_a_local_array_is_no_row() -> None:
    with pytest.raises(wp.errors.CompileError, match="2 indices are needed"):
        wp.launch(stored, dim=1, inputs=[wp.zeros((1, 2), dtype=float)])


@wp.kernel
def runs_over(y: wp.array(dtype=float)):
    a = wp.zeros(3, dtype=float)
    y[0] = a[wp.tid() + 2]


def test_debug_mode_checks_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "mode", "debug")
    with pytest.raises(wp.errors.LaunchError, match="'a'"):
        wp.launch(runs_over, dim=2, inputs=[wp.zeros(1, dtype=float)])


# -- arrays at addresses -------------------------------------------------------------------------------


@wp.kernel
def at_addresses(addresses: wp.array(dtype=wp.uint64), n: int, y: wp.array(dtype=wp.vec2), x: wp.array(dtype=float)):
    i = wp.tid()
    points = wp.array(ptr=addresses[0], shape=(n, 2), dtype=wp.vec2)
    flat = wp.array(ptr=points.ptr, shape=2 * n, dtype=wp.vec2)
    y[i] = points[i, 1] + flat[2 * i] * x[i]
    wp.atomic_add(points, i, 0, wp.vec2(100.0, 0.0))
    last = wp.array2d(ptr=points.ptr, shape=(n, 2), dtype=wp.vec2)[i, 1:]
    last[0][1] = wp.float32(points.shape[0] * 10 + last.shape[0])


@pytest.mark.cpu
def test_arrays_at_addresses_read_and_write_memory_and_have_no_gradient() -> None:
    start = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    points = wp.array(start, dtype=wp.vec2)
    y = wp.zeros(3, dtype=wp.vec2, requires_grad=True)
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    addresses = wp.array([points.ptr], dtype=wp.uint64)
    with wp.Tape() as tape:
        wp.launch(at_addresses, dim=3, inputs=[addresses, 3, y, x])
    np.testing.assert_array_equal(y.numpy(), start[:, 1] + start[:, 0] * [[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(points.numpy()[:, 0, 0], start[:, 0, 0] + 100.0)
    np.testing.assert_array_equal(points.numpy()[:, 1, 1], 31.0)
    tape.backward(grads={y: wp.ones_like(y)})
    # What the kernel has overwritten is recorded.
    np.testing.assert_array_equal(x.grad.numpy(), start[:, 0].sum(1))
