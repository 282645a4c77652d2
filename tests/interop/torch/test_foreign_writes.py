"""A tape notices what PyTorch writes between an operation and its adjoint, and is not alarmed by anything else."""

from __future__ import annotations

import warnings

import pytest
import torch

import warp as wp
from warp.errors import AutogradError

OLD = [0.75, 1.5]
NEW = [1.5, -0.5]


@wp.kernel
def cube(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


def tensor(values: list[float] = OLD) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def zeros() -> wp.array:
    return wp.zeros(2, dtype=wp.float64, requires_grad=True)


def ones() -> wp.array:
    return wp.ones(2, dtype=wp.float64)


def set_in_place(t: torch.Tensor) -> None:
    t.copy_(tensor(NEW))


def set_a_view(t: torch.Tensor) -> None:
    t[1:].zero_()


def set_by_an_optimiser(t: torch.Tensor) -> None:
    t.grad = torch.ones_like(t)
    torch.optim.SGD([t], lr=0.1).step()


CHANGES = [set_in_place, set_a_view, set_by_an_optimiser]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("comes_from", ["from_torch", "to_torch", "launch"])
def test_an_intermediate_of_old_values_is_refused(change, comes_from):
    t = tensor()
    x = wp.from_torch(t, requires_grad=True)
    if comes_from == "to_torch":
        x = wp.array(OLD, dtype=wp.float64, requires_grad=True)
        t = wp.to_torch(x, requires_grad=False)
    y, z = zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[t if comes_from == "launch" else x, y])
        wp.launch(cube, 2, inputs=[y, z])
    with torch.no_grad():
        change(t)
    with pytest.raises(AutogradError, match=r"stale|overwritten off the tape"):
        tape.backward(grads={z: ones()})


def test_a_tensor_made_after_the_launch_is_noticed_too():
    x, y, z = wp.array(OLD, dtype=wp.float64, requires_grad=True), zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
        wp.launch(cube, 2, inputs=[y, z])
    t = wp.to_torch(y, requires_grad=False)
    t.zero_()
    with pytest.raises(AutogradError, match="overwritten off the tape"):
        tape.backward(grads={z: ones()})


def test_a_changed_leaf_is_used_as_it_is_without_a_message():
    t, y = tensor(), zeros()
    x = wp.from_torch(t, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
    t.copy_(tensor(NEW))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape.backward(grads={y: ones()})
    assert x.grad.numpy().tolist() == [3.0 * value * value for value in NEW]


@pytest.mark.parametrize("wraps_anew", [False, True])
def test_the_loop_that_records_once_and_runs_again_is_right(wraps_anew):
    t = tensor().requires_grad_()
    x, y, z = wp.from_torch(t), zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
        wp.launch(cube, 2, inputs=[y, z])
    optimiser = torch.optim.SGD([t], lr=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            optimiser.zero_grad()
            tape.backward(grads={z: ones()})
            expected = 9.0 * t.detach() ** 8
            assert torch.allclose(t.grad, expected, rtol=1e-12)
            optimiser.step()
            source = wp.from_torch(t) if wraps_anew else x
            wp.launch(cube, 2, inputs=[source, y])
            wp.launch(cube, 2, inputs=[y, z])


def test_writes_of_warp_to_tensors_are_not_taken_for_those_of_torch():
    whole = torch.zeros(4, dtype=torch.float64)
    x, y = wp.from_torch(whole[:2], requires_grad=False), wp.from_torch(whole[2:], requires_grad=False)
    x.assign(OLD)
    z = wp.from_torch(torch.zeros(2, dtype=torch.float64), requires_grad=True)
    with warnings.catch_warnings(), wp.Tape() as tape:
        warnings.simplefilter("error")
        wp.launch(cube, 2, inputs=[x, y])
        wp.launch(cube, 2, inputs=[whole[2:], z])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape.backward(grads={z: ones()})
    assert torch.equal(wp.to_torch(z), tensor() ** 9)


def test_a_write_before_a_copy_is_before_the_copy():
    t, y = tensor(), zeros()
    x = wp.from_torch(t, requires_grad=True)
    with wp.Tape():
        wp.launch(cube, 2, inputs=[x, y])
    t.copy_(tensor(NEW))
    copy = zeros()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with wp.Tape() as tape:
            wp.copy(copy, x)
            wp.launch(cube, 2, inputs=[copy, y])
        tape.backward(grads={y: ones()})
    assert x.grad.numpy().tolist() == [3.0 * value * value for value in NEW]


def test_tensors_of_inference_mode_have_no_count():
    with torch.inference_mode():
        t = tensor()
    y = zeros()
    x = wp.from_torch(t, requires_grad=False)
    with wp.Tape() as tape:
        wp.launch(cube, 2, inputs=[x, y])
    tape.backward(grads={y: ones()})
    assert y.numpy().tolist() == [value**3 for value in OLD]
