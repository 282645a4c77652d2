"""The documented loops over the rows of a Jacobian, for one system and for many side by side."""

from __future__ import annotations

import numpy as np

import warp as wp

INPUTS, OUTPUTS = 3, 2


@wp.kernel
def mix(q: wp.array(dtype=float), r: wp.array(dtype=float)):
    e = wp.tid()
    a = q[3 * e]
    b = q[3 * e + 1]
    c = q[3 * e + 2]
    r[2 * e] = a * b + wp.sin(c)
    r[2 * e + 1] = b * c * c - a


def jacobian_of_mix(q: np.ndarray) -> np.ndarray:
    a, b, c = q
    return np.array([[b, a, np.cos(c)], [-1.0, c * c, 2.0 * b * c]])


def test_one_system() -> None:
    q = wp.array([0.5, -1.5, 2.0], dtype=wp.float32, requires_grad=True)
    jacobian = np.empty((OUTPUTS, INPUTS), dtype=np.float32)
    tape = wp.Tape()
    with tape:
        r = wp.zeros(OUTPUTS, dtype=float, requires_grad=True)
        wp.launch(mix, dim=1, inputs=[q], outputs=[r])
    for row in range(OUTPUTS):
        selection = np.zeros(OUTPUTS)
        selection[row] = 1.0
        tape.backward(grads={r: wp.array(selection, dtype=wp.float32)})
        jacobian[row, :] = tape.gradients[q].numpy()
        tape.zero()
    np.testing.assert_allclose(jacobian, jacobian_of_mix(q.numpy()), rtol=1e-6)


def test_many_systems() -> None:
    systems = 5
    values = np.linspace(-1.0, 2.0, systems * INPUTS)
    q = wp.array(values, dtype=wp.float32, requires_grad=True)
    jacobians = np.empty((systems, OUTPUTS, INPUTS), dtype=np.float32)
    tape = wp.Tape()
    with tape:
        r = wp.zeros(systems * OUTPUTS, dtype=float, requires_grad=True)
        wp.launch(mix, dim=systems, inputs=[q], outputs=[r])
    for row in range(OUTPUTS):
        selection = np.zeros(OUTPUTS)
        selection[row] = 1.0
        tape.backward(grads={r: wp.array(np.tile(selection, systems), dtype=wp.float32)})
        jacobians[:, row, :] = tape.gradients[q].numpy().reshape(systems, INPUTS)
        tape.zero()
    expected = [jacobian_of_mix(part) for part in values.reshape(systems, INPUTS)]
    np.testing.assert_allclose(jacobians, expected, rtol=2e-6, atol=1e-6)
