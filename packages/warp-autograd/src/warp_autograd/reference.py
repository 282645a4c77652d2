"""Reference derivatives of weighted sums: central differences of fourth order with a step that adapts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warp_autograd.components import Components
from warp_autograd.evaluation import Evaluation, Values
from warp_autograd.variables import Variable

_HALVINGS = 6
_KINK = 0.7
"""Halving the step halves the second difference where a function is smooth, and leaves it as it is at a kink."""


@dataclass(frozen=True)
class Tolerance:
    """Relative and absolute tolerance, and the step of differences, for the least precise of some arrays."""

    rtol: float
    atol: float
    step: float

    @staticmethod
    def of(variables: Sequence[Variable], rtol: float | None, atol: float | None) -> Tolerance:
        """Return the tolerance for some arrays; what is given replaces the default."""
        epsilon = max(Components(variable.array).epsilon for variable in variables)
        default = 1e-6 if epsilon < 1e-10 else 2e-3 if epsilon < 1e-5 else 5e-2
        # Truncation, step**4, and rounding, epsilon / step, are about equal.
        return Tolerance(
            default if rtol is None else rtol, default if atol is None else atol, float(epsilon ** (1.0 / 5.0))
        )


def weights_of(count: int) -> Values:
    """Return the weights of a sum: fixed, positive, between 0.5 and 1.5, and hardly two alike."""
    weights: Values = 1.0 + 0.5 * np.cos(1.0 + 2.3 * np.arange(count))
    return weights


def differentiate(
    evaluation: Evaluation, given: Variable, outputs: Sequence[Variable], tolerance: Tolerance
) -> tuple[Values, Values]:
    """Return the derivative of the weighted sum of all outputs by each number of an input, and the error allowed.

    The error allowed is infinite where differences with different steps do not agree.
    """
    evaluation.run()
    middle = _outputs(evaluation, outputs)
    weights = np.concatenate([weights_of(Components(output.array).count) for output in outputs])
    scale = max(1.0, float(np.max(np.abs(middle), initial=0.0)))
    evaluation.restore()
    count = Components(given.array).count
    derivatives, allowed = np.zeros(count), np.zeros(count)
    for number in range(count):
        line = _Line(evaluation, given, number, outputs, weights, middle)
        derivatives[number], allowed[number] = line.differentiate(tolerance, scale)
    return derivatives, allowed


def _outputs(evaluation: Evaluation, outputs: Sequence[Variable]) -> Values:
    return np.concatenate([evaluation.output_values(output.index) for output in outputs])


class _Line:
    """The outputs as functions of one number of an input."""

    def __init__(
        self,
        evaluation: Evaluation,
        given: Variable,
        number: int,
        outputs: Sequence[Variable],
        weights: Values,
        middle: Values,
    ) -> None:
        self._evaluation = evaluation
        self._given = given
        self._number = number
        self._outputs = outputs
        self._weights = weights
        self._middle = middle
        evaluation.restore()
        self._value = Components(given.array).get(number)

    def differentiate(self, tolerance: Tolerance, scale: float) -> tuple[float, float]:
        """Return the derivative and the error allowed, which is infinite if the differences cannot be trusted."""
        step = tolerance.step * max(1.0, abs(self._value))
        previous, bend = self._difference(step)
        for _ in range(_HALVINGS):
            step /= 2.0
            derivative, smaller_bend = self._difference(step)
            allowed = tolerance.atol * scale + tolerance.rtol * abs(derivative)
            is_kink = smaller_bend > allowed and smaller_bend > _KINK * bend
            if abs(derivative - previous) <= allowed / 4.0 and not is_kink:
                return derivative, allowed
            previous, bend = derivative, smaller_bend
        return previous, np.inf

    def _difference(self, step: float) -> tuple[float, float]:
        """Return the derivative for a step, and by how much the slopes to both sides differ."""
        above, below = self._at(step), self._at(-step)
        far_above, far_below = self._at(2.0 * step), self._at(-2.0 * step)
        with np.errstate(invalid="ignore", over="ignore"):
            near, far = above - below, far_above - far_below
            derivative = float(np.sum(self._weights * (8.0 * near - far))) / (12.0 * step)
            bend = float(np.sum(self._weights * np.abs(above + below - 2.0 * self._middle))) / step
        return derivative, bend

    def _at(self, distance: float) -> Values:
        self._evaluation.run_with(self._given, self._number, self._value + distance)
        return _outputs(self._evaluation, self._outputs)
