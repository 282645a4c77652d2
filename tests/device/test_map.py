"""`wp.map`: functions over the elements of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError, KernelTypeError

X = [1.0, 2.0, 3.0]


@wp.func
def with_double(a: float):
    return a, 2.0 * a


@wp.func
def nothing(a: float):
    pass


def plain(a: Any) -> Any:
    return wp.sin(a) + 1.0


def floats(values: Any = X, **options: Any) -> wp.array:
    return wp.array(values, dtype=float, **options)


def test_functions_builtins_and_lambdas() -> None:
    x = floats()
    factor = 3.0
    first, second = wp.map(with_double, x)
    assert (first.numpy().tolist(), second.numpy().tolist()) == (X, [2, 4, 6])
    np.testing.assert_allclose(wp.map(wp.sin, x).numpy(), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(wp.map(plain, x).numpy(), np.sin(X) + 1, rtol=1e-6)
    assert wp.map(lambda a, b: a * factor - b, x, x).numpy().tolist() == [2, 4, 6]
    assert [wp.map(lambda a: a * 2.0, x).numpy()[0], wp.map(lambda a: a * 5.0, x).numpy()[0]] == [2, 5]


def test_values_broadcasting_and_outputs() -> None:
    x = floats()
    assert wp.map(wp.add, wp.zeros((3, 1), dtype=float), x).numpy().tolist() == [X, X, X]
    assert wp.map(wp.mul, wp.array(X, dtype=wp.float64), 2.0).dtype is wp.float64
    wp.map(wp.clamp, x, 1.5, 2.5, out=x)
    assert x.numpy().tolist() == [1.5, 2, 2.5]
    pose = wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity())
    moved = wp.map(wp.transform_point, pose, wp.array([[1.0, 2.0, 3.0]], dtype=wp.vec3))
    assert moved.numpy().tolist() == [[2, 4, 6]]
    chosen = wp.indexedarray1d(floats(), [wp.array([2, 0], dtype=int)])
    assert wp.map(lambda v: 10.0 * v, chosen).numpy().tolist() == [30, 10]
    assert isinstance(wp.map(with_double, x, return_kernel=True), wp.Kernel)
    assert wp.map(with_double, x, return_kernel=True) is wp.map(with_double, x, return_kernel=True)


def test_gradients_sum_over_broadcast_elements() -> None:
    x, y = floats([2.0], requires_grad=True), floats()
    with wp.Tape() as tape:
        z = wp.map(wp.mul, x, y)
    tape.backward(grads={z: wp.ones(3, dtype=float)})
    assert x.grad.numpy().tolist() == [6]


def test_mistakes() -> None:
    x = floats()
    with pytest.raises(ArgumentError, match="at least one of the inputs"):
        wp.map(wp.sin, 1.0)
    with pytest.raises(ArgumentError, match=r"\(3,\), \(2,\) cannot be broadcast"):
        wp.map(wp.add, x, wp.zeros(2, dtype=float))
    with pytest.raises(ArgumentError, match=r"output 0 must be array\(dtype=float32, ndim=1\) of shape \(3,\)"):
        wp.map(wp.add, x, x, out=wp.zeros(2, dtype=float))
    with pytest.raises(ArgumentError, match="must hold 2 arrays"):
        wp.map(with_double, x, out=x)
    with pytest.raises(KernelTypeError, match="returns nothing"):
        wp.map(nothing, x)
    with pytest.raises(KernelTypeError, match="cannot combine"):
        wp.map(lambda a: a + 1, x)
