"""The tape on events made of NumPy arithmetic: gradients, seeds, scopes, lifetimes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.autograd.elementwise import double, square, vector

from warp._src.array.array import array
from warp._src.array.copying import clone, copy
from warp._src.array.creation import full, ones, zeros, zeros_like
from warp.errors import ArgumentError, AutogradError, WarpWarning
from warp.recording import current_recorder
from warp_autograd.tape import Tape

pytestmark = pytest.mark.cpu


def test_chain_with_grads() -> None:
    x = vector(1, 2, 3)
    y, z = zeros_like(x), zeros_like(x)
    seed = vector(1, 10, 100, requires_grad=False)
    with Tape() as tape:
        square(x, y)
        double(y, z)
    tape.backward(grads={z: seed})
    np.testing.assert_allclose(x.grad.numpy(), [4, 80, 1200])
    np.testing.assert_allclose(seed.numpy(), [1, 10, 100])
    assert not y.grad.numpy().any()
    assert not z.grad.numpy().any()
    assert tape.gradients[x] is x.grad
    tape.zero()
    assert not x.grad.numpy().any()


def test_copy_clone_and_assign_are_differentiable() -> None:
    x = vector(0, 1, 2)
    y, copied = zeros_like(x), zeros_like(x)
    with Tape() as tape:
        double(x, y)
        copy(copied, y)
        cloned = clone(copied)
        z = zeros_like(x)
        z.assign(cloned)
    tape.backward(grads={z: full(3, 1.0)})
    np.testing.assert_allclose(x.grad.numpy(), [2, 2, 2])


def test_copy_with_offsets_moves_only_its_range() -> None:
    x = vector(1, 2, 3, 4, 5)
    y = zeros_like(x)
    with Tape() as tape:
        copy(y, x, src_offset=3, dest_offset=1, count=2)
    tape.backward(grads={y: vector(1, 10, 100, 1000, 10000)})
    np.testing.assert_allclose(y.numpy(), [0, 4, 5, 0, 0])
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 0, 10, 100])
    np.testing.assert_allclose(y.grad.numpy(), [1, 0, 0, 1000, 10000])


def test_copy_between_strided_views() -> None:
    x = vector(0.2, 1.1, 1.9, -0.3)
    m, o = zeros((2, 2), requires_grad=True), zeros(2, requires_grad=True)
    with Tape() as tape:
        copy(m[:, 1], x[::2])
        square(m[:, 1], o)
    tape.backward(grads={o: vector(1, 10)})
    np.testing.assert_allclose(x.grad.numpy(), [0.4, 0, 38.0, 0], rtol=1e-6)


def test_copy_within_one_array() -> None:
    x = vector(1, 2, 3)
    with Tape() as tape:
        copy(x[1:], x[:2])
    tape.backward(grads={x: vector(1, 10, 100)})
    np.testing.assert_allclose(x.numpy(), [1, 1, 2])
    np.testing.assert_allclose(x.grad.numpy(), [11, 100, 0])


@pytest.mark.parametrize("kill", [lambda y: y.fill_(3.0), lambda y: y.zero_(), lambda y: y.assign([1.0, 2.0])])
def test_new_contents_end_the_gradient(kill: Callable[[array], None]) -> None:
    x = vector(1, 2)
    y = zeros_like(x)
    with Tape() as tape:
        square(x, y)
        kill(y)
    tape.backward(grads={y: vector(1, 1)})
    assert not x.grad.numpy().any()


def test_zero_of_a_slice_ends_only_its_part() -> None:
    x = vector(1, 2, 3)
    y = zeros_like(x)
    with Tape() as tape:
        square(x, y)
        y[1:3].zero_()
    tape.backward(grads={y: vector(1, 1, 1)})
    np.testing.assert_allclose(x.grad.numpy(), [2, 0, 0])


def test_second_backward_doubles_the_leaves_exactly() -> None:
    x = vector(0.5, 1.5)
    m, o = zeros_like(x), zeros_like(x)
    with Tape() as tape:
        square(x, m, adds=True)
        double(m, o)
    for calls in (1, 2, 3):
        tape.backward(grads={o: vector(1, 1)})
        np.testing.assert_allclose(x.grad.numpy(), calls * 4 * x.numpy())


def test_without_seeds_the_gradients_are_consumed() -> None:
    x = vector(1, 2)
    y = zeros_like(x)
    with Tape() as tape:
        square(x, y)
    y.grad.fill_(1.0)
    tape.backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])
    assert not y.grad.numpy().any()
    tape.backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])


def test_gradients_present_before_are_added_back() -> None:
    x = vector(1, 2)
    y = zeros_like(x)
    with Tape() as tape:
        square(x, y)
    y.grad.fill_(5.0)
    tape.backward(grads={y: y.grad})
    np.testing.assert_allclose(x.grad.numpy(), [10, 20])
    np.testing.assert_allclose(y.grad.numpy(), [5, 5])


def test_accumulation_keeps_the_gradient_of_the_initial_contents() -> None:
    x, y = vector(1, 2), vector(1, 1)
    with Tape() as tape:
        square(x, y, adds=True)
    tape.backward(grads={y: vector(1, 1)})
    np.testing.assert_allclose(y.grad.numpy(), [1, 1])
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])


def test_retained_gradient_survives() -> None:
    x = vector(1, 2)
    y, z = zeros_like(x), zeros_like(x)
    y.retain_grad = True
    with Tape() as tape:
        square(x, y)
        square(y, z)
    tape.backward(grads={z: vector(1, 1)})
    np.testing.assert_allclose(y.grad.numpy(), [2, 8])
    np.testing.assert_allclose(x.grad.numpy(), [4, 32])
    tape.backward(grads={z: vector(1, 1)})
    np.testing.assert_allclose(y.grad.numpy(), [4, 16])
    np.testing.assert_allclose(x.grad.numpy(), [8, 64])


def test_key_of_grads_needs_no_requires_grad() -> None:
    x = vector(1, 2)
    y = zeros(2)
    with Tape() as tape:
        square(x, y)
    tape.backward(grads={y: vector(1, 1)})
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])
    assert y.grad is None
    tape.backward(grads={y[0:1]: vector(1)})
    np.testing.assert_allclose(x.grad.numpy(), [4, 4])


def test_loss_has_one_element() -> None:
    x = vector(3)
    y = zeros_like(x)
    with Tape() as tape:
        square(x, y)
    tape.backward(y)
    np.testing.assert_allclose(x.grad.numpy(), [6])
    with pytest.raises(ArgumentError, match="exactly one element"):
        tape.backward(vector(1, 2))
    with pytest.raises(ArgumentError, match="shape"):
        tape.backward(grads={y: vector(1, 2)})
    with pytest.raises(ArgumentError, match="loss"):
        tape.backward(loss=np.zeros(1))  # type: ignore[arg-type]  # what is refused


def test_gradients_pass_through_intermediates_without_a_gradient() -> None:
    x, o = vector(1, 2), zeros(2, requires_grad=True)
    m = zeros(2)
    with Tape(strict=True) as tape:
        square(x, m)
        square(m, o)
    tape.backward(grads={o: vector(1, 1)})
    np.testing.assert_allclose(x.grad.numpy(), [4, 32])
    assert not m.requires_grad
    assert m.grad is None


def test_detached_clone_is_no_cut() -> None:
    x, o = vector(1, 2), zeros(2, requires_grad=True)
    with Tape(strict=True) as tape:
        square(clone(x, requires_grad=False), o)
    tape.backward(grads={o: vector(1, 1)})
    assert not x.grad.numpy().any()


def test_branches_that_the_seeds_do_not_reach_are_not_checked() -> None:
    x, other = vector(3), vector(4)
    y, z = zeros_like(x), zeros_like(x)
    with Tape() as tape:
        square(x, y)
        square(other, z)
        other.fill_(1.0)
    tape.backward(y)
    np.testing.assert_allclose(x.grad.numpy(), [6])


def test_record_func_runs_in_order_and_its_arrays_are_zeroed() -> None:
    x = vector(1, 2)
    y, z = zeros_like(x), zeros_like(x)

    def adjoint() -> None:
        x.grad.numpy()[...] += 3 * y.grad.numpy()

    with Tape() as tape:
        y.numpy()[...] = 3 * x.numpy()
        y.mark_write()
        tape.record_func(adjoint, [x, y])
        square(y, z)
    for calls in (1, 2):
        tape.backward(grads={z: vector(1, 1)})
        np.testing.assert_allclose(x.grad.numpy(), calls * np.array([18, 36]))
    tape.zero()
    assert not x.grad.numpy().any()
    with pytest.raises(ArgumentError, match="callable"):
        tape.record_func(3, [x])  # type: ignore[arg-type]  # what is refused


def test_tapes_do_not_nest_and_belong_to_a_thread() -> None:
    x = vector(1)
    y = zeros_like(x)
    tape = Tape()
    with tape:
        for inner in (tape, Tape()):
            with pytest.raises(AutogradError, match="nested"), inner:
                pass
        thread = threading.Thread(target=lambda: square(x, y))
        thread.start()
        thread.join()
        assert not tape.events

        def attached() -> None:
            with tape.attach():
                square(x, y)

        thread = threading.Thread(target=attached)
        thread.start()
        thread.join()
    assert [event.label for event in tape.events] == ["elementwise"]
    assert current_recorder() is None


def test_scopes() -> None:
    x = vector(1)
    y = zeros_like(x)
    tape = Tape()
    with pytest.raises(AutogradError, match="record_scope_begin"):
        tape.record_scope_end()
    with tape:
        tape.record_scope_begin("outer", {"step": 1})
        tape.record_scope_begin("empty")
        tape.record_scope_end()
        square(x, y)
        tape.record_scope_end()
    (scope,) = tape.scopes
    assert (scope.name, scope.begin, scope.end, scope.metadata) == ("outer", 0, 1, {"step": 1})


@pytest.mark.parametrize("how", ["reset", "drop"])
def test_arrays_are_released(how: str) -> None:
    references: list[weakref.ref[array]] = []
    tape = Tape()
    x = ones(8, requires_grad=True)
    with tape:
        for _ in range(5):
            y = zeros_like(x)
            references += [weakref.ref(y), weakref.ref(y.grad)]
            square(x, y)
            x = y
    tape.backward(grads={y: ones(8)})
    if how == "reset":
        tape.reset()
    else:
        del tape
    del x, y
    gc.collect()
    assert not any(reference() is not None for reference in references)


def test_reset_forgets_and_zeroes() -> None:
    x = vector(1)
    y = zeros_like(x)
    tape = Tape()
    with tape:
        square(x, y)
    tape.backward(y)
    tape.reset()
    assert not x.grad.numpy().any()
    assert not tape.events
    assert not tape.gradients
    with tape:
        double(x, y)
    tape.backward(y)
    np.testing.assert_allclose(x.grad.numpy(), [2])


def test_unconnected_loss_is_reported() -> None:
    with pytest.warns(WarpWarning, match="no operation on this tape"):
        Tape().backward(vector(1))


def test_get_adjoint_may_be_overridden() -> None:
    x = vector(3)
    y, mine = zeros_like(x), zeros(1)

    class Redirecting(Tape):
        def get_adjoint(self, a: Any) -> Any:
            return mine if a is x else super().get_adjoint(a)

    with Redirecting() as tape:
        square(x, y)
    tape.backward(y)
    np.testing.assert_allclose(mine.numpy(), [6])
    assert not x.grad.numpy().any()


def test_views_share_gradient_and_history() -> None:
    x = vector(1, 2, 3, 4)
    o = zeros(6, requires_grad=True)
    with Tape() as tape:
        square(x[1:3], o[2:4])
        square(x[::2], o[::3])
    tape.backward(grads={o: ones(6)})
    np.testing.assert_allclose(x.grad.numpy(), [2, 4, 6, 0])
    assert tape.gradients[x] is x.grad
