"""The tests of bridges to frameworks that differentiate: gradients are shared, whoever changes them."""

from __future__ import annotations

import gc
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

import warp as wp
from warp.errors import ArgumentError
from warp.testing.bridge_tests import BridgeTests
from warp.testing.checks import assert_raises


@wp.kernel
def square_sum(x: wp.array(dtype=float), loss: wp.array(dtype=float)) -> None:  # type: ignore[valid-type]  # of kernels
    """Add up squares."""
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


@wp.kernel
def dot_sum(x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)) -> None:  # type: ignore[valid-type]  # of kernels
    """Add up squared lengths."""
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.dot(x[i], x[i]))


class GradientConformance(BridgeTests):
    """Tests for pytest, besides those of `BridgeConformance`: subclass, and say how the framework differentiates.

    The framework has tensors of float32, and `bridge.gradients`.
    """

    clearers: ClassVar[Mapping[str, Callable[[Any], object]]]
    """What clears the gradient of a tensor in the framework, its optimisers included, by name."""

    @abstractmethod
    def make_leaf(self, values: Any) -> Any:
        """Return a tensor of the values of a NumPy array that the framework is to differentiate by."""

    @abstractmethod
    def without_differentiation(self) -> AbstractContextManager[Any]:
        """Return a context in which the framework does not differentiate."""

    @abstractmethod
    def descend(self, tensor: Any, rate: float) -> None:
        """Let an optimiser of the framework take one step of gradient descent."""

    def backward(self, result: Any, gradient: Any) -> None:
        """Let the framework carry the gradient of a result back to the leaves."""
        result.backward(gradient)

    def gradient_of(self, tensor: Any) -> Any:
        """Return the gradient of a tensor as the framework shows it to its users, a tensor or None."""
        return tensor.grad

    # ------------------------------------------------------------------ sharing

    def test_a_tape_fills_the_tensors_own_gradient(self) -> None:
        """What a tape finds is in the tensor's gradient, without a copy."""
        x = self._leaf(1.0, 2.0, 3.0)
        array = self._from(x)
        assert array.requires_grad
        _differentiate(array)
        self._assert_gradient(x, [2.0, 4.0, 6.0])
        array.grad.fill_(7.0)
        self._assert_gradient(x, [7.0, 7.0, 7.0])

    def test_vectors_share_their_gradient(self) -> None:
        """So it is for elements of several components."""
        values = np.arange(12, dtype=np.float32).reshape(4, 3)
        x = self.make_leaf(values)
        _differentiate(self._from(x, dtype=wp.vec3), dot_sum)
        self._assert_gradient(x, 2 * values)

    def test_both_sides_add_to_one_gradient(self) -> None:
        """The framework's own differentiation adds to what a tape has found, and the other way round."""
        x = self._leaf(1.0, 2.0)
        array = self._from(x)
        _differentiate(array)
        self._differentiate_thrice(x)
        self._assert_gradient(x, [5.0, 7.0])
        np.testing.assert_array_equal(array.grad.numpy(), [5.0, 7.0])
        for clear in self.clearers.values():
            clear(x)
            self._differentiate_thrice(x)  # the framework may make a gradient of its own
            _differentiate(array)
            self._assert_gradient(x, [5.0, 7.0])
            np.testing.assert_array_equal(array.grad.numpy(), [5.0, 7.0])

    def test_views_follow_a_replaced_gradient(self) -> None:
        """A part of an array has a part of the tensor's gradient, also of the next one."""
        for clear in self.clearers.values():
            x = self._leaf(1.0, 2.0, 3.0)
            part = self._from(x)[1:]
            clear(x)
            _differentiate(part)
            self._assert_gradient(x, [0.0, 4.0, 6.0])

    def test_one_array_serves_every_step(self) -> None:
        """An array made once sees the steps of an optimiser, and the optimiser its gradients."""
        for name, clear in self.clearers.items():
            expected = np.array([1.0, -2.0], np.float32)
            x = self.make_leaf(expected)
            array = self._from(x)
            for _ in range(3):
                clear(x)
                _differentiate(array)
                self._assert_gradient(x, 2 * expected)
                self.descend(x, 0.25)
                expected = expected - np.float32(0.25) * 2 * expected
                np.testing.assert_array_equal(array.numpy(), expected, err_msg=name)

    def test_a_tape_recorded_once_serves_every_step(self) -> None:
        """So does a tape, if its launches run again after the step, also on arrays that are made anew."""
        for name, clear in self.clearers.items():
            for wraps_anew in (False, True):
                expected = np.array([0.75, 1.5], np.float32)
                x, loss = self.make_leaf(expected), wp.zeros(1, requires_grad=True)
                array = self._from(x)
                with wp.Tape() as tape:
                    wp.launch(square_sum, dim=2, inputs=[array], outputs=[loss])
                for _ in range(3):
                    clear(x)
                    tape.backward(loss)
                    self._assert_gradient(x, 2 * expected)
                    self.descend(x, 0.25)
                    expected = expected - np.float32(0.25) * 2 * expected
                    loss.zero_()
                    again = self._from(x) if wraps_anew else array
                    wp.launch(square_sum, dim=2, inputs=[again], outputs=[loss])
                    np.testing.assert_allclose(loss.numpy(), [np.sum(expected**2)], rtol=1e-6, err_msg=name)

    def test_a_tensor_of_an_array_is_optimised(self) -> None:
        """Likewise for a tensor that was made of an array with a gradient."""
        for clear in self.clearers.values():
            array: Any = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
            x = self._tensor_of(array)
            for expected in ([2.0, 4.0], [0.0, 0.0]):
                clear(x)
                _differentiate(array)
                self._assert_gradient(x, expected)
                self.descend(x, 0.5)
            np.testing.assert_array_equal(array.numpy(), [0.0, 0.0])

    # ------------------------------------------------------------------ who has a gradient

    def test_requires_grad_is_obeyed(self) -> None:
        """True makes a gradient and leaves the tensor as it is; False means none."""
        x = self.make_tensor(np.array([1.0, 2.0], np.float32))
        array = self._from(x, requires_grad=True)
        _differentiate(array)
        np.testing.assert_array_equal(array.grad.numpy(), [2.0, 4.0])
        self._assert_gradient(x, [2.0, 4.0])
        assert not self._is_required(x)
        leaf = self._leaf(1.0)
        assert self._from(leaf, requires_grad=False).grad is None
        assert self.gradient_of(leaf) is None

    def test_requires_grad_is_obeyed_on_the_way_back(self) -> None:
        """A tensor requires a gradient if the array does, or if that is asked for."""
        for has, wants, is_required in ((True, None, True), (True, False, False), (False, True, True)):
            tensor = self._tensor_of(wp.zeros(2, requires_grad=has), requires_grad=wants)
            assert self._is_required(tensor) is is_required, (has, wants)

    def test_a_given_gradient_is_used_and_not_attached(self) -> None:
        """`grad` is a tensor or an array; the tensor stays without a gradient."""
        for wrap in (lambda t: t, self._from):
            x, gradient = self._leaf(1.0, 2.0), self.make_tensor(np.ones(2, np.float32))
            _differentiate(self._from(x, grad=wrap(gradient)))
            np.testing.assert_array_equal(self.values_of(gradient), [3.0, 5.0])
            assert self.gradient_of(x) is None

    def test_a_gradient_that_does_not_fit_is_refused(self) -> None:
        """Shape and type are those of the tensor."""
        for gradient in (self.make_tensor(np.ones(3, np.float32)), self.make_tensor(np.ones(2, np.int32)), 1.0):
            assert_raises(ArgumentError, lambda gradient=gradient: self._from(self._leaf(1.0, 2.0), grad=gradient))  # type: ignore[misc]  # binds the value now

    def test_nothing_is_attached_while_differentiation_is_off(self) -> None:
        """In an operator the framework adds to the gradient itself: a shared one would count twice."""
        x = self._leaf(1.0, 2.0)
        with self.without_differentiation():
            array = self._from(x)
        assert array.requires_grad
        _differentiate(array)
        np.testing.assert_array_equal(array.grad.numpy(), [2.0, 4.0])
        assert self.gradient_of(x) is None

    def test_a_result_keeps_its_gradient_to_itself(self) -> None:
        """The gradient of what the framework has computed is the array's own, and can be handed on."""
        x = self._leaf(1.0, 2.0)
        y = 3 * x
        array = self._from(y)
        _differentiate(array)
        np.testing.assert_array_equal(array.grad.numpy(), [6.0, 12.0])
        self.backward(y, self._to(array.grad, requires_grad=False))
        self._assert_gradient(x, [18.0, 36.0])

    def test_tensors_in_taped_launches_are_never_changed_by_backward_passes(self) -> None:
        """Nor are those that arrays were made of."""
        x, y = (self.make_tensor(np.full(3, value, np.float32)) for value in (1.0, 2.0))
        _differentiate(x)
        _differentiate(self._from(y, requires_grad=True))
        np.testing.assert_array_equal(self.values_of(x), [1.0] * 3)
        np.testing.assert_array_equal(self.values_of(y), [2.0] * 3)

    def test_arrays_and_tapes_keep_no_tensor_alive(self) -> None:
        """A tensor whose gradient was shared is freed when it is no longer used."""
        references = []
        for _ in range(5):
            x = self._leaf(1.0, 2.0)
            _differentiate(self._from(x))
            references.append(weakref.ref(x))
        del x
        gc.collect()
        assert not any(reference() is not None for reference in references)

    # ------------------------------------------------------------------ helpers

    def _leaf(self, *values: float) -> Any:
        return self.make_leaf(np.array(values, np.float32))

    def _tensor_of(self, a: Any, **options: Any) -> Any:
        """Return what the public function gives, which may do more than what follows from the bridge."""
        return getattr(wp, f"to_{self.bridge.name}")(a, **options)

    def _is_required(self, tensor: Any) -> bool:
        gradients = self.bridge.gradients
        assert gradients is not None
        return gradients.is_required(tensor)

    def _differentiate_thrice(self, x: Any) -> None:
        y = 3 * x
        self.backward(y, self.make_tensor(np.ones(y.shape, np.float32)))

    def _assert_gradient(self, tensor: Any, expected: Any) -> None:
        gradient = self.gradient_of(tensor)
        assert gradient is not None
        np.testing.assert_array_equal(self.values_of(gradient), np.array(expected, np.float32))


def _differentiate(x: Any, kernel: Any = square_sum) -> None:
    """Let a tape find the gradient of a sum of squares."""
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=x.shape[0], inputs=[x], outputs=[loss])
    tape.backward(loss)
