"""bfloat16 in kernels: every kind of use that float16 has, and what each gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell
from warp._src.lang.source import build_kernel

B = wp.bfloat16
Narrow = wp.array(dtype=B)
Vec = wp.types.vector(3, B)
Mat = wp.types.matrix((2, 2), B)


def numbers(array: Any) -> np.ndarray:
    """Read an array of bfloat16 as float32."""
    return B.decode_array(array.numpy())


def rounded(values: Any) -> np.ndarray:
    return B.decode_array(B.encode_array(np.asarray(values)))


@wp.struct
class Sample:
    weight: B
    direction: Vec
    count: int


@wp.func
def softened(x: wp.Float):
    return x / (type(x)(1.0) + wp.abs(x))


@wp.kernel
def mixed(x: Narrow, v: wp.array(dtype=Vec), samples: wp.array(dtype=Sample), y: Narrow, w: wp.array(dtype=Vec)):
    i = wp.tid()
    s = samples[i]
    total = softened(x[i]) * s.weight
    for k in range(s.count):
        total = total * B(0.5) + wp.sin(v[i][k % 3])
    m = Mat(x[i], s.weight, B(0.0), B(1.0))
    y[i] = total + wp.determinant(m) + wp.where(x[i] > s.weight, x[i], B(2.0))
    w[i] = wp.normalize(v[i]) + wp.cw_mul(s.direction, v[i]) * wp.max(v[i])


def arguments() -> list[Any]:
    random = np.random.default_rng(3)
    samples = []
    for _ in range(4):
        s = Sample()
        s.weight, s.direction, s.count = random.uniform(-2, 2), Vec(*random.uniform(-2, 2, 3)), int(random.integers(5))
        samples.append(s)
    return [
        wp.array(random.uniform(-2, 2, 4), dtype=B, requires_grad=True),
        wp.array(random.uniform(-2, 2, (4, 3)), dtype=Vec, requires_grad=True),
        wp.array(samples, dtype=Sample, requires_grad=True),
        wp.zeros(4, dtype=B, requires_grad=True),
        wp.zeros(4, dtype=Vec, requires_grad=True),
    ]


def test_compiled_code_is_the_interpreter_bit_for_bit() -> None:
    given = arguments()
    wp.launch(mixed, dim=4, inputs=given)
    fresh = arguments()
    structs = np.empty(4, object)
    for place, sample in enumerate(fresh[2].list()):
        structs[place] = {
            "weight": np.float32(float(sample.weight)),
            "direction": np.asarray(sample.direction),
            "count": np.int32(sample.count),
        }
    y, w = np.zeros(4, np.float32), np.zeros((4, 3), np.float32)
    cells = [numbers(fresh[0]), numbers(fresh[1]), ArrayCell(structs, None, Sample), y, w]
    run_kernel(build_kernel(mixed, tuple(type for _, type in mixed.parameters)), 4, cells)
    np.testing.assert_array_equal(numbers(given[3]), y)
    np.testing.assert_array_equal(numbers(given[4]), w)


def loss_of(x: np.ndarray, v: np.ndarray, samples: list[Any]) -> float:
    """The sum of all outputs in float64."""
    result = 0.0
    for i, s in enumerate(samples):
        weight, direction = float(s.weight), np.asarray(s.direction, np.float64)
        total = x[i] / (1 + abs(x[i])) * weight
        for k in range(s.count):
            total = total * 0.5 + np.sin(v[i, k % 3])
        result += total + x[i] + (x[i] if x[i] > weight else 2.0)
        result += np.sum(v[i] / np.linalg.norm(v[i]) + direction * v[i] * v[i].max())
    return float(result)


def test_gradients_are_those_of_the_function() -> None:
    x, v, samples, y, w = arguments()
    with wp.Tape() as tape:
        wp.launch(mixed, dim=4, inputs=[x, v, samples, y, w])
    tape.backward(grads={y: wp.ones_like(y), w: wp.ones_like(w)})
    at = [numbers(x).astype(float), numbers(v).astype(float)]
    for array, values in ((x, at[0]), (v, at[1])):
        slopes = np.zeros_like(values)
        for place in np.ndindex(values.shape):
            kept = values[place]
            values[place] = kept + 1e-6
            slopes[place] = loss_of(*at, samples.list())
            values[place] = kept - 1e-6
            slopes[place] = (slopes[place] - loss_of(*at, samples.list())) / 2e-6
            values[place] = kept
        np.testing.assert_allclose(numbers(array.grad), slopes, rtol=0.05, atol=0.08)
    weights = B.decode_array(samples.grad.numpy()["weight"])
    expected = at[0] / (1 + np.abs(at[0])) * 0.5 ** np.array([s.count for s in samples.list()])
    np.testing.assert_allclose(weights, expected, rtol=0.05, atol=0.02)


@wp.kernel
def atomics(x: Narrow, y: Narrow, v: wp.array(dtype=Vec), old: Narrow):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i])
    y[1] -= x[i]
    wp.atomic_min(y, 2, x[i])
    wp.atomic_max(y, 3, x[i])
    old[i] = wp.atomic_exch(y, 4, x[i])
    wp.atomic_cas(y, 5, B(7.0), x[i])
    wp.atomic_add(v, 0, Vec(x[i], B(1.0), -x[i]))
    v[0][1] += x[i]


@pytest.mark.cpu
def test_atomics_and_their_gradients() -> None:
    x = wp.array([2.0, -1.0, 0.5], dtype=B, requires_grad=True)
    y = wp.array([0.0, 0.0, 9.0, -9.0, 5.0, 7.0], dtype=B, requires_grad=True)
    v, old = wp.zeros(1, dtype=Vec, requires_grad=True), wp.zeros(3, dtype=B, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(atomics, dim=3, inputs=[x, y, v, old])
    np.testing.assert_array_equal(numbers(y), [1.5, -1.5, -1.0, 2.0, 0.5, 2.0])
    np.testing.assert_array_equal(numbers(old), [5.0, 2.0, -1.0])
    np.testing.assert_array_equal(numbers(v), [[1.5, 4.5, -1.5]])
    seed = wp.array([1.0, 10.0, 100.0, 1000.0, 0.0, 0.0], dtype=B)
    tape.backward(grads={y: seed, v: wp.array([[1.0, 2.0, 4.0]], dtype=Vec)})
    shared = 1.0 - 10.0 + (1.0 + 2.0 - 4.0)
    np.testing.assert_array_equal(numbers(x.grad), rounded([shared + 1000.0, shared + 100.0, shared]))


@wp.kernel
def reinterpret(x: Narrow, bits: wp.array(dtype=wp.uint16), back: Narrow):
    i = wp.tid()
    bits[i] = wp.cast(x[i], wp.uint16)
    back[i] = wp.cast(bits[i], wp.bfloat16)


def test_bits_are_those_of_memory() -> None:
    x = wp.array([1.0, -2.5, np.inf], dtype=B)
    bits, back = wp.zeros(3, dtype=wp.uint16), wp.zeros(3, dtype=B)
    wp.launch(reinterpret, dim=3, inputs=[x, bits, back])
    np.testing.assert_array_equal(bits.numpy(), x.numpy())
    np.testing.assert_array_equal(back.numpy(), x.numpy())
    found = [np.zeros(3, np.uint16), np.zeros(3, np.float32)]
    run_kernel(build_kernel(reinterpret, tuple(type for _, type in reinterpret.parameters)), 3, [numbers(x), *found])
    np.testing.assert_array_equal(found[0], x.numpy())
    np.testing.assert_array_equal(found[1], numbers(x))


@wp.kernel
def cubed(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


def test_host_operations() -> None:
    x = wp.array([1.0, 2.0], dtype=B, requires_grad=True)
    np.testing.assert_array_equal(numbers(wp.map(wp.sin, x)), rounded(np.sin([1.0, 2.0])))
    assert x.list() == [1.0, 2.0] and str(x) == "[1. 2.]"
    filled = wp.full(2, Vec(1.0, 2.0, 0.5), dtype=Vec)
    assert numbers(filled).tolist() == [[1.0, 2.0, 0.5]] * 2
    assert wp.sin(B(0.5)) == float(B(np.sin(np.float32(0.5))))
    assert wp.dot(Vec(1, 2, 3), Vec(1, 2, 4)) == 17.0
    back = Sample.from_numpy_value(arguments()[2].numpy()[0])
    assert back == arguments()[2].list()[0]
    y, loss = wp.zeros(2, dtype=B, requires_grad=True), wp.zeros(1, dtype=B, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cubed, dim=2, inputs=[x, y])
        wp.copy(loss, y, src_offset=1, count=1)
    tape.backward(loss)
    np.testing.assert_array_equal(numbers(x.grad), [0.0, 12.0])
    (along,) = wp.autograd.jvp(cubed, 2, [x], [y], [wp.array([1.0, 0.5], dtype=B)])
    np.testing.assert_array_equal(numbers(along), [3.0, 6.0])


@pytest.mark.parametrize("scale", [1.0, 3.0e38])
def test_gradients_from_outside_are_added_with_rounding(scale: float) -> None:
    x, y = wp.array([1.0, 1.0], dtype=B, requires_grad=True), wp.zeros(2, dtype=B, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
    for _ in range(2):
        tape.backward(grads={y: wp.array([0.1 * scale, scale], dtype=B)})
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(numbers(x.grad), rounded(2 * rounded([0.1 * scale, scale])))
