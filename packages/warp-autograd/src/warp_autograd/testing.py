"""Gradient checks for test-suites: gradients of kernels against float64 differences, at given or generated inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import warp as wp
from warp.errors import ArgumentError
from warp.testing import KernelArguments, arguments, available_devices
from warp_autograd.components import Components
from warp_autograd.evaluation import Evaluation, FunctionEvaluation, KernelEvaluation, Values
from warp_autograd.reference import Tolerance, differentiate, weights_of
from warp_autograd.variables import Variable

__all__ = ["assert_gradients_close", "gradient_property"]


def assert_gradients_close(
    function: Any,
    dim: Any = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    device: Any = None,
) -> None:
    """Check the gradients of a kernel or function against central differences of fourth order.

    What is compared are the gradients of a weighted sum of everything that is written, by everything that is read.
    For a kernel these are all its arrays of floating-point numbers, whether they have `requires_grad` or not; it
    runs on copies. For a function they are its array arguments and results with `requires_grad`. Differences are
    taken in float64 from what the kernel stores, with a step that suits the least precise type, and are halved until
    two agree; numbers at which they never do, as at a kink, are left out.

    Args:
        function: A kernel, or a Python function that returns one or more arrays.
        dim: Threads of the launch; for kernels.
        inputs: Arguments.
        outputs: The remaining arguments of a kernel.
        rtol: Relative tolerance; by default 1e-6, or 2e-3 with float32 and 5e-2 with float16 among the arrays.
        atol: Absolute tolerance for numbers up to 1, in proportion for larger ones; by default as `rtol`.
        device: Where a kernel runs.

    Raises:
        AssertionError: Gradients differ, or one is NaN; shows the inputs and both gradients.
        AutogradError: The adjoint cannot be computed, or the kernel has none.
    """
    if isinstance(function, wp.Kernel):
        if dim is None:
            raise ArgumentError(f"dim is required for kernel '{function.key}'")
        given = [*inputs, *outputs]
        positions = range(len(given))
        evaluation: Evaluation = KernelEvaluation(
            function, dim, given, positions, positions, device, all_gradients=True
        )
        names = [name for name, _ in function.parameters]
        described = KernelArguments(dim, dict(zip(names, given, strict=True))).describe()
    else:
        evaluation = FunctionEvaluation(function, inputs, outputs or None)
        described = ""
    problem = _find_difference(evaluation, rtol, atol)
    if problem:
        where = "" if device is None else f" on '{device}'"
        raise AssertionError(
            f"the gradients of '{evaluation.label}'{where} differ from central differences\n{problem}\n{described}"
        )


def gradient_property(
    *,
    dim: int | Sequence[int] | Callable[[dict[str, Any]], Any] | None = None,
    domains: Mapping[str, Any] | None = None,
    strategies: Mapping[str, Any] | None = None,
    dtype: Any = wp.float64,
    max_side: int = 4,
    max_examples: int = 25,
    rtol: float | None = None,
    atol: float | None = None,
    devices: Sequence[Any] | None = None,
) -> Callable[[Any], Callable[[], None]]:
    """Make a test of a kernel: its gradients agree with differences for generated arguments, on every device.

    The test takes no arguments, so pytest runs it if its name begins with `test`. A failure shows the smallest
    arguments that hypothesis finds, and both gradients there. The arguments are those of `warp.testing.arguments`
    and `assert_gradients_close`, besides:

    Args:
        dim: Threads, or a function of the arguments that returns them; by default the sides of the arrays.
        domains: Intervals for the numbers of some parameters, such as `{"x": (0.1, 2.0)}`.
        strategies: Hypothesis strategies for some parameters.
        dtype: What generic parameters become.
        max_side: The largest side of arrays.
        max_examples: How many arguments are tried.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        devices: Where to run; `warp.testing.available_devices()` by default.
    """

    def decorate(kernel: Any) -> Callable[[], None]:
        if not isinstance(kernel, wp.Kernel):
            raise ArgumentError(f"gradient_property decorates a kernel, got {type(kernel).__qualname__}")

        def test() -> None:
            for device in available_devices() if devices is None else devices:
                drawn = arguments(kernel, dim, domains, strategies, dtype, max_side, device)
                _run_property(kernel, drawn, max_examples, {"rtol": rtol, "atol": atol, "device": device})

        test.__name__ = test.__qualname__ = kernel.key
        test.__doc__ = kernel.__doc__
        test.__module__ = kernel.__module__
        return test

    return decorate


def _run_property(kernel: Any, drawn: Any, max_examples: int, options: dict[str, Any]) -> None:
    hypothesis = _require_hypothesis()

    def check(chosen: KernelArguments) -> None:
        assert_gradients_close(kernel, chosen.dim, list(chosen.values.values()), **options)

    # A name of its own keeps the examples that hypothesis remembers for each kernel apart.
    check.__qualname__ = f"gradient_property.{kernel.__module__}.{kernel.key}"
    phases = [phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain]
    settings = hypothesis.settings(
        max_examples=max_examples,
        deadline=None,
        phases=phases,
        report_multiple_bugs=False,
        # That a machine is busy says nothing about a gradient.
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    settings(hypothesis.given(drawn)(check))()


def _require_hypothesis() -> Any:
    try:
        import hypothesis
    except ImportError as error:
        raise ImportError("gradient_property needs hypothesis: pip install hypothesis") from error
    return hypothesis


def _find_difference(evaluation: Evaluation, rtol: float | None, atol: float | None) -> str:
    """Return in words where gradients differ, empty if nowhere."""
    with evaluation.preserved():
        inputs, outputs, gradients = _backward(evaluation)
        tolerance = Tolerance.of([*inputs, *outputs], rtol, atol)
        lines: list[str] = []
        for given in inputs:
            found = gradients[given.index]
            expected, allowed = differentiate(evaluation, given, outputs, tolerance)
            wrong = np.isnan(found) | (np.abs(found - expected) > allowed)
            if wrong.any():
                lines += _compared(given, found, expected, allowed, int(np.flatnonzero(wrong)[0]))
        return "\n".join(lines)


def _backward(evaluation: Evaluation) -> tuple[list[Variable], list[Variable], dict[int, Values]]:
    """Run and go back; return the inputs, the outputs and the gradients by the inputs' indices."""
    tape = evaluation.record()
    written = {array.layout() for event in tape.events for array in event.writes}
    outputs = [v for v in evaluation.outputs if v.array.requires_grad and v.array.layout() in written]
    inputs = [v for v in evaluation.inputs if v.array.requires_grad]
    if not outputs:
        raise ArgumentError(f"'{evaluation.label}' writes no floating-point array that has a gradient")
    seeds = {}
    for output in outputs:
        seed = wp.zeros_like(output.array, requires_grad=False)
        components = Components(seed)
        for number, weight in enumerate(weights_of(components.count)):
            components.set(number, weight)
        seeds[output.array] = seed
    tape.backward(grads=seeds)
    return inputs, outputs, {v.index: Components(v.array.grad).values() for v in inputs}


def _compared(given: Variable, found: Values, expected: Values, allowed: Values, place: int) -> list[str]:
    where = Components(given.array).describe(place)
    return [
        f"  d loss / d {given.label}{where}: automatic {found[place]:.9g}, differences {expected[place]:.9g}, "
        f"allowed {allowed[place]:.2g}",
        f"  {given.label}, automatic:   {_shown(found)}",
        f"  {given.label}, differences: {_shown(expected)}",
    ]


def _shown(values: Values) -> str:
    return np.array2string(values, precision=9, max_line_width=10_000, threshold=50)
