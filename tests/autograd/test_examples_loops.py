"""The documented examples of dynamic loops, with the right gradients also where other systems give wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

import warp as wp

Floats = wp.array(dtype=float)


@wp.kernel
def sum_loop(x: Floats, loss: Floats, iters: int):
    sum = float(0.0)
    for i in range(iters):
        sum += x[i]
    wp.atomic_add(loss, 0, sum)


@wp.kernel
def product_loop(x: Floats, loss: Floats, iters: int):
    prod = float(1.0)
    for i in range(iters):
        prod *= x[i]
    wp.atomic_add(loss, 0, prod)


@wp.kernel
def product_loop_with_plain_literal(x: Floats, loss: Floats, iters: int):
    prod = 1.0
    for i in range(iters):
        prod *= x[i]
    wp.atomic_add(loss, 0, prod)


@wp.kernel
def static_product_loop(x: Floats, loss: Floats, iters: int):
    prod = float(1.0)
    for i in range(3):
        prod *= x[i]
    wp.atomic_add(loss, 0, prod)


PRODUCTS = [product_loop, product_loop_with_plain_literal, static_product_loop]


def gradient_of(kernel: wp.Kernel, x: wp.array, *others: wp.array) -> str:
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x, *others, loss, 3])
    tape.backward(loss)
    return str(x.grad)


def test_sum() -> None:
    assert gradient_of(sum_loop, wp.full(shape=3, value=1.0, dtype=float, requires_grad=True)) == "[1. 1. 1.]"


@pytest.mark.parametrize("kernel", PRODUCTS, ids=lambda kernel: kernel.key)
def test_product(kernel: wp.Kernel) -> None:
    assert gradient_of(kernel, wp.full(shape=3, value=2.0, dtype=float, requires_grad=True)) == "[4. 4. 4.]"


@wp.kernel
def normalised_sum(x: Floats, weights: Floats, loss: Floats, iters: int):
    sum = float(0.0)
    norm = float(0.0)
    for i in range(iters):
        w = weights[i]
        norm += w
        sum += x[i] * w
    l = sum / norm
    wp.atomic_add(loss, 0, l)


@wp.func
def sum_and_norm(x: Floats, weights: Floats, iters: int):
    sum = float(0.0)
    norm = float(0.0)
    for i in range(iters):
        w = weights[i]
        norm += w
        sum += x[i] * w
    return sum, norm


@wp.kernel
def normalised_sum_by_function(x: Floats, weights: Floats, loss: Floats, iters: int):
    sum, norm = sum_and_norm(x, weights, iters)
    l = sum / norm
    wp.atomic_add(loss, 0, l)


@pytest.mark.parametrize(("kernel", "weight"), [(normalised_sum, 1.0), (normalised_sum_by_function, 0.5)])
def test_normalised_sum(kernel: wp.Kernel, weight: float) -> None:
    x = wp.array([1.0, 2.0, 4.0], dtype=float, requires_grad=True)
    weights = wp.full(shape=3, value=weight, dtype=float, requires_grad=True)
    gradient_of(kernel, x, weights)
    np.testing.assert_allclose(x.grad.numpy(), np.full(3, 1.0 / 3.0), rtol=1e-6)
    mean = 7.0 / 3.0
    np.testing.assert_allclose(weights.grad.numpy(), (x.numpy() - mean) / (3.0 * weight), rtol=1e-5)


@wp.kernel
def product_in_array(x: Floats, prods: Floats, loss: Floats, iters: int):
    for i in range(iters):
        prods[i + 1] = x[i] * prods[i]
    wp.atomic_add(loss, 0, prods[iters])


def test_product_kept_in_an_array() -> None:
    x = wp.full(shape=3, value=2.0, dtype=float, requires_grad=True)
    prods = wp.full(shape=4, value=1.0, dtype=float, requires_grad=True)
    assert gradient_of(product_in_array, x, prods) == "[4. 4. 4.]"
    np.testing.assert_array_equal(prods.numpy(), [1.0, 2.0, 4.0, 8.0])
