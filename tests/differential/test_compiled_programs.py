"""Random programs: compiled code equals the interpreter, forward and backward, whatever the number of workers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from tests.differential.checks import is_tame
from tests.differential.programs import ARRAYS, THREADS, Program, generate
from tests.differential.running import (
    DTYPES,
    FLOAT_ARRAYS,
    adjoint,
    compile_source,
    front_end,
    gradients_by_adjoint,
    run_interpreted,
    seeds,
    taped,
)

import warp as wp
from warp._src.launch.program import executor
from warp.errors import AutogradError

Memory = dict[str, np.ndarray]


@pytest.fixture
def workers() -> Iterator[object]:
    before = executor().workers
    yield executor().set_workers
    executor().set_workers(before)


def run_compiled(program: Program) -> tuple[Memory, Memory]:
    """Launch the kernel on a tape and go back through it; gives final memory and gradients."""
    kernel = compile_source(program.source)["program"]
    memory, weights = program.inputs(), seeds(program)
    arrays = {
        name: wp.array(memory[name], dtype=DTYPES[dtype], requires_grad=name in FLOAT_ARRAYS)
        for name, (dtype, _) in ARRAYS.items()
    }
    with wp.Tape() as tape:
        wp.launch(kernel, dim=THREADS, inputs=list(arrays.values()))
    after = {name: array.numpy().copy() for name, array in arrays.items()}
    for name in FLOAT_ARRAYS:
        arrays[name].grad.numpy()[...] = weights[name]
    tape.backward()
    return after, {name: arrays[name].grad.numpy() for name in FLOAT_ARRAYS}


def same(found: Memory, expected: Memory, what: str) -> None:
    scale = max(float(np.abs(array).max()) for array in expected.values())
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-12 * scale, err_msg=f"{what} of {name}")


@pytest.mark.parametrize("seed", range(100, 124))
def test_compiled_code_equals_the_interpreter(seed: int, workers: object) -> None:
    program = generate(random.Random(seed), is_hazardous=seed % 4 == 0)
    function = front_end(program)
    expected = run_interpreted(function, program)
    assert is_tame(expected, 1e6), "choose another seed"
    try:
        reverse = adjoint(function)
        expected_gradients = gradients_by_adjoint(reverse, program, expected, None, taped(function, reverse, program)[1])
    except AutogradError:
        with pytest.raises(AutogradError):
            run_compiled(program)
        return
    for count in (1, 2, 4):
        workers(count)  # type: ignore[operator]
        after, gradients = run_compiled(program)
        same(after, expected, "value")
        same(gradients, expected_gradients, "gradient")
