"""What the tests of bridges share: drawing, comparing, expecting errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_STEP = 1e-6


def for_all(strategy: Any, check: Callable[[Any], None], examples: int) -> None:
    """Run a check on values that hypothesis draws."""
    import hypothesis

    tolerated = [hypothesis.HealthCheck.too_slow]  # on a busy machine

    @hypothesis.settings(max_examples=examples, deadline=None, database=None, suppress_health_check=tolerated)
    @hypothesis.given(strategy)
    def run(drawn: Any) -> None:
        check(drawn)

    run()


def central_differences(function: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of a function of a float64 array, which returns a number or an array that is summed."""
    gradient = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = _STEP
        gradient[place] = np.sum(function(x + step) - function(x - step)) / (2 * _STEP)
    return gradient


def assert_raises(kind: type[Exception], call: Callable[[], Any], text: str = "") -> None:
    """Assert that a call raises an error whose message has a text."""
    try:
        found = call()
    except kind as error:
        message = str(error)
    else:
        raise AssertionError(f"expected {kind.__name__}, got {found!r}")
    assert text in message, f"the error does not say {text!r}: {message}"
