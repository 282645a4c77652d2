"""Compares the adjoint of a kernel with dual numbers, for hand-built kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warp._src.ir.core import Function
from warp._src.ir.dual_run import run_kernel_dual
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell, Records
from warp._src.passes.adjoint import Adjoint
from warp._src.passes.pipeline import backward
from warp._src.types.signature import is_array, is_differentiable

SLOTS = (2, 3, 8, None)
Memory = Sequence[Any]


def adjoint_of_kernel(function: Function, dim: int | Sequence[int], may_alias: bool = False) -> Adjoint:
    """Build the adjoint for a launch over `dim`."""
    shape = (dim,) if isinstance(dim, int) else tuple(dim)
    several = frozenset(d for d, extent in enumerate(shape) if extent > 1)
    return backward(function, may_alias=may_alias, dimensions=several)


def problems(function: Function, dim: int | Sequence[int] = 1, may_alias: bool = False) -> list[str]:
    """Give the texts of the problems of the adjoint."""
    return [problem.text for problem in adjoint_of_kernel(function, dim, may_alias).problems]


def gradients_by_adjoint(
    function: Function,
    dim: int | Sequence[int],
    memory: Memory,
    seeds: Sequence[Any],
    *,
    slots: int | None = None,
    may_alias: bool = False,
    order: str = "descending",
) -> list[Any]:
    """Run the kernel and then its adjoint; gives the gradient of every argument, None where there is none.

    Arguments that are one object share their memory and their gradient.
    """
    adjoint = adjoint_of_kernel(function, dim, may_alias)
    assert not adjoint.problems, [problem.text for problem in adjoint.problems]
    copies: dict[int, Any] = {}
    cells: list[Any] = []
    for value, param, seed in zip(memory, function.params, seeds, strict=True):
        if is_array(param.type):
            if id(value) not in copies:
                gradient = None if seed is None else np.array(seed, dtype=np.float64)
                copies[id(value)] = ArrayCell(np.array(value), gradient, param.type.dtype)
            cells.append(copies[id(value)])
        else:
            cells.append(value)
    records = Records()
    run_kernel(adjoint.recorded or function, dim, cells, records=records)
    before = [cell.primal.copy() if isinstance(cell, ArrayCell) else None for cell in cells]
    run_kernel(adjoint.function, dim, cells, order=order, slots=slots, records=records)
    for cell, array in zip(cells, before, strict=True):
        if isinstance(cell, ArrayCell):
            np.testing.assert_array_equal(cell.primal, array, err_msg="the adjoint wrote primal memory")
    return [cell.gradient if isinstance(cell, ArrayCell) else None for cell in cells]


def gradients_by_duals(function: Function, dim: int | Sequence[int], memory: Memory, seeds: Sequence[Any]) -> list[Any]:
    """Contract the derivatives of the final by the initial memory with the seeds."""
    is_input = [
        is_array(param.type) and is_differentiable(param.type.dtype) and seed is not None
        for param, seed in zip(function.params, seeds, strict=True)
    ]
    sizes = [value.size if used else 0 for value, used in zip(memory, is_input, strict=True)]
    identity, directions, start = np.eye(sum(sizes)), [], 0
    for value, size, used in zip(memory, sizes, is_input, strict=True):
        directions.append(identity[:, start : start + size].reshape(sum(sizes), *value.shape) if used else None)
        start += size
    copies = [np.array(value) if isinstance(value, np.ndarray) else value for value in memory]
    derivatives = run_kernel_dual(function, dim, copies, directions)
    total = np.zeros(sum(sizes))
    for derivative, seed, used in zip(derivatives, seeds, is_input, strict=True):
        if used:
            total += np.tensordot(derivative, np.asarray(seed), np.ndim(seed))
    gradients: list[Any] = []
    start = 0
    for value, size, used in zip(memory, sizes, is_input, strict=True):
        gradients.append(total[start : start + size].reshape(value.shape) if used else None)
        start += size
    return gradients


def random_seeds(function: Function, memory: Memory) -> list[Any]:
    """Make a gradient of the final memory for every array of floats."""
    rng = np.random.default_rng(5)
    return [
        rng.uniform(-1.0, 1.0, value.shape) if is_array(param.type) and is_differentiable(param.type.dtype) else None
        for value, param in zip(memory, function.params, strict=True)
    ]


def check(function: Function, dim: int | Sequence[int], memory: Memory) -> list[Any]:
    """Assert that the adjoint agrees with duals for any number of slots; gives the gradients."""
    seeds = random_seeds(function, memory)
    expected = gradients_by_duals(function, dim, memory, seeds)
    found: list[Any] = []
    for slots in SLOTS:
        found = gradients_by_adjoint(function, dim, memory, seeds, slots=slots)
        for number, (left, right) in enumerate(zip(found, expected, strict=True)):
            if right is not None:
                np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12, err_msg=f"p{number}, slots {slots}")
    return found


__all__ = [
    "SLOTS",
    "adjoint_of_kernel",
    "check",
    "gradients_by_adjoint",
    "gradients_by_duals",
    "problems",
    "random_seeds",
]
