"""Random IR: the adjoint equals dual numbers, or is refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.differential.checks import check_gradients
from tests.differential.ir_programs import generate_ir
from tests.differential.programs import Inputs

from warp._src.ir.printer import print_function
from warp._src.ir.verify import verify
from warp.errors import AutogradError

randoms = st.randoms(use_true_random=False)


@given(randoms, st.integers(0, 1 << 30))
def test_the_adjoint_equals_duals(rng: random.Random, seed: int) -> None:
    function = generate_ir(rng)
    note(print_function(function))
    verify(function)
    assume(check_gradients(function, Inputs(seed)))


@given(randoms, st.integers(0, 1 << 30))
def test_the_adjoint_of_kernels_that_read_what_they_write_is_right_or_refused(rng: random.Random, seed: int) -> None:
    function = generate_ir(rng, is_hazardous=True)
    note(print_function(function))
    try:
        assume(check_gradients(function, Inputs(seed)))
    except AutogradError:
        return


@pytest.mark.parametrize("seed", range(20))
def test_fixed_kernels(seed: int) -> None:
    assert check_gradients(generate_ir(random.Random(seed)), Inputs(seed))
