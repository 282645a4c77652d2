"""find_nonfinite: the first launch, argument, index and source line at which a gradient is not finite."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import warp as wp
import warp.autograd
from warp.errors import ArgumentError

Floats = wp.array(dtype=wp.float64)


@wp.kernel
def root(x: Floats, y: Floats):
    i, j = wp.tid()
    shifted = x[2 * i + j] - wp.float64(3.0)
    length = wp.sqrt(shifted)  # here
    y[2 * i + j] = length + wp.float64(1.0)


@wp.kernel
def triple(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = wp.float64(3.0) * x[t]


@wp.kernel
def in_place(x: Floats, y: Floats):
    t = wp.tid()
    y[t] *= x[t]
    y[t] = wp.log(y[t])  # in place


def floats(values: object) -> wp.array:
    return wp.array(values, dtype=wp.float64, requires_grad=True)


def line_of(kernel, mark: str) -> int:
    lines, first = inspect.getsourcelines(kernel.func)
    (place,) = (number for number, line in enumerate(lines) if mark in line)
    return first + place


def chain(values: list[float]) -> tuple[wp.Tape, wp.array, wp.array]:
    x, middle, roots, y = floats(values), floats(np.zeros(4)), floats(np.zeros(4)), floats(np.zeros(4))
    with wp.Tape() as tape:
        wp.launch(triple, 4, inputs=[x], outputs=[middle])
        wp.launch(root, (2, 2), inputs=[middle], outputs=[roots])
        wp.launch(triple, 4, inputs=[roots], outputs=[y])
    return tape, x, y


def test_place_and_line() -> None:
    tape, x, y = chain([2.0, 5.0, 1.0, 1.0])
    x.grad.fill_(7.0)
    found = wp.autograd.find_nonfinite(tape, grads={y: floats(np.ones(4))})
    assert isinstance(found, wp.autograd.NonFiniteGradient)
    assert (found.label, found.launch, found.argument, found.index, found.component) == ("root", 1, "x", (2,), 0)
    assert found.value == np.inf
    assert found.thread == (1, 0)
    assert found.source_location == f"{__file__}:{line_of(root, '# here')}"
    assert found.source_line.startswith("length = wp.sqrt(shifted)")
    assert found.location.startswith(f"{__file__}:")
    assert found.bad_values == ()
    for part in ("'x' at [2]", "inf", "'root', operation 1", "length = wp.sqrt"):
        assert part in str(found)
    # Gradients stay as they were, and the tape works as before.
    np.testing.assert_array_equal(x.grad.numpy(), np.full(4, 7.0))
    assert not wp.config.verify_fp
    with np.errstate(all="ignore"):
        tape.backward(grads={y: floats([1.0, 1.0, 0.0, 0.0])})
    np.testing.assert_allclose(x.grad.numpy()[0], 7.0 + 9.0 * 0.5 / np.sqrt(3.0))


def test_none_if_all_are_finite() -> None:
    tape, _, y = chain([2.0, 5.0, 1.5, 4.0])
    assert wp.autograd.find_nonfinite(tape, grads={y: floats(np.ones(4))}) is None


def test_unseeded_paths_do_not_count() -> None:
    tape, _, y = chain([2.0, 5.0, 1.0, 4.0])
    assert wp.autograd.find_nonfinite(tape, grads={y: floats([1.0, 1.0, 0.0, 1.0])}) is None


def test_bad_seed() -> None:
    tape, _, y = chain([2.0, 5.0, 1.5, 4.0])
    found = wp.autograd.find_nonfinite(tape, grads={y: floats([1.0, np.nan, 0.0, 1.0])})
    assert (found.label, found.launch, found.index) == ("seed", -1, (1,))
    assert "before the backward pass begins" in str(found)
    y.grad.assign(np.array([0.0, 0.0, np.inf, 0.0]))
    assert wp.autograd.find_nonfinite(tape).index == (2,)


def test_loss_and_bad_values() -> None:
    x, y = floats([np.nan]), floats([0.0])
    with wp.Tape() as tape:
        wp.launch(in_place, 1, inputs=[x, y])
    found = wp.autograd.find_nonfinite(tape, loss=y)
    assert found.label == "in_place"
    assert "x" in found.bad_values
    assert "not finite in the forward pass already: x" in str(found)


def test_kernel_that_overwrites_what_it_reads() -> None:
    x, y = floats([0.0]), floats([2.0])
    with wp.Tape() as tape:
        wp.launch(in_place, 1, inputs=[x, y])
    found = wp.autograd.find_nonfinite(tape, loss=y)
    assert found.source_location.endswith(f":{line_of(in_place, '# in place')}")


def test_recorded_function() -> None:
    x, y = floats([1.0]), floats([0.0])

    def spoil() -> None:
        x.grad.fill_(float("nan"))

    with wp.Tape() as tape:
        tape.record_func(spoil, [x])
        wp.launch(triple, 1, inputs=[x], outputs=[y])
    found = wp.autograd.find_nonfinite(tape, loss=y)
    assert (found.label, found.launch, found.source_location) == ("spoil", 0, "")
    assert np.isnan(found.value)


def test_wrong_argument() -> None:
    with pytest.raises(ArgumentError, match="tape"):
        wp.autograd.find_nonfinite(None)
