"""The documented examples of custom gradients and custom replays of functions."""

from __future__ import annotations

import numpy as np
import pytest

import warp as wp


@wp.func
def root(x: float):
    return wp.sqrt(x)


@wp.func
def safe_root(x: float):
    return wp.sqrt(x)


@wp.func_grad(safe_root)
def adjoint_of_safe_root(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += 1.0 / (2.0 * wp.sqrt(x)) * adj_ret


@wp.kernel
def roots(xs: wp.array(dtype=float), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = root(xs[i])


@wp.kernel
def safe_roots(xs: wp.array(dtype=float), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = safe_root(xs[i])


@pytest.mark.parametrize(("kernel", "at_zero"), [(roots, np.inf), (safe_roots, 0.0)])
def test_gradient_of_a_root_at_zero(kernel: wp.Kernel, at_zero: float) -> None:
    xs = wp.array([1.0, 2.0, 0.0], dtype=wp.float32, requires_grad=True)
    ys = wp.zeros_like(xs)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=len(xs), inputs=[xs], outputs=[ys])
    tape.backward(grads={ys: wp.array(np.ones(len(xs)), dtype=wp.float32)})
    np.testing.assert_allclose(ys.numpy(), [1.0, np.sqrt(2.0), 0.0], rtol=1e-6)
    np.testing.assert_allclose(xs.grad.numpy(), [0.5, np.sqrt(0.125), at_zero], rtol=1e-6)
    tape.zero()
    np.testing.assert_array_equal(xs.grad.numpy(), np.zeros(3))


@wp.func
def reversible_increment(
    buffer: wp.array(dtype=int), index: int, value: int, thread_values: wp.array(dtype=int), tid: int
):
    next_index = wp.atomic_add(buffer, index, value)
    thread_values[tid] = next_index
    return next_index


@wp.func_replay(reversible_increment)
def replay_reversible_increment(
    buffer: wp.array(dtype=int), index: int, value: int, thread_values: wp.array(dtype=int), tid: int
):
    return thread_values[tid]


@wp.kernel
def roots_in_order_of_arrival(
    counter: wp.array(dtype=int),
    thread_ids: wp.array(dtype=int),
    input: wp.array(dtype=float),
    output: wp.array(dtype=float),
):
    tid = wp.tid()
    idx = reversible_increment(counter, 0, 1, thread_ids, tid)
    output[idx] = wp.sqrt(input[idx])


def test_custom_replay_of_a_counter() -> None:
    size = 8
    input = wp.array(np.arange(1, size + 1), dtype=wp.float32, requires_grad=True)
    counter = wp.zeros(1, dtype=wp.int32)
    thread_ids = wp.zeros(size, dtype=wp.int32)
    output = wp.zeros(size, dtype=wp.float32, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(roots_in_order_of_arrival, size, inputs=[counter, thread_ids, input], outputs=[output])
    tape.backward(grads={output: wp.array(np.ones(size), dtype=wp.float32)})

    numbers = np.arange(1.0, size + 1.0)
    assert counter.numpy().tolist() == [size]
    assert sorted(thread_ids.numpy()) == list(range(size))
    np.testing.assert_allclose(output.numpy(), np.sqrt(numbers), rtol=1e-6)
    np.testing.assert_allclose(input.grad.numpy(), 0.5 / np.sqrt(numbers), rtol=1e-6)
