"""Gradients are shared: what either side adds, clears or replaces, the other one sees."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def square_sum(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


@wp.kernel
def dot_sum(x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.dot(x[i], x[i]))


def backward(x: Any, kernel: Any = square_sum) -> None:
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=x.shape[0], inputs=[x], outputs=[loss])
    tape.backward(loss)


def values(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, requires_grad=True)


def test_a_tape_fills_the_tensors_own_gradient() -> None:
    x = values(1.0, 2.0, 3.0)
    array = wp.from_torch(x)
    assert array.requires_grad
    backward(array)
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert array.grad.ptr == x.grad.data_ptr()


def test_vectors_share_their_gradient() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(4, 3).requires_grad_()
    backward(wp.from_torch(x, dtype=wp.vec3), dot_sum)
    assert torch.equal(x.grad, 2 * x.detach())


def test_a_strided_leaf_has_a_gradient_of_its_shape() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4).t().requires_grad_()
    array = wp.from_torch(x)
    assert array.grad.shape == (4, 3)
    x.grad[1, 2] = 7.0
    assert array.grad.numpy()[1, 2] == 7.0


def test_a_gradient_of_other_strides_is_shared() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(4, 3).requires_grad_()
    x.grad = gradient = torch.ones(3, 4).t()
    backward(wp.from_torch(x, dtype=wp.vec3, grad=gradient.contiguous()), dot_sum)
    assert gradient.tolist() == [[1.0] * 3] * 4
    flat = wp.from_torch(x)
    flat.grad.numpy()[1, 2] = 7.0
    assert x.grad[1, 2] == 7.0
    assert x.grad is gradient


@pytest.mark.parametrize("set_to_none", [True, False])
def test_one_wrapper_serves_every_step(set_to_none: bool) -> None:
    x = values(1.0, -2.0)
    array = wp.from_torch(x)
    optimizer = torch.optim.SGD([x], lr=0.25)
    expected = np.array([1.0, -2.0])
    for _ in range(3):
        optimizer.zero_grad(set_to_none=set_to_none)
        backward(array)
        assert np.array_equal(x.grad.numpy(), 2 * expected)
        optimizer.step()
        expected = expected - 0.25 * 2 * expected
        assert np.array_equal(array.numpy(), expected)


def test_both_sides_add_to_one_gradient() -> None:
    x = values(1.0, 2.0)
    array = wp.from_torch(x)
    backward(array)
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert array.grad.numpy().tolist() == [5.0, 7.0]
    x.grad = None
    (3 * x).sum().backward()  # autograd makes a gradient of its own
    backward(array)
    assert x.grad.tolist() == [5.0, 7.0]
    assert array.grad.numpy().tolist() == [5.0, 7.0]


def test_views_follow_a_replaced_gradient() -> None:
    x = values(1.0, 2.0, 3.0)
    part = wp.from_torch(x)[1:]
    x.grad = None
    backward(part)
    assert x.grad.tolist() == [0.0, 4.0, 6.0]


def test_requires_grad_true_makes_a_gradient_and_leaves_the_tensor_plain() -> None:
    x = torch.tensor([1.0, 2.0])
    array = wp.from_torch(x, requires_grad=True)
    backward(array)
    assert array.grad.numpy().tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [2.0, 4.0]
    assert not x.requires_grad


def test_requires_grad_false_has_none() -> None:
    x = values(1.0)
    array = wp.from_torch(x, requires_grad=False)
    assert array.grad is None
    assert x.grad is None


@pytest.mark.parametrize("wrap", [lambda t: t, wp.from_torch])
def test_a_given_gradient_is_used_and_not_attached(wrap: Any) -> None:
    x, gradient = values(1.0, 2.0), torch.ones(2)
    array = wp.from_torch(x, grad=wrap(gradient))
    backward(array)
    assert gradient.tolist() == [3.0, 5.0]
    assert x.grad is None


@pytest.mark.parametrize("gradient", [torch.ones(3), torch.ones(2, dtype=torch.float64), 1.0])
def test_a_gradient_that_does_not_fit_is_refused(gradient: Any) -> None:
    with pytest.raises(ArgumentError):
        wp.from_torch(values(1.0, 2.0), grad=gradient)


def test_nothing_is_attached_while_differentiation_is_off() -> None:
    x = values(1.0, 2.0)
    with torch.no_grad():
        array = wp.from_torch(x)
    assert array.requires_grad
    backward(array)
    assert array.grad.numpy().tolist() == [2.0, 4.0]
    assert x.grad is None


def test_a_result_keeps_its_gradient_to_itself() -> None:
    x = values(1.0, 2.0)
    y = 3 * x
    array = wp.from_torch(y)
    backward(array)
    assert array.grad.numpy().tolist() == [6.0, 12.0]
    y.backward(wp.to_torch(array.grad))
    assert x.grad.tolist() == [18.0, 36.0]


def test_to_torch_shares_the_arrays_gradient() -> None:
    array = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    x = wp.to_torch(array)
    assert x.requires_grad
    assert x.is_leaf
    optimizer = torch.optim.SGD([x], lr=0.5)
    for expected in ([2.0, 4.0], [0.0, 0.0]):
        optimizer.zero_grad()
        backward(array)
        assert x.grad.tolist() == expected
        optimizer.step()
    assert array.numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("has", "wants", "is_required"), [(True, None, True), (True, False, False), (False, True, True)]
)
def test_to_torch_requires_grad(has: bool, wants: bool | None, is_required: bool) -> None:
    tensor = wp.to_torch(wp.zeros(2, requires_grad=has), requires_grad=wants)
    assert tensor.requires_grad is is_required


def test_a_tensor_in_a_taped_launch_is_never_changed_by_the_backward_pass() -> None:
    x = torch.ones(3)
    y = torch.full((3,), 2.0)
    backward(x)
    array = wp.from_torch(y, requires_grad=True)
    backward(array)
    assert x.tolist() == [1.0] * 3
    assert y.tolist() == [2.0] * 3


def test_wrappers_and_tapes_keep_no_tensor_alive() -> None:
    references = []
    for _ in range(5):
        x = values(1.0, 2.0)
        backward(wp.from_torch(x))
        references.append(weakref.ref(x))
    del x
    gc.collect()
    assert not any(reference() is not None for reference in references)
