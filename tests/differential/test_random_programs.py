"""Random programs: the interpreter equals plain Python, and the adjoint equals dual numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.differential.checks import check_gradients
from tests.differential.inputs import plain
from tests.differential.memory_programs import generate_memory_program
from tests.differential.programs import Program, generate
from tests.differential.running import front_end, run_as_python, run_interpreted
from tests.differential.wide_programs import generate_wide_program

from warp._src.ir.verify import verify

randoms = st.randoms(use_true_random=False)


def check_primal(program: Program) -> None:
    expected = run_as_python(program)
    function = front_end(program)
    verify(function)
    found = dict(plain(run_interpreted(function, program)))
    for name, array in plain(expected):
        np.testing.assert_allclose(found[name], array, rtol=1e-10, atol=1e-12, err_msg=name)


@given(randoms)
def test_the_interpreter_runs_programs_as_python_does(rng: random.Random) -> None:
    program = generate_memory_program(rng)
    note(program.source)
    check_primal(program)


@given(randoms)
def test_the_adjoint_equals_duals(rng: random.Random) -> None:
    program = generate(rng)
    note(program.source)
    assume(check_gradients(front_end(program), program))


@given(randoms)
def test_the_adjoint_of_programs_that_read_what_they_write_equals_duals(rng: random.Random) -> None:
    program = generate_memory_program(rng)
    note(f"{program.source}\nlaunched over {program.shape}, 'also' is {program.overlap}")
    assume(check_gradients(front_end(program), program))


@given(randoms)
def test_programs_of_the_wider_language(rng: random.Random) -> None:
    program = generate_wide_program(rng)
    note(f"{program.source}\nlaunched over {program.shape}, 'also' is {program.overlap}")
    check_primal(program)
    assume(check_gradients(front_end(program), program))


@pytest.mark.parametrize("seed", range(12))
def test_fixed_programs_of_the_wider_language(seed: int) -> None:
    program = generate_wide_program(random.Random(seed))
    check_primal(program)
    check_gradients(front_end(program), program)


@pytest.mark.parametrize("seed", range(12))
def test_fixed_programs(seed: int) -> None:
    program = generate(random.Random(seed), is_hazardous=seed % 4 == 0)
    check_primal(program)
    assert check_gradients(front_end(program), program)


def test_fixed_programs_that_read_what_they_write() -> None:
    """Hardly any is refused."""
    checked = 0
    for seed in range(16):
        program = generate_memory_program(random.Random(seed))
        check_primal(program)
        checked += check_gradients(front_end(program), program)
    assert checked >= 14
