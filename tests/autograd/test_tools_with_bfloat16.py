"""The tools that look at single numbers read and write those of bfloat16 arrays, whose bits NumPy sees."""

from __future__ import annotations

import numpy as np
import pytest

import warp as wp
from warp.autograd import find_nonfinite, gradcheck, jacobian, jacobian_fd
from warp.errors import GradientMismatchError

Narrow = wp.array(dtype=wp.bfloat16)
pair = wp.types.vector(2, wp.bfloat16)


@wp.kernel
def square(x: Narrow, y: Narrow):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def squared_length(x: wp.array(dtype=pair), y: Narrow):
    i = wp.tid()
    y[i] = wp.dot(x[i], x[i])


@wp.func
def doubled(x: wp.bfloat16):
    return x + x


@wp.func_grad(doubled)
def wrong_gradient(x: wp.bfloat16, adj_ret: wp.bfloat16):
    wp.adjoint[x] += adj_ret


@wp.kernel
def wrong(x: Narrow, y: Narrow):
    i = wp.tid()
    y[i] = doubled(x[i])


@wp.kernel
def root(x: Narrow, y: Narrow):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])


def narrow(values: object, dtype: type = wp.bfloat16) -> wp.array:
    return wp.array(values, dtype=dtype, requires_grad=True)


def test_jacobians() -> None:
    x, y = narrow([1.0, 2.0, -3.0]), narrow([0.0] * 3)
    np.testing.assert_array_equal(jacobian(square, 3, [x], [y])[0, 0].numpy(), np.diag([2.0, 4.0, -6.0]))
    np.testing.assert_allclose(jacobian_fd(square, 3, [x], [y])[0, 0].numpy(), np.diag([2.0, 4.0, -6.0]), rtol=0.05)
    assert x.list() == [1.0, 2.0, -3.0]
    found = jacobian(squared_length, 2, [narrow([[1.0, 2.0], [0.5, -3.0]], pair)], [narrow([0.0] * 2)])[0, 0].numpy()
    np.testing.assert_array_equal(found, [[2, 4, 0, 0], [0, 0, 1, -6]])


def test_gradcheck_tells_right_from_wrong() -> None:
    x, y = narrow([1.0, 2.0, -3.0]), narrow([0.0] * 3)
    assert gradcheck(square, 3, [x], [y], rtol=0.05)
    with pytest.raises(GradientMismatchError):
        gradcheck(wrong, 3, [x], [y], rtol=0.05)


def test_a_gradient_that_is_not_finite_is_found() -> None:
    x, y = narrow([1.0, 0.0, 4.0]), narrow([0.0] * 3)
    with wp.Tape() as tape:
        wp.launch(root, 3, [x], [y])
    found = find_nonfinite(tape, grads={y: wp.ones_like(y)})
    assert found is not None and found.index == (1,)
