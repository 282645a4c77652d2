"""Tests of the tests: a deliberately wrong adjoint is caught by the random kernels."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.differential.ir_programs import generate_ir
from tests.differential.programs import THREADS, Inputs
from tests.differential.running import adjoint, cells, gradients_by_duals, run_interpreted, seeds

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.interp import run_kernel
from warp._src.ir.ops import Atomic, Const, Construct, Insert, Loop, Op, ReverseLoop, Space, Store, Yield
from warp._src.ir.traverse import clone_function, definitions, replace_uses

SEEDS = range(60)


def rewritten(region: Region, change: Callable[[Op], Op | None]) -> None:
    """Replace or, for None, remove operations at any depth, in place."""
    ops = []
    for op in region.ops:
        for inner in op.regions:
            rewritten(inner, change)
        changed = change(op)
        if changed is not None:
            ops.append(changed)
    region.ops[:] = ops


def is_zero(value: Value, function: Function) -> bool:
    op = definitions(function).get(value)
    return (isinstance(op, Const) and op.value == 0) or (isinstance(op, Construct) and not op.operands)


def keep_gradient_at_store(function: Function) -> None:
    """A store does not clear the gradient."""

    def change(op: Op) -> Op | None:
        is_clearing = type(op) is Store and op.space is Space.GRADIENT and is_zero(op.value, function)
        return None if is_clearing else op

    rewritten(function.body, change)


def restart_from_entry_state(function: Function) -> None:
    """The reverse of a loop sees the entry state in every iteration."""

    def change(op: Op) -> Op | None:
        if not isinstance(op, ReverseLoop) or not op.states:
            return op
        args = tuple(Value(arg.type) for arg in op.advance.args)
        identity = Region(args, [Yield(loc=op.loc, operands=args[1:])])
        return replace(op, regions=(identity, op.reverse), site=None, is_saved=False)

    rewritten(function.body, change)


def keep_component_at_insert(function: Function) -> None:
    """An insert does not clear the adjoint of the component that it replaced."""
    mapping = {
        op.result: op.operands[0]
        for op in function.walk()
        if isinstance(op, Insert) and is_zero(op.operands[1], function)
    }
    for result, aggregate in mapping.items():
        while aggregate in mapping:
            aggregate = mapping[aggregate]
        mapping[result] = aggregate
    replace_uses(function.body, mapping)


def ignore_early_exit(function: Function) -> None:
    """The reverse of a loop that ended early runs the full trip count."""
    loops = {op.count: op.trip for op in function.walk() if isinstance(op, Loop) and op.trip is not None}

    def change(op: Op) -> Op | None:
        if not isinstance(op, ReverseLoop) or op.trip not in loops:
            return op
        return replace(op, operands=(loops[op.trip], *op.operands[1:]), site=None, is_saved=False)

    rewritten(function.body, change)


def overwrite_instead_of_adding(function: Function) -> None:
    """A load's adjoint replaces the gradient instead of being added to it."""

    def change(op: Op) -> Op | None:
        return replace(op, kind="exch") if isinstance(op, Atomic) and op.space is Space.GRADIENT else op

    rewritten(function.body, change)


def drop_first_loop_adjoint(function: Function) -> None:
    """A loop gives back the adjoint that it was given."""

    def change(op: Op) -> Op | None:
        if not isinstance(op, ReverseLoop) or not op.inits:
            return op
        end = op.reverse.ops[-1]
        op.reverse.ops[-1] = replace(end, operands=op.reverse.args[1 + op.states :])
        return op

    rewritten(function.body, change)


MUTANTS = (
    keep_gradient_at_store,
    restart_from_entry_state,
    keep_component_at_insert,
    ignore_early_exit,
    overwrite_instead_of_adding,
    drop_first_loop_adjoint,
)


def is_caught(seed: int, mutate: Callable[[Function], None], order: str) -> bool:
    function, inputs = generate_ir(random.Random(seed)), Inputs(seed)
    after = run_interpreted(function, inputs)
    expected = gradients_by_duals(function, inputs)
    reverse = clone_function(adjoint(function))
    mutate(reverse)
    gradients = seeds(inputs)
    run_kernel(reverse, THREADS, cells(after, gradients), order=order)
    return not all(np.allclose(gradients[name], expected[name], rtol=1e-8, atol=1e-10) for name in expected)


@pytest.mark.parametrize("mutate", MUTANTS)
def test_a_wrong_adjoint_is_caught(mutate: Callable[[Function], None]) -> None:
    assert any(is_caught(seed, mutate, "descending") for seed in SEEDS)


def test_the_ascending_order_of_threads_is_caught() -> None:
    assert any(is_caught(seed, lambda function: None, "ascending") for seed in SEEDS)


def test_the_right_adjoint_is_not_caught() -> None:
    assert not any(is_caught(seed, lambda function: None, "descending") for seed in SEEDS)
