"""What has no right gradient raises an error that names the line, and never gives a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import warp as wp
from warp.errors import AutogradError

Floats = wp.array(dtype=float)
Ints = wp.array(dtype=int)
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def lines_of(*names: str) -> set[int]:
    """Return the numbers of the lines of the bodies of functions in this file."""
    lines: set[int] = set()
    for name in names:
        start = next(number for number, line in enumerate(LINES, 1) if line.startswith(f"def {name}("))
        end = next(number for number in range(start, len(LINES)) if not LINES[number].strip())
        lines.update(range(start + 1, end + 1))
    return lines


@wp.func
def square_of_element(x: Floats, at: int):
    return x[at] * x[at]


@wp.func_grad(square_of_element)
def adj_square_of_element(x: Floats, at: int, adj_ret: float):
    wp.adjoint[x][at] += 2.0 * x[at] * adj_ret


@wp.kernel
def overwriting_what_a_custom_gradient_reads(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    y[tid] = square_of_element(x, tid)
    x[tid] = 1.0


@wp.func
def grown(x: Floats, at: int):
    before = x[at]
    x[at] = before * before
    return before


@wp.func_grad(grown)
def adj_grown(x: Floats, at: int, adj_ret: float):
    wp.adjoint[x][at] += adj_ret


@wp.kernel
def custom_gradient_in_a_loop(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    for _k in range(n[tid] + 1):
        y[tid] *= grown(x, tid)


@wp.func_native("y[i] = x[i] * x[i];", "adj_x[i] += 2.0f * x[i] * adj_y[i]; adj_y[i] = 0.0f;")
def native_square(x: Floats, y: Floats, i: int): ...


@wp.kernel
def overwriting_what_a_native_adjoint_reads(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    native_square(x, y, tid)
    x[tid] = 1.0


@wp.func_native("y[i] = x[i] * x[i];")
def native_without_adjoint(x: Floats, y: Floats, i: int): ...


@wp.kernel
def without_adjoint(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    native_without_adjoint(x, y, tid)


KERNELS = [value for value in list(globals().values()) if isinstance(value, wp.Kernel)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_kernel_without_a_gradient(kernel: wp.Kernel) -> None:
    x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
    y = wp.ones(4, dtype=float, requires_grad=True)
    n = wp.array([1, 0, 1, 0], dtype=int)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[x, y, n])
    with pytest.raises(AutogradError) as caught:
        tape.backward(grads={y: wp.ones_like(y), x: wp.ones_like(x)})
    named = {int(line) for line in re.findall(rf"{Path(__file__).name}:(\d+): ", str(caught.value))}
    assert named, caught.value
    assert named <= lines_of(kernel.key, "adj_square_of_element", "grown"), caught.value


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_forward_only_use_raises_nothing(kernel: wp.Kernel) -> None:
    x, y = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float), wp.ones(4, dtype=float)
    with wp.Tape():
        wp.launch(kernel, dim=2, inputs=[x, y, wp.array([1, 0, 1, 0], dtype=int)])


@wp.kernel
def square(x: Floats, y: Floats):
    tid = wp.tid()
    y[tid] = x[tid] * x[tid]


@wp.kernel
def replace(z: Floats, x: Floats):
    tid = wp.tid()
    x[tid] = z[tid]


def by_launch(x: wp.array, z: wp.array) -> None:
    wp.launch(replace, dim=x.shape, inputs=[z], outputs=[x])


def by_copy(x: wp.array, z: wp.array) -> None:
    wp.copy(x, z)


def by_fill(x: wp.array, z: wp.array) -> None:
    x.fill_(1.0)


def by_assign(x: wp.array, z: wp.array) -> None:
    x.assign(z.numpy())


@pytest.mark.parametrize("overwrite", [by_launch, by_copy, by_fill, by_assign])
def test_later_operation_that_overwrites_what_a_launch_needs(overwrite: Callable[[wp.array, wp.array], None]) -> None:
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    b = wp.zeros_like(a)
    c = wp.array([-1.0, -2.0, -3.0], dtype=float, requires_grad=True)
    with wp.Tape(overwrite="error") as tape:
        wp.launch(square, a.shape, inputs=[a], outputs=[b])
        overwrite(a, c)
    with pytest.raises(AutogradError, match="square"):
        tape.backward(grads={b: wp.ones_like(b)})


def test_gradient_without_the_overwrite() -> None:
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    b = wp.zeros_like(a)
    with wp.Tape() as tape:
        wp.launch(square, a.shape, inputs=[a], outputs=[b])
    tape.backward(grads={b: wp.ones_like(b)})
    np.testing.assert_array_equal(a.grad.numpy(), [2.0, 4.0, 6.0])


@wp.kernel(enable_backward=False)
def forward_only(x: Floats, y: Floats):
    tid = wp.tid()
    y[tid] = x[tid] * x[tid]


def test_kernel_without_backward() -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(forward_only, x.shape, inputs=[x], outputs=[y])
    np.testing.assert_array_equal(y.numpy(), [1.0, 4.0, 9.0])
    with pytest.raises(AutogradError, match="forward_only"):
        tape.backward(grads={y: wp.ones_like(y)})


@wp.kernel
def cube_in_place(x: Floats):
    tid = wp.tid()
    x[tid] *= x[tid] * x[tid]


def test_adjoint_launch_without_the_record_of_the_forward_launch() -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    wp.launch(cube_in_place, 3, inputs=[x])
    with pytest.raises(AutogradError, match="'cube_in_place' needs values that the kernel overwrites"):
        wp.launch(cube_in_place, 3, inputs=[x], adj_inputs=[wp.ones_like(x)], adjoint=True)


def test_launch_recorded_by_hand() -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    wp.launch(cube_in_place, 3, inputs=[x])
    tape = wp.Tape()
    tape.record_launch(cube_in_place, 3, 0, [x], [], wp.get_device())
    with pytest.raises(AutogradError, match=r"'cube_in_place' .* recorded with record_launch\(\)"):
        tape.backward(grads={x: wp.ones_like(x)})


@wp.kernel
def product_of(x: Floats, y: Floats):
    tid = wp.tid()
    y[tid] *= 2.0 * x[tid]


@pytest.mark.cpu
@pytest.mark.parametrize("has_gradient", [True, False])
def test_one_memory_with_two_gradients(has_gradient: bool) -> None:
    memory = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    x = wp.array(memory, dtype=float, copy=False, requires_grad=True)
    y = wp.array(memory, dtype=float, copy=False, requires_grad=has_gradient)
    with wp.Tape() as tape:
        wp.launch(product_of, 3, inputs=[x, y])
    if has_gradient:
        with pytest.raises(AutogradError, match="gradients of their own"):
            tape.backward(grads={x: wp.ones_like(x)})
        x.grad.zero_()
        y.grad = x.grad
    tape.backward(grads={x: wp.ones_like(x)})
    assert x.grad.numpy().tolist() == [4.0, 8.0, 12.0]
