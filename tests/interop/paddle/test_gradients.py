"""Gradients are shared: what either side adds, clears or replaces, the other one sees."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest

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


def leaf(values: Any) -> Any:
    tensor = values.detach() if isinstance(values, paddle.Tensor) else paddle.to_tensor(values, dtype="float32")
    tensor.stop_gradient = False
    return tensor


def test_a_tape_fills_the_tensors_own_gradient() -> None:
    x = leaf([1.0, 2.0, 3.0])
    array = wp.from_paddle(x)
    assert array.requires_grad
    backward(array)
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert array.grad.ptr == x.grad.data_ptr()


def test_vectors_share_their_gradient() -> None:
    x = leaf(np.arange(12).reshape(4, 3))
    backward(wp.from_paddle(x, dtype=wp.vec3), dot_sum)
    assert np.array_equal(x.grad.numpy(), 2 * x.numpy())


def test_a_strided_leaf_has_a_gradient_of_its_shape() -> None:
    x = leaf(paddle.arange(12, dtype="float32").reshape([3, 4]).t())
    array = wp.from_paddle(x)
    assert array.grad.shape == (4, 3)
    x.grad[1, 2] = 7.0
    assert array.grad.numpy()[1, 2] == 7.0
    (3 * x).sum().backward()
    assert x.grad.numpy()[1, 2] == array.grad.numpy()[1, 2] == 10.0


CLEAR: dict[str, Callable[[Any, Any], Any]] = {
    "to zero": lambda optimizer, x: optimizer.clear_grad(),
    "to none": lambda optimizer, x: optimizer.clear_grad(set_to_zero=False),
    "of the tensor": lambda optimizer, x: x.clear_gradient(),
    "of the tensor, to none": lambda optimizer, x: x.clear_gradient(set_to_zero=False),
    "assigned": lambda optimizer, x: setattr(x, "grad", None),
}


@pytest.mark.parametrize("way", CLEAR)
def test_one_wrapper_serves_every_step(way: str) -> None:
    x = leaf([1.0, -2.0])
    array = wp.from_paddle(x)
    optimizer = paddle.optimizer.SGD(learning_rate=0.25, parameters=[x])
    expected = np.array([1.0, -2.0])
    for _ in range(3):
        CLEAR[way](optimizer, x)
        backward(array)
        assert np.array_equal(x.grad.numpy(), 2 * expected)
        optimizer.step()
        expected = expected - 0.25 * 2 * expected
        assert np.array_equal(array.numpy(), expected)


def test_both_sides_add_to_one_gradient() -> None:
    x = leaf([1.0, 2.0])
    array = wp.from_paddle(x)
    backward(array)
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert array.grad.numpy().tolist() == [5.0, 7.0]
    x.grad = None
    (3 * x).sum().backward()  # autograd makes a gradient of its own
    backward(array)
    assert x.grad.tolist() == [5.0, 7.0]
    assert array.grad.numpy().tolist() == [5.0, 7.0]


def test_an_assigned_gradient_is_the_arrays() -> None:
    x = leaf([1.0, 2.0])
    array = wp.from_paddle(x)
    x.grad = paddle.to_tensor([10.0, 20.0])
    backward(array)
    assert x.grad.tolist() == [12.0, 24.0]


def test_a_gradient_that_was_cleared_is_still_memory() -> None:
    x = leaf([1.0, 2.0])
    array = wp.from_paddle(x)
    backward(array)
    gradient = array.grad
    x.grad = None
    gc.collect()
    others = [paddle.full([2], 7.0) for _ in range(8)]
    assert gradient.numpy().tolist() == [2.0, 4.0]
    assert array.grad.numpy().tolist() == [0.0, 0.0]
    assert len(others) == 8


def test_views_follow_a_replaced_gradient() -> None:
    x = leaf([1.0, 2.0, 3.0])
    part = wp.from_paddle(x)[1:]
    x.grad = None
    backward(part)
    assert x.grad.tolist() == [0.0, 4.0, 6.0]


def test_requires_grad_true_makes_a_gradient_and_leaves_the_tensor_plain() -> None:
    x = paddle.to_tensor([1.0, 2.0])
    array = wp.from_paddle(x, requires_grad=True)
    backward(array)
    assert array.grad.numpy().tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [2.0, 4.0]
    assert x.stop_gradient


def test_requires_grad_false_has_none() -> None:
    x = leaf([1.0])
    array = wp.from_paddle(x, requires_grad=False)
    assert array.grad is None
    assert x.grad is None


@pytest.mark.parametrize("wrap", [lambda t: t, wp.from_paddle])
def test_a_given_gradient_is_used_and_not_attached(wrap: Any) -> None:
    x, gradient = leaf([1.0, 2.0]), paddle.ones([2])
    array = wp.from_paddle(x, grad=wrap(gradient))
    backward(array)
    assert gradient.tolist() == [3.0, 5.0]
    assert x.grad is None


@pytest.mark.parametrize("gradient", [paddle.ones([3]), paddle.ones([2], dtype="float64"), 1.0])
def test_a_gradient_that_does_not_fit_is_refused(gradient: Any) -> None:
    with pytest.raises(ArgumentError):
        wp.from_paddle(leaf([1.0, 2.0]), grad=gradient)


def test_nothing_is_attached_while_differentiation_is_off() -> None:
    x = leaf([1.0, 2.0])
    with paddle.no_grad():
        array = wp.from_paddle(x)
    assert array.requires_grad
    backward(array)
    assert array.grad.numpy().tolist() == [2.0, 4.0]
    assert x.grad is None


def test_a_result_keeps_its_gradient_to_itself() -> None:
    x = leaf([1.0, 2.0])
    y = 3 * x
    array = wp.from_paddle(y)
    backward(array)
    assert array.grad.numpy().tolist() == [6.0, 12.0]
    paddle.autograd.backward([y], [wp.to_paddle(array.grad)])
    assert x.grad.tolist() == [18.0, 36.0]


def test_to_paddle_shares_the_arrays_gradient() -> None:
    array = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    x = wp.to_paddle(array)
    assert not x.stop_gradient
    assert x.is_leaf
    assert x.grad.data_ptr() == array.grad.ptr
    optimizer = paddle.optimizer.SGD(learning_rate=0.5, parameters=[x])
    for expected in ([2.0, 4.0], [0.0, 0.0]):
        optimizer.clear_grad(set_to_zero=False)
        backward(array)
        assert x.grad.tolist() == expected
        optimizer.step()
    assert array.numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("has", "wants", "is_required"), [(True, None, True), (True, False, False), (False, True, True)]
)
def test_to_paddle_requires_grad(has: bool, wants: bool | None, is_required: bool) -> None:
    tensor = wp.to_paddle(wp.zeros(2, requires_grad=has), requires_grad=wants)
    assert tensor.stop_gradient is not is_required


def test_a_gradient_that_paddle_cannot_share_is_refused() -> None:
    array = wp.zeros((3, 4), requires_grad=True).transpose()
    with pytest.raises(ArgumentError, match="row-major"):
        wp.to_paddle(array)
    assert wp.to_paddle(array, requires_grad=False).strides == [1, 4]


def test_empty_and_single_elements() -> None:
    for shape in ((0,), (2, 0), ()):
        array = wp.from_paddle(leaf(np.ones(shape)))
        assert array.grad.shape == array.shape == shape
        assert tuple(wp.to_paddle(wp.zeros(shape, requires_grad=True)).grad.shape) == shape


def test_a_tensor_in_a_taped_launch_is_never_changed_by_the_backward_pass() -> None:
    x, y = paddle.ones([3]), paddle.full([3], 2.0)
    backward(x)
    backward(wp.from_paddle(y, requires_grad=True))
    assert x.tolist() == [1.0] * 3
    assert y.tolist() == [2.0] * 3


def test_wrappers_and_tapes_keep_no_tensor_alive() -> None:
    references = []
    for _ in range(5):
        x = leaf([1.0, 2.0])
        backward(wp.from_paddle(x))
        references.append(weakref.ref(x))
    del x
    gc.collect()
    assert not any(reference() is not None for reference in references)
