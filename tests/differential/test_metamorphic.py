"""Gradients of random programs do not change with how the program is written or translated.

The other relations are where their subject is: the number of checkpoint slots and linearity in the seeds in
`checks.py`, workers and a second backward pass in `test_compiled_programs.py`, snapshots against separate arrays in
`tests/autograd/test_snapshots.py`.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.differential.checks import is_tame
from tests.differential.inputs import Memory, leaves, plain
from tests.differential.memory_programs import generate_memory_program
from tests.differential.programs import HEADER, Program, generate
from tests.differential.running import adjoint, front_end, gradients_by_adjoint, run_interpreted, taped

import warp as wp
from warp._src.passes import inline

programs = st.builds(
    lambda rng, is_plain: generate(rng) if is_plain else generate_memory_program(rng),
    st.randoms(use_true_random=False),
    st.booleans(),
)
FOR = re.compile(r"^( *)for (\w+) in range\((.*)\):$")


def gradients_of(program: Program) -> Memory:
    function = front_end(program)
    reverse = adjoint(function, program)
    after, records = taped(function, reverse, program)
    return gradients_by_adjoint(reverse, program, after, 3, records)


def assert_same(found: Memory, expected: Memory, overlap: str | None) -> None:
    values = dict(leaves(found, overlap))
    scale = max(float(np.abs(array).max()) for _, array in leaves(expected, overlap))
    for name, array in leaves(expected, overlap):
        np.testing.assert_allclose(values[name], array, rtol=1e-10, atol=1e-12 * scale, err_msg=name)


def is_steady(program: Program) -> bool:
    return is_tame(dict(plain(run_interpreted(front_end(program), program))), 1e6)


def with_while_loops(source: str) -> str:
    """Write every `for` over a range as a `while` that counts before its body, so that `continue` keeps its meaning."""
    made: list[str] = []
    for number, line in enumerate(source.splitlines()):
        found = FOR.match(line)
        if found is None:
            made.append(line)
            continue
        indent, counter, arguments = found.groups()
        parts = _arguments(arguments)
        start, stop, step = {1: ("0", *parts, "1"), 2: (*parts, "1"), 3: tuple(parts)}[len(parts)]
        comparison = ">" if step.startswith("-") else "<"
        made += [
            f"{indent}stop{number} = {stop}",
            f"{indent}next{number} = {start}",
            f"{indent}while next{number} {comparison} stop{number}:",
            f"{indent}    {counter} = next{number}",
            f"{indent}    next{number} += {step}",
        ]
    return "\n".join(made) + "\n"


def _arguments(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def test_the_rewriting_finds_every_loop() -> None:
    source = "for j in range(a[1, 2] % 3, -1, -1):\n    y = j\n"
    expected = "stop0 = -1\nnext0 = a[1, 2] % 3\nwhile next0 > stop0:\n    j = next0\n    next0 += -1\n    y = j\n"
    assert with_while_loops(source) == expected
    assert "for " not in with_while_loops(HEADER)


@given(programs)
def test_for_loops_written_as_while_loops(program: Program) -> None:
    note(program.source)
    assume(is_steady(program))
    rewritten = replace(program, source=with_while_loops(program.source))
    for left, right in zip(*(plain(run_interpreted(front_end(p), p)) for p in (program, rewritten)), strict=True):
        np.testing.assert_array_equal(left[1], right[1], err_msg=left[0])
    assert_same(gradients_of(rewritten), gradients_of(program), program.overlap)


@pytest.mark.parametrize("limit", [0, 2, 100])
@pytest.mark.parametrize("seed", range(10))
def test_unrolling(limit: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = generate_memory_program(random.Random(seed))
    expected = gradients_of(program)
    monkeypatch.setattr(wp.config, "max_unroll", limit)
    assert_same(gradients_of(program), expected, program.overlap)


@pytest.mark.parametrize("size", [0, 10**9])
@pytest.mark.parametrize("seed", range(10))
def test_functions_with_and_without_a_body_of_their_own(size: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = generate(random.Random(seed), is_hazardous=seed % 2 == 0)
    expected = gradients_of(program)
    monkeypatch.setattr(inline, "_LARGE", size)
    assert_same(gradients_of(program), expected, program.overlap)
