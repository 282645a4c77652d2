"""What needs recorded loads or kept values raises an error that names the line, and never gives a wrong gradient."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import warp as wp
from warp.errors import AutogradError

Floats = wp.array(dtype=float)
Ints = wp.array(dtype=int)
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def lines_of(kernel: wp.Kernel) -> range:
    """Return the numbers of the lines of the body of a kernel in this file."""
    start = next(number for number, line in enumerate(LINES, 1) if line.startswith(f"def {kernel.key}("))
    end = next(number for number in range(start, len(LINES)) if not LINES[number].strip())
    return range(start + 1, end + 1)


@wp.kernel
def counted(x: Floats, y: Floats, n: Ints):
    idx = wp.atomic_add(n, 0, 1)
    y[idx] = wp.sqrt(x[idx])


@wp.kernel
def polynomial_in_place(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    x[tid] = x[tid] ** 2.0 + 3.0 * x[tid] + 1.0


@wp.kernel
def product_in_place(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    y[tid] *= x[tid]


@wp.kernel
def quotient_in_place(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    y[tid] /= x[tid]


@wp.kernel
def overwritten_after_use(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    y[tid] = x[tid] * x[tid]
    x[tid] = 1.0


@wp.kernel
def product_in_scratch(x: Floats, y: Floats, n: Ints):
    for i in range(n[0]):
        y[i + 1] = x[i] * y[i]


@wp.kernel
def swapped(x: Floats, y: Floats, n: Ints):
    a = x[0] * x[1]
    x[0], x[1] = x[1], x[0]
    y[0] = a


@wp.kernel
def old_value_used(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    old = wp.atomic_add(y, 0, x[tid])
    wp.atomic_add(y, 1, old * x[tid])


@wp.kernel
def counted_in_memory(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    n[tid] += 1
    y[n[tid]] = x[tid] * x[tid]
    n[tid] += 1


@wp.kernel
def extreme_changed_later(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    wp.atomic_max(y, 0, x[tid])
    y[0] += 1.0


@wp.kernel
def function_of_own_result(x: Floats, y: Floats, n: Ints):
    tid = wp.tid()
    y[tid] = x[tid] * x[tid]
    if n[tid] > 0:
        y[tid] = y[tid] * y[tid]


KERNELS = [value for value in list(globals().values()) if isinstance(value, wp.Kernel)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_kernel_that_overwrites_what_its_gradient_needs(kernel: wp.Kernel) -> None:
    x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
    y = wp.ones(4, dtype=float, requires_grad=True)
    n = wp.array([1, 0, 1, 0], dtype=int)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[x, y, n])
    with pytest.raises(AutogradError) as caught:
        tape.backward(grads={y: wp.ones_like(y), x: wp.ones_like(x)})
    message = str(caught.value)
    assert any(f"{Path(__file__).name}:{number}" in message for number in lines_of(kernel)), message


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
    with wp.Tape() as tape:
        wp.launch(square, a.shape, inputs=[a], outputs=[b])
        overwrite(a, c)
    tape.backward(grads={b: wp.ones_like(b)})
    np.testing.assert_array_equal(a.grad.numpy(), [2.0, 4.0, 6.0])


@pytest.mark.parametrize("overwrite", [by_launch, by_copy, by_fill, by_assign])
def test_later_operation_on_a_tape_that_keeps_nothing(overwrite: Callable[[wp.array, wp.array], None]) -> None:
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
