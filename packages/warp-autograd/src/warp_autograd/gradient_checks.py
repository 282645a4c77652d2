"""Compare gradients by automatic differentiation with finite differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warp.errors import ArgumentError, GradientMismatchError
from warp.recording import Recordable
from warp_autograd.arguments import arrays_in
from warp_autograd.components import Components
from warp_autograd.entries import CustomEvent
from warp_autograd.evaluation import Evaluation, KernelEvaluation, Values, is_active, make_evaluation
from warp_autograd.finite_differences import difference_matrices
from warp_autograd.jacobians import Matrices, autodiff_matrices, limited
from warp_autograd.plot import jacobian_plot
from warp_autograd.summary import PairResult, format_results
from warp_autograd.tape import Tape
from warp_autograd.variables import Mask


@dataclass(frozen=True)
class _Options:
    eps: float
    atol: float
    rtol: float
    raise_exception: bool
    max_inputs: int
    max_outputs: int
    plot_relative_error: bool
    plot_absolute_error: bool
    show_summary: bool


def gradcheck(
    function: Any,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    *,
    eps: float = 1e-4,
    atol: float = 1e-3,
    rtol: float = 1e-2,
    raise_exception: bool = True,
    input_output_mask: Mask | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int = 256,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
) -> bool:
    """Say whether the gradients of a kernel or function agree with central differences.

    They do if none is NaN and `|AD - FD| <= atol + rtol * |FD|` everywhere. The arguments are those of `jacobian`
    and `jacobian_fd`; values and gradients of all arrays are afterwards what they were.

    Args:
        function: A kernel, or a Python function that returns one or more arrays computed with Warp.
        dim: Threads of the launch; for kernels.
        inputs: Arguments; for a kernel they come before the outputs.
        outputs: The kernel's remaining arguments; for a function that returns nothing, the arrays it writes.
        eps: Step of the differences, see `jacobian_fd`.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: Raise if the check fails.
        input_output_mask: Pairs of input and output, each by index or name; all pairs by default.
        device: Where a kernel runs.
        max_blocks: As in `wp.launch`.
        block_dim: As in `wp.launch`.
        max_inputs_per_var: Numbers of each input that are checked, if positive.
        max_outputs_per_var: Numbers of each output that are checked, if positive.
        plot_relative_error: Show the relative errors; needs matplotlib.
        plot_absolute_error: Show the absolute errors; needs matplotlib.
        show_summary: Print a table.

    Raises:
        GradientMismatchError: A ValueError; says which derivative is wrong, and by how much.
        AutogradError: The adjoint cannot be computed, or the kernel has none.
        ArgumentError: Something is missing, or nothing has a gradient.
    """
    evaluation = make_evaluation(function, dim, inputs, outputs, device, max_blocks, block_dim)
    options = _Options(
        eps,
        atol,
        rtol,
        raise_exception,
        max_inputs_per_var,
        max_outputs_per_var,
        plot_relative_error,
        plot_absolute_error,
        show_summary,
    )
    kind = "kernel" if isinstance(evaluation, KernelEvaluation) else "function"
    return _check(evaluation, input_output_mask, options, f"{kind} {evaluation.label}")


def gradcheck_tape(
    tape: Tape,
    *,
    eps: float = 1e-4,
    atol: float = 1e-3,
    rtol: float = 1e-2,
    raise_exception: bool = True,
    input_output_masks: Mapping[str, Mask] | None = None,
    blacklist_kernels: Sequence[str] | None = None,
    whitelist_kernels: Sequence[str] | None = None,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
    reverse_launches: bool = False,
    skip_to_launch_index: int = 0,
) -> bool:
    """Check every launch on a tape by itself, as `gradcheck` does, at the present values of its arrays.

    Arrays given as `outputs=` of a launch are its outputs; so is what it writes among its `inputs=`. Launches
    without a differentiable input and output are passed over. Functions recorded with `Tape.record_func` are not
    checked, nor are copies and fills; the summary says so. The tape and its arrays stay as they are.

    Args:
        tape: The tape.
        eps: Step of the differences, see `jacobian_fd`.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: Raise at the first launch whose check fails.
        input_output_masks: Masks as in `gradcheck` by the kernel's key.
        blacklist_kernels: Keys of kernels that are not checked.
        whitelist_kernels: If not empty, keys of the only kernels that are checked.
        max_inputs_per_var: Numbers of each input that are checked, if positive.
        max_outputs_per_var: Numbers of each output that are checked, if positive.
        plot_relative_error: Show the relative errors of each launch; needs matplotlib.
        plot_absolute_error: Show the absolute errors of each launch; needs matplotlib.
        show_summary: Print a table for each launch, and what was not checked.
        reverse_launches: Begin with the last launch.
        skip_to_launch_index: Number of launches to pass over at the beginning.

    Raises:
        GradientMismatchError: A ValueError; says which derivative of which launch is wrong, and by how much.
        AutogradError: An adjoint cannot be computed, or a kernel has none.
        ArgumentError: A mask or the whitelist names a kernel that is not on the tape.
    """
    if not isinstance(tape, Tape):
        raise ArgumentError(f"tape must be a wp.Tape, got {type(tape).__qualname__}")
    events = [event for event in tape.events if hasattr(event, "kernel")]
    masks = dict(input_output_masks or {})
    _require_known_keys("input_output_masks", masks, events)
    _require_known_keys("whitelist_kernels", whitelist_kernels or (), events)
    options = _Options(
        eps,
        atol,
        rtol,
        raise_exception,
        max_inputs_per_var,
        max_outputs_per_var,
        plot_relative_error,
        plot_absolute_error,
        show_summary,
    )
    order = list(enumerate(events))
    if reverse_launches:
        order.reverse()
    is_passed = True
    unchecked: list[str] = []
    for number, event in order[skip_to_launch_index:]:
        if event.label in (blacklist_kernels or ()) or (whitelist_kernels and event.label not in whitelist_kernels):
            continue
        evaluation = _launch_evaluation(event)
        if not all(any(is_active(v.array) for v in found) for found in (evaluation.inputs, evaluation.outputs)):
            unchecked.append(f"launch {number} of kernel {event.label}: no differentiable input and output")
            continue
        title = f"kernel {event.label} (launch {number}, {event.location})"
        is_passed &= _check(evaluation, masks.get(event.label), options, title)
    if show_summary:
        _report_unchecked(tape, unchecked)
    return is_passed


def _launch_evaluation(event: Any) -> KernelEvaluation:
    count = len(event.inputs)
    written = {id(array) for array in event.writes}
    read = {id(array) for array in event.reads}
    inputs = list(range(count))
    outputs = list(range(count, len(event.args)))
    outputs += [place for place in inputs if any(id(array) in written for array in arrays_in(event.args[place]))]
    if count == len(event.args):
        inputs = [place for place in inputs if any(id(array) in read for array in arrays_in(event.args[place]))]
    return KernelEvaluation(
        event.kernel, event.dim, event.args, inputs, outputs, event.device, event.max_blocks, event.block_dim or 256
    )


def _require_known_keys(name: str, keys: Any, events: Sequence[Recordable]) -> None:
    known = {event.label for event in events}
    for key in keys:
        if key not in known:
            raise ArgumentError(f"{name}: no kernel '{key}' is on the tape; there are {', '.join(sorted(known))}")


def _report_unchecked(tape: Tape, unchecked: list[str]) -> None:
    for event in tape.events:
        if isinstance(event, CustomEvent):
            unchecked.append(f"{event.label}: recorded with record_func ({event.location})")
        elif not hasattr(event, "kernel"):
            unchecked.append(f"{event.label}: no launch ({event.location})")
    if unchecked:
        print("Not checked:")
        for text in unchecked:
            print(f"  {text}")


def _check(evaluation: Evaluation, mask: Mask | None, options: _Options, title: str) -> bool:
    autodiff = autodiff_matrices(evaluation, mask, options.max_outputs)
    differences = difference_matrices(evaluation, mask, options.max_inputs, options.eps)
    results = [_compare(evaluation, key, autodiff[key], differences[key], options) for key in autodiff]
    if options.show_summary:
        print(format_results(results, title))
    _plot_errors(evaluation, autodiff, differences, options, title)
    failed = [result for result in results if not result.is_passed]
    if failed and options.raise_exception:
        lines = "\n".join(f"  {result.worst}" for result in failed)
        raise GradientMismatchError(f"the gradients of {title} differ from finite differences:\n{lines}")
    return not failed


def _compare(
    evaluation: Evaluation, key: tuple[int, int], autodiff: Values, differences: Values, options: _Options
) -> PairResult:
    given = next(variable for variable in evaluation.inputs if variable.index == key[0])
    result = next(variable for variable in evaluation.outputs if variable.index == key[1])
    rows = limited(autodiff.shape[0], options.max_outputs)
    columns = limited(autodiff.shape[1], options.max_inputs)
    found, expected = autodiff[:rows, :columns], differences[:rows, :columns]
    with np.errstate(invalid="ignore"):
        error = np.abs(found - expected)
        is_close = error <= options.atol + options.rtol * np.abs(expected)
    counted = expected != 0.0
    relative = error[counted] / np.abs(expected[counted])
    worst = ""
    if not is_close.all():
        excess = np.where(is_close, -1.0, np.where(np.isnan(error), np.inf, error))
        row, column = (int(place) for place in np.unravel_index(int(np.argmax(excess)), excess.shape))
        worst = (
            f"d {result.label}{Components(result.array).describe(row)} / "
            f"d {given.label}{Components(given.array).describe(column)}: "
            f"automatic {found[row, column]:.9g}, differences {expected[row, column]:.9g}"
        )
    return PairResult(
        given,
        result,
        float(error.max(initial=0.0)),
        float(relative.max(initial=0.0)),
        bool(is_close.all()),
        worst,
    )


def _plot_errors(
    evaluation: Evaluation, autodiff: Matrices, differences: Matrices, options: _Options, title: str
) -> None:
    metadata = evaluation.describe()
    errors = {key: np.abs(autodiff[key] - differences[key]) for key in autodiff}
    if options.plot_absolute_error:
        jacobian_plot(errors, metadata, title=f"Absolute errors of {title}")
    if options.plot_relative_error:
        relative = {
            key: np.divide(error, np.abs(differences[key]), out=np.zeros_like(error), where=differences[key] != 0.0)
            for key, error in errors.items()
        }
        jacobian_plot(relative, metadata, title=f"Relative errors of {title}")
