"""The documented examples of tapes, of allocating results, and of copies on a tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import warp as wp


@wp.kernel
def stretch(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3)):
    t = wp.tid()
    b[t] = a[t] * 3.0


@wp.kernel
def lengths(c: wp.array(dtype=wp.vec3), d: wp.array(dtype=float)):
    t = wp.tid()
    d[t] = wp.length(c[t])


@wp.kernel
def mean(d: wp.array(dtype=float), l: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(l, 0, d[t] / float(d.shape[0]))


def test_three_launches_and_a_loss() -> None:
    a = wp.zeros(1024, dtype=wp.vec3, device="cpu", requires_grad=True)
    a.fill_(wp.vec3(0.0, 3.0, 4.0))
    b = wp.zeros_like(a)
    d = wp.zeros(1024, dtype=float, device="cpu", requires_grad=True)
    l = wp.zeros(1, dtype=float, device="cpu", requires_grad=True)

    tape = wp.Tape()
    with tape:
        wp.launch(kernel=stretch, dim=1024, inputs=[a, b], device="cpu")
        wp.launch(kernel=lengths, dim=1024, inputs=[b, d], device="cpu")
        wp.launch(kernel=mean, dim=1024, inputs=[d, l], device="cpu")
    tape.backward(l)

    expected = np.tile(np.array([0.0, 0.6, 0.8]) * 3.0 / 1024.0, (1024, 1))
    assert l.numpy()[0] == pytest.approx(15.0, rel=1e-4)
    np.testing.assert_allclose(a.grad.numpy(), expected, rtol=1e-5)
    assert tape.gradients[a] is a.grad

    tape.backward(l)
    np.testing.assert_allclose(a.grad.numpy(), 2.0 * expected, rtol=1e-5)
    tape.zero()
    tape.backward(l)
    np.testing.assert_allclose(a.grad.numpy(), expected, rtol=1e-5)


@wp.kernel
def polynomial(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    tid = wp.tid()
    y[tid] = x[tid] ** 2.0 + 3.0 * x[tid] + 1.0


@pytest.mark.parametrize("separate", [True, False])
def test_results_are_allocated_by_the_user(separate: bool) -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        if separate:
            wp.launch(polynomial, x.shape, inputs=[x], outputs=[y])
        else:
            wp.launch(polynomial, x.shape, inputs=[x, y])
    tape.backward(grads={y: wp.ones_like(x)})
    assert str(x.grad) == "[5. 7. 9.]"


@pytest.fixture
def backward_disabled() -> Iterator[None]:
    wp.config.enable_backward = False
    yield
    wp.config.enable_backward = True


@pytest.mark.usefixtures("backward_disabled")
def test_in_place_without_gradients() -> None:
    @wp.kernel
    def polynomial_in_place(x: wp.array(dtype=float)):
        tid = wp.tid()
        x[tid] = x[tid] ** 2.0 + 3.0 * x[tid] + 1.0

    x = wp.array([1.0, 2.0, 3.0], dtype=float)
    wp.launch(polynomial_in_place, x.shape, inputs=[x])
    assert str(x) == "[ 5. 11. 19.]"


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    tid = wp.tid()
    y[tid] = x[tid] * 2.0


def copied(y: wp.array) -> wp.array:
    z = wp.zeros_like(y)
    wp.copy(z, y)
    return z


def cloned(y: wp.array) -> wp.array:
    return wp.clone(y, requires_grad=True)


def assigned(y: wp.array) -> wp.array:
    z = wp.zeros_like(y)
    z.assign(y)
    return z


@pytest.mark.parametrize("duplicate", [copied, cloned, assigned])
def test_copies_are_differentiable(duplicate: Callable[[wp.array], wp.array]) -> None:
    x = wp.array(np.arange(3), dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        wp.launch(double, dim=3, inputs=[x, y])
        z = duplicate(y)
    tape.backward(grads={z: wp.ones_like(x)})
    assert str(z) == "[0. 2. 4.]"
    assert str(x.grad) == "[2. 2. 2.]"


def test_clone_without_gradient_detaches() -> None:
    x = wp.array(np.arange(3), dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        detached = wp.clone(x, requires_grad=False)
        wp.launch(double, dim=3, inputs=[detached, y])
    tape.backward(grads={y: wp.ones_like(x)})
    assert not detached.requires_grad
    assert str(x.grad) == "[0. 0. 0.]"


def test_copy_of_a_part() -> None:
    x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
    z = wp.zeros(5, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.copy(z, x, dest_offset=3, src_offset=1, count=2)
    tape.backward(grads={z: wp.array([1.0, 2.0, 3.0, 4.0, 5.0], dtype=float)})
    assert str(z) == "[0. 0. 0. 2. 3.]"
    assert str(x.grad) == "[0. 4. 5. 0.]"


@wp.kernel
def subtract(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    a[i] -= b[i]


@wp.kernel
def add_atomically(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(a, i, b[i])


@pytest.mark.parametrize(("kernel", "sign"), [(subtract, -1.0), (add_atomically, 1.0)])
def test_in_place_addition_and_subtraction(kernel: wp.Kernel, sign: float) -> None:
    a = wp.full(10, value=10.0, dtype=float, requires_grad=True)
    b = wp.full(10, value=2.0, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, a.shape, inputs=[a, b])
    tape.backward(grads={a: wp.ones_like(a)})
    np.testing.assert_array_equal(a.numpy(), np.full(10, 10.0 + sign * 2.0))
    np.testing.assert_array_equal(a.grad.numpy(), np.ones(10))
    np.testing.assert_array_equal(b.grad.numpy(), np.full(10, sign))
