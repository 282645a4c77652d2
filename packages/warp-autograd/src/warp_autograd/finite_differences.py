"""Jacobians by finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import warp as wp
from warp_autograd.components import Components
from warp_autograd.evaluation import Evaluation, Values, make_evaluation, renamed_argument
from warp_autograd.jacobians import Key, Matrices, complete_metadata, finish, limited
from warp_autograd.metadata import FunctionMetadata
from warp_autograd.variables import Mask, Variable

_LEAST_STEP_IN_SPACINGS = 100.0


def jacobian_fd(
    function: Any = None,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Mask | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int = 256,
    max_inputs_per_var: int = -1,
    eps: float = 1e-4,
    plot_jacobians: bool = False,
    metadata: FunctionMetadata | None = None,
    kernel: Any = None,
) -> dict[Key, wp.array]:
    """Return the Jacobians of a kernel or function by central differences.

    Keys, matrices and arguments are those of `jacobian`. The function runs twice for each number of an input, from
    the same state each time; no adjoint is needed.

    Args:
        function: A kernel, or a Python function that returns one or more arrays.
        dim: Threads of the launch; for kernels.
        inputs: Arguments; for a kernel they come before the outputs.
        outputs: The kernel's remaining arguments; for a function that returns nothing, the arrays it writes.
        input_output_mask: Pairs of input and output, each by index or name; all pairs by default.
        device: Where a kernel runs.
        max_blocks: As in `wp.launch`.
        block_dim: As in `wp.launch`.
        max_inputs_per_var: Columns that are computed, if positive; the others are NaN.
        eps: Step. It is at least a hundred times the distance to the next number of the input's type, so that
            large and half-precision numbers change at all; the difference is divided by the step really made.
        plot_jacobians: Show the matrices with `jacobian_plot`.
        metadata: Labels for the plot; an empty one is filled in.
        kernel: Old name of `function`.

    Raises:
        ArgumentError: Something is missing, or nothing has a gradient.
    """
    function = renamed_argument(function, kernel, "jacobian_fd")
    evaluation = make_evaluation(function, dim, inputs, outputs, device, max_blocks, block_dim)
    matrices = difference_matrices(evaluation, input_output_mask, max_inputs_per_var, eps)
    described = complete_metadata(metadata, evaluation)
    return finish(matrices, evaluation, described, plot_jacobians, f"Finite differences of {evaluation.label}")


def difference_matrices(evaluation: Evaluation, mask: Mask | None, max_inputs: int, eps: float) -> Matrices:
    """Return the matrices as float64."""
    with evaluation.preserved():
        evaluation.run()
        pairs = evaluation.pairs(mask)
        counts = {result.index: Components(result.array).count for _, result in pairs}
        matrices = {
            (given.index, result.index): np.full((counts[result.index], Components(given.array).count), np.nan)
            for given, result in pairs
        }
        for given in {given.index: given for given, _ in pairs}.values():
            results = [result.index for other, result in pairs if other.index == given.index]
            for column in range(limited(Components(given.array).count, max_inputs)):
                for index, difference in zip(
                    results, _difference(evaluation, given, column, results, eps), strict=True
                ):
                    matrices[given.index, index][:, column] = difference
    return matrices


def _difference(
    evaluation: Evaluation, given: Variable, column: int, results: Sequence[int], eps: float
) -> list[Values]:
    evaluation.restore()
    components = Components(given.array)
    value = components.get(column)
    step = max(eps, _LEAST_STEP_IN_SPACINGS * components.spacing(column))
    above = evaluation.run_with(given, column, value + step)
    values_above = [evaluation.output_values(index) for index in results]
    below = evaluation.run_with(given, column, value - step)
    values_below = [evaluation.output_values(index) for index in results]
    with np.errstate(invalid="ignore"):
        return [(high - low) / (above - below) for high, low in zip(values_above, values_below, strict=True)]
