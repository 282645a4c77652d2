"""gradcheck and gradcheck_tape: what passes, what fails and how, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

import warp as wp
import warp.autograd
from warp.errors import ArgumentError, GradientMismatchError

Floats = wp.array(dtype=wp.float64)


@wp.kernel
def square(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = x[t] * x[t]


@wp.kernel
def total(x: Floats, sum: Floats):
    wp.atomic_add(sum, 0, x[wp.tid()])


@wp.func
def doubled(x: wp.float64):
    return x + x


@wp.func_grad(doubled)
def adj_doubled(x: wp.float64, adj_ret: wp.float64):
    wp.adjoint[x] += adj_ret * wp.float64(3.0)


@wp.kernel
def wrong(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = doubled(x[t])


@wp.func
def hidden(x: wp.float64):
    return x + x


@wp.func_grad(hidden)
def adj_hidden(x: wp.float64, adj_ret: wp.float64):
    wp.adjoint[x] += (x - x) / (x - x)


@wp.kernel
def not_a_number(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = hidden(x[t])


@wp.kernel
def copy_ints(x: wp.array(dtype=int), y: wp.array(dtype=int)):
    t = wp.tid()
    y[t] = x[t]


def floats(values: object) -> wp.array:
    return wp.array(values, dtype=wp.float64, requires_grad=True)


def test_a_right_gradient_passes_and_prints_a_table(capsys) -> None:
    x, y = floats([1.0, 2.0]), floats([0.0, 0.0])
    assert wp.autograd.gradcheck(square, 2, [x], [y])
    heading, _, row, verdict = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in heading.split("|")] == [
        "Input",
        "Output",
        "Max Abs Error",
        "Max Rel Error",
        "Pass",
    ]
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[:2] + cells[4:] == ["x", "y", "PASS"]
    assert float(cells[2]) < 1e-6
    assert verdict == "Gradient check for kernel square passed"


def test_a_wrong_gradient_fails(capsys) -> None:
    x, y = floats([1.0, 2.0]), floats([0.0, 0.0])
    assert not wp.autograd.gradcheck(wrong, 2, [x], [y], raise_exception=False)
    assert "FAIL" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"d y\[0\] / d x\[0\]: automatic 3, differences 2") as caught:
        wp.autograd.gradcheck(wrong, 2, [x], [y], show_summary=False)
    assert isinstance(caught.value, GradientMismatchError)
    assert capsys.readouterr().out == ""
    assert wp.autograd.gradcheck(wrong, 2, [x], [y], atol=2.0, show_summary=False)
    assert wp.autograd.gradcheck(wrong, 2, [x], [y], rtol=0.6, show_summary=False)


def test_nan_fails_whatever_the_tolerance() -> None:
    x, y = floats([1.0]), floats([0.0])
    assert not wp.autograd.gradcheck(not_a_number, 1, [x], [y], atol=1e9, raise_exception=False, show_summary=False)


def test_limits_and_masks() -> None:
    @wp.kernel
    def second_is_wrong(x: Floats, y: Floats, z: Floats):
        t = wp.tid()
        y[t] = x[t]
        if t == 1:
            y[t] = doubled(x[t])
        z[t] = doubled(x[t])

    x, y, z = floats([1.0, 2.0]), floats([0.0, 0.0]), floats([0.0, 0.0])

    def check(**options) -> bool:
        return wp.autograd.gradcheck(
            second_is_wrong, 2, [x], [y, z], raise_exception=False, show_summary=False, **options
        )

    assert not check(input_output_mask=[("x", "y")])
    assert check(input_output_mask=[("x", "y")], max_inputs_per_var=1)
    assert check(input_output_mask=[("x", "y")], max_outputs_per_var=1)
    assert not check(input_output_mask=[("x", "z")], max_outputs_per_var=1)


def test_functions() -> None:
    def function(x, unused):
        y, loss = wp.zeros_like(x), wp.zeros(1, dtype=wp.float64, requires_grad=True)
        wp.launch(square, 2, inputs=[x], outputs=[y])
        wp.launch(total, 2, inputs=[y], outputs=[loss])
        return loss

    assert wp.autograd.gradcheck(function, inputs=[floats([1.0, 2.0]), None])


def test_mixed_precision() -> None:
    @wp.kernel
    def widen(x: wp.array(dtype=wp.float32), y: Floats):
        t = wp.tid()
        y[t] = wp.float64(x[t]) * wp.float64(x[t])

    x = wp.array([0.5, -1.0], dtype=wp.float32, requires_grad=True)
    assert wp.autograd.gradcheck(widen, 2, [x], [floats([0.0, 0.0])])


def make_tape(second=total) -> tuple[wp.Tape, wp.array, wp.array, wp.array]:
    x, y, loss = floats([1.0, 2.0]), floats([0.0, 0.0]), floats([0.0])
    ints = wp.zeros(2, dtype=int)
    with wp.Tape() as tape:
        wp.launch(square, 2, inputs=[x], outputs=[y])
        # Nothing says which are outputs.
        wp.launch(second, 2, inputs=[y, loss if second is total else x])
        wp.launch(copy_ints, 2, inputs=[ints], outputs=[ints])
        tape.record_func(lambda: None, [x])
    return tape, x, y, loss


def test_tape(capsys) -> None:
    tape, x, _, loss = make_tape()
    assert wp.autograd.gradcheck_tape(tape)
    printed = capsys.readouterr().out
    assert "Gradient check for kernel square (launch 0, " in printed
    assert "Gradient check for kernel total (launch 1, " in printed
    assert "launch 2 of kernel copy_ints: no differentiable input and output" in printed
    assert "<lambda>: recorded with record_func" in printed
    np.testing.assert_array_equal(loss.numpy(), [5.0])
    tape.backward(loss)
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


def test_tape_with_a_wrong_kernel(capsys) -> None:
    tape, *_ = make_tape(wrong)
    with pytest.raises(ValueError, match="kernel wrong"):
        wp.autograd.gradcheck_tape(tape, show_summary=False)

    def check(**options) -> bool:
        return wp.autograd.gradcheck_tape(tape, raise_exception=False, **options)

    assert not check()
    assert check(blacklist_kernels=["wrong", "not on the tape"])
    assert check(whitelist_kernels=["square"])
    assert not check(whitelist_kernels=["wrong"])
    assert check(skip_to_launch_index=2)
    # Backwards, the wrong one is the second of three.
    assert not check(skip_to_launch_index=1, reverse_launches=True)
    assert check(skip_to_launch_index=2, reverse_launches=True)
    capsys.readouterr()
    assert not check(reverse_launches=True)
    printed = capsys.readouterr().out
    assert printed.index("kernel wrong") < printed.index("kernel square")
    with pytest.raises(ArgumentError, match="whitelist_kernels: no kernel 'other'"):
        check(whitelist_kernels=["other"])
    with pytest.raises(ArgumentError, match="input_output_masks"):
        check(input_output_masks={"other": []})
    assert check(input_output_masks={"wrong": []})
