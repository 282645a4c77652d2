"""Random programs of launches, copies and views: tapes against central differences, and Hessians against gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.autograd.checking import array_of, differences_of, weights_of
from tests.differential.tape_programs import OPERATIONS, TapeProgram

import warp as wp

f = wp.float64
X = np.array([0.3, -0.8, 0.5, 0.9, -0.2, 0.7, -0.6, 0.1])
Y = np.array([-0.4, 0.6, 0.2, -0.9, 0.8, -0.1, 0.4, -0.7])

steps = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 999)), min_size=1, max_size=9)


def seeds_of(outputs: list[Any]) -> dict[Any, Any]:
    return {output: wp.array(weights_of(output.shape), dtype=f) for output in outputs}


def gradient(program: TapeProgram, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    arrays = [array_of(x, x), array_of(y, y)]
    with wp.Tape() as tape:
        outputs = program(*arrays)
    tape.backward(grads=seeds_of(outputs))
    return np.concatenate([array.grad.numpy() for array in arrays])


@pytest.mark.cpu
@given(steps)
def test_gradients(steps: list[tuple[str, int]]) -> None:
    program = TapeProgram(steps)
    expected = np.concatenate(differences_of(program, [X, Y]))
    # Where a branch changes nearby, differences say nothing.
    assume(np.allclose(expected, np.concatenate(differences_of(program, [X, Y], 5e-5)), rtol=1e-6, atol=1e-8))
    arrays = [array_of(X, X), array_of(Y, Y)]
    with wp.Tape() as tape:
        outputs = program(*arrays)
    results = [output.numpy().copy() for output in outputs]
    for count in (1, 2):
        tape.backward(grads=seeds_of(outputs))
        found = np.concatenate([array.grad.numpy() for array in arrays])
        np.testing.assert_allclose(found, count * expected, rtol=1e-5, atol=1e-7)
    for output, result in zip(outputs, results, strict=True):
        np.testing.assert_array_equal(output.numpy(), result)


@wp.kernel
def weighted_sum(x: wp.array(dtype=f), weights: wp.array(dtype=f), total: wp.array(dtype=f)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * weights[i])


@pytest.mark.cpu
@given(steps)
def test_hessians(steps: list[tuple[str, int]]) -> None:
    program = TapeProgram([step for step in steps if step[0] != "structs"])

    def total(x: Any, y: Any) -> Any:
        made = wp.zeros(1, dtype=f)
        for output, weights in seeds_of(program(x, y)).items():
            wp.launch(weighted_sum, output.size, inputs=[output, weights, made])
        return made

    def difference(step: float) -> np.ndarray:
        above, below = (gradient(program, X + sign * step * Y, Y + sign * step * X) for sign in (1.0, -1.0))
        return (above - below) / (2.0 * step)

    expected = (4.0 * difference(5e-4) - difference(1e-3)) / 3.0
    assume(np.allclose(expected, difference(5e-4), rtol=1e-3, atol=1e-4))
    products = wp.autograd.hvp(total, inputs=[wp.array(X, dtype=f), wp.array(Y, dtype=f)], tangents=[Y, X])
    found = np.concatenate([product.numpy() for product in products])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
