"""Products with the Hessian of outputs weighted by adjoints."""

from __future__ import annotations

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def cubes(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64), z: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]
    wp.atomic_add(z, 0, x[i] * x[i])


X, V = np.array([1.0, -2.0, 0.5]), np.array([0.5, 1.0, 2.0])
WEIGHTS, WEIGHT = np.array([1.0, 3.0, -2.0]), 4.0


def test_outputs_are_weighted() -> None:
    x, y, z = wp.array(X), wp.zeros(3, dtype=wp.float64), wp.zeros(1, dtype=wp.float64)
    adjoints = [wp.array(WEIGHTS), wp.array([WEIGHT], dtype=wp.float64)]
    (product,) = wp.autograd.hvp(cubes, 3, [x], [y, z], [wp.array(V)], adjoints=adjoints)
    np.testing.assert_allclose(product.numpy(), (6.0 * X * WEIGHTS + 2.0 * WEIGHT) * V)
    np.testing.assert_array_equal(adjoints[0].numpy(), WEIGHTS)
    assert not x.requires_grad and not y.requires_grad


def test_every_output_needs_its_adjoint() -> None:
    x, y, z = wp.array(X), wp.zeros(3, dtype=wp.float64), wp.zeros(1, dtype=wp.float64)
    with pytest.raises(ArgumentError, match=r"adjoints has 1 entries.*\(3,\), \(1,\)"):
        wp.autograd.hvp(cubes, 3, [x], [y, z], [wp.array(V)], adjoints=[wp.array(WEIGHTS)])
    with pytest.raises(ArgumentError, match="give adjoints"):
        wp.autograd.hvp(cubes, 3, [x], [y, z], [wp.array(V)])
