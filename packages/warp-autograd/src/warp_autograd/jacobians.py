"""Jacobians by reverse-mode differentiation.

One backward pass gives one row; where elements are computed apart, it gives a row for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import warp as wp
from warp.recording import clear, is_overlapping, recording
from warp_autograd.components import Components
from warp_autograd.evaluation import Evaluation, Values, make_evaluation, renamed_argument
from warp_autograd.independence import is_elementwise
from warp_autograd.metadata import FunctionMetadata
from warp_autograd.plot import jacobian_plot
from warp_autograd.tape import Tape
from warp_autograd.variables import Mask, Variable

Key = tuple[int, int]
Matrices = dict[Key, Values]


def jacobian(
    function: Any = None,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Mask | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int = 256,
    max_outputs_per_var: int = -1,
    plot_jacobians: bool = False,
    metadata: FunctionMetadata | None = None,
    kernel: Any = None,
) -> dict[Key, wp.array]:
    """Return the Jacobians of a kernel or function by automatic differentiation.

    The keys are the indices of input and output. A matrix has a row for each number of the output and a column for
    each number of the input, element after element. Only floating-point arrays with `requires_grad=True` count,
    inside structs too: those are called `argument.field` and numbered after the last argument. Values and gradients
    of all arguments are afterwards what they were.

    One backward pass is needed for each number of the output; where every thread uses only the elements at its own
    index of an input and of the output, one for each number of an *element*.

    Args:
        function: A kernel, or a Python function that returns one or more arrays computed with Warp.
        dim: Threads of the launch; for kernels.
        inputs: Arguments; for a kernel they come before the outputs.
        outputs: The kernel's remaining arguments; for a function that returns nothing, the arrays it writes.
        input_output_mask: Pairs of input and output, each by index or name; all pairs by default.
        device: Where a kernel runs.
        max_blocks: As in `wp.launch`.
        block_dim: As in `wp.launch`.
        max_outputs_per_var: Rows that are computed, if positive; the others are NaN.
        plot_jacobians: Show the matrices with `jacobian_plot`.
        metadata: Labels for the plot; an empty one is filled in.
        kernel: Old name of `function`.

    Raises:
        AutogradError: The adjoint cannot be computed, or the kernel has none.
        ArgumentError: Something is missing, or nothing has a gradient.
    """
    function = renamed_argument(function, kernel, "jacobian")
    evaluation = make_evaluation(function, dim, inputs, outputs, device, max_blocks, block_dim)
    matrices = autodiff_matrices(evaluation, input_output_mask, max_outputs_per_var)
    described = complete_metadata(metadata, evaluation)
    return finish(matrices, evaluation, described, plot_jacobians, f"Jacobians of {evaluation.label}")


def autodiff_matrices(evaluation: Evaluation, mask: Mask | None, max_outputs: int) -> Matrices:
    """Return the matrices as float64."""
    with evaluation.preserved():
        tape = evaluation.record()
        pairs = evaluation.pairs(mask)
        matrices: Matrices = {}
        for output in {result.index: result for _, result in pairs}.values():
            inputs = [given for given, result in pairs if result.index == output.index]
            apart = [given for given in inputs if is_elementwise(tape.events, given.array, output.array)]
            others = [given for given in inputs if given not in apart]
            rows = [*_blocks(tape, output, apart, max_outputs), *_rows(tape, output, others, max_outputs)]
            for given, matrix in zip((*apart, *others), rows, strict=True):
                matrices[given.index, output.index] = matrix
    return {(given.index, result.index): matrices[given.index, result.index] for given, result in pairs}


def _blocks(tape: Tape, output: Variable, inputs: Sequence[Variable], max_outputs: int) -> list[Values]:
    """Return the matrices by inputs whose elements act on the output's elements at the same index alone."""
    if not inputs:
        return []
    place = Components(output.array)
    elements, width = place.count // max(place.per_element, 1), place.per_element
    matrices = []
    for given in inputs:
        matrices.append(np.zeros((place.count, Components(given.array).count)))
        matrices[-1][limited(place.count, max_outputs) :] = np.nan
    with recording(None):
        seed = wp.zeros_like(output.array, requires_grad=False)
        for component in range(min(width, limited(place.count, max_outputs))):
            _clear_gradients(tape, inputs)
            Components(seed).set_all(component, 1.0)
            tape.backward(grads={output.array: seed})
            Components(seed).set_all(component, 0.0)
            for given, matrix in zip(inputs, matrices, strict=True):
                blocks = Components(given.array.grad).values().reshape(elements, -1)
                for element in range(elements):
                    row = element * width + component
                    if row < limited(place.count, max_outputs):
                        columns = slice(element * blocks.shape[1], (element + 1) * blocks.shape[1])
                        matrix[row, columns] = blocks[element]
    return matrices


def _clear_gradients(tape: Tape, inputs: Sequence[Variable]) -> None:
    tape.zero()
    for given in inputs:
        clear(given.array.grad.numpy())


def _rows(tape: Tape, output: Variable, inputs: Sequence[Variable], max_outputs: int) -> list[Values]:
    """Return the matrices row by row."""
    if not inputs:
        return []
    count = Components(output.array).count
    matrices = [np.full((count, Components(given.array).count), np.nan) for given in inputs]
    is_written = any(is_overlapping(array, output.array) for event in tape.events for array in event.writes)
    with recording(None):
        seed = wp.zeros_like(output.array, requires_grad=False)
        place = Components(seed)
        for row in range(limited(count, max_outputs)):
            _clear_gradients(tape, inputs)
            if is_written:
                place.set(row, 1.0)
                tape.backward(grads={output.array: seed})
                place.set(row, 0.0)
            else:
                clear(output.array.grad.numpy())
                Components(output.array.grad).set(row, 1.0)
            for given, matrix in zip(inputs, matrices, strict=True):
                matrix[row] = Components(given.array.grad).values()
    return matrices


def limited(count: int, maximum: int) -> int:
    """Return how many of `count` numbers are looked at; a maximum that is not positive is none."""
    return min(count, maximum) if maximum > 0 else count


def complete_metadata(metadata: FunctionMetadata | None, evaluation: Evaluation) -> FunctionMetadata:
    """Return the given metadata, filled in if empty, or new ones."""
    if metadata is None:
        return evaluation.describe()
    if metadata.is_empty:
        vars(metadata).update(vars(evaluation.describe()))
    return metadata


def finish(
    matrices: Matrices, evaluation: Evaluation, metadata: FunctionMetadata, is_plotted: bool, title: str
) -> dict[Key, wp.array]:
    """Return the matrices as arrays, and show them if wanted."""
    arrays = _as_arrays(matrices, evaluation)
    if is_plotted:
        jacobian_plot(arrays, metadata, title=title)
    return arrays


def _as_arrays(matrices: Matrices, evaluation: Evaluation) -> dict[Key, wp.array]:
    arrays = {}
    for key, matrix in matrices.items():
        given = next(variable for variable in evaluation.inputs if variable.index == key[0])
        result = next(variable for variable in evaluation.outputs if variable.index == key[1])
        is_double = any(_is_double(variable) for variable in (given, result))
        arrays[key] = wp.array(matrix, dtype=wp.float64 if is_double else wp.float32, device=evaluation.device)
    return arrays


def _is_double(variable: Variable) -> bool:
    return Components(variable.array).epsilon < 1e-10
