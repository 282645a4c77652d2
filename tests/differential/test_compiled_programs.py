"""Random programs: compiled code equals the interpreter, forward and backward, whatever the number of workers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from tests.differential.checks import is_tame
from tests.differential.inputs import ARRAYS, OVERLAPS, Memory, leaves, plain
from tests.differential.memory_programs import generate_memory_program
from tests.differential.programs import Program, generate
from tests.differential.running import (
    adjoint,
    compile_source,
    front_end,
    gradients_by_adjoint,
    run_interpreted,
    taped,
)
from tests.differential.wide_programs import generate_wide_program

import warp as wp
from warp._src.launch.program import executor
from warp.errors import AutogradError


@pytest.fixture
def workers() -> Iterator[object]:
    before = executor().workers
    yield executor().set_workers
    executor().set_workers(before)


def run_compiled(program: Program, passes: int = 1) -> tuple[Memory, Memory]:
    """Launch the kernel on a tape and go back through it; gives final memory and gradients.

    With several passes the seeds are set anew each time, while the gradients of what is only read grow.
    """
    kernel = compile_source(program.source)["program"]
    memory, weights = program.memory(), program.seeds()
    arrays = {
        name: wp.array(memory[name], dtype=type.dtype, requires_grad=name in weights)
        for name, (_, type) in zip(ARRAYS, kernel.parameters, strict=True)
    }
    overlap = OVERLAPS[program.overlap]
    if overlap is not None:
        arrays["also"] = overlap[1](arrays[overlap[0]])
    with wp.Tape() as tape:
        wp.launch(kernel, dim=program.shape, inputs=list(arrays.values()))
    after = {name: array.numpy().copy() for name, array in arrays.items()}
    for number in range(passes):
        for name in weights:
            if number == 0 or name not in READ_ONLY:
                arrays[name].grad.numpy()[...] = weights[name]
        tape.backward()
    return after, {name: arrays[name].grad.numpy() for name in weights}


READ_ONLY = ("x", "pts")


def same(found: Memory, expected: Memory, what: str) -> None:
    scale = max(float(np.abs(array).max()) for _, array in plain(expected))
    values = dict(plain(found))
    for name, array in plain(expected):
        np.testing.assert_allclose(values[name], array, rtol=1e-9, atol=1e-12 * scale, err_msg=f"{what} of {name}")


@pytest.mark.parametrize("seed", range(100, 116))
def test_compiled_code_equals_the_interpreter(seed: int, workers: object) -> None:
    rng = random.Random(seed)
    program = (generate, generate_memory_program, generate_wide_program)[seed % 3](rng)
    function = front_end(program)
    expected = run_interpreted(function, program)
    assert is_tame(dict(plain(expected)), 1e6), "choose another seed"
    try:
        reverse = adjoint(function, program)
    except AutogradError:
        with pytest.raises(AutogradError):
            run_compiled(program)
        return
    records = taped(function, reverse, program)[1]
    expected_gradients = gradients_by_adjoint(reverse, program, expected, None, records)
    for count in (1, 2, 4):
        workers(count)  # type: ignore[operator]  # may be None
        after, gradients = run_compiled(program)
        same(after, expected, "value")
        same(gradients, expected_gradients, "gradient")


@pytest.mark.parametrize("seed", range(200, 203))
def test_a_second_backward_adds_as_much_as_the_first(seed: int) -> None:
    program = generate_memory_program(random.Random(seed))
    once, twice = (run_compiled(program, passes)[1] for passes in (1, 2))
    seeds = program.seeds()
    for name, array in leaves(once):
        if name in READ_ONLY and program.overlap != name:
            np.testing.assert_allclose(dict(leaves(twice))[name], 2 * array - seeds[name], rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_array_equal(dict(leaves(twice))[name], array)
