"""Random IR: the adjoint equals dual numbers."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.differential.checks import check_gradients
from tests.differential.inputs import OVERLAPS, Inputs
from tests.differential.ir_programs import generate_ir

from warp._src.ir.printer import print_function
from warp._src.ir.verify import verify

randoms = st.randoms(use_true_random=False)
inputs = st.builds(Inputs, st.integers(0, 1 << 30), st.just((3,)), st.sampled_from(sorted(OVERLAPS)))


@given(randoms, st.integers(0, 1 << 30))
def test_the_adjoint_equals_duals(rng: random.Random, seed: int) -> None:
    function = generate_ir(rng)
    note(print_function(function))
    verify(function)
    assume(check_gradients(function, Inputs(seed)))


@given(randoms, inputs)
def test_the_adjoint_of_kernels_that_read_what_they_write_equals_duals(rng: random.Random, memory: Inputs) -> None:
    function = generate_ir(rng, is_hazardous=True)
    note(print_function(function))
    assume(check_gradients(function, memory))


@pytest.mark.parametrize("seed", range(20))
def test_fixed_kernels(seed: int) -> None:
    assert check_gradients(generate_ir(random.Random(seed), is_hazardous=seed % 2 == 1), Inputs(seed))
