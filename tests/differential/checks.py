"""The comparison that random programs of both kinds share."""

from __future__ import annotations

import numpy as np
from tests.differential.programs import Inputs
from tests.differential.running import adjoint, gradients_by_adjoint, gradients_by_duals, run_interpreted, taped

from warp._src.ir.core import Function

SLOTS = (2, 3, 8, None)


def is_tame(memory: dict[str, np.ndarray], limit: float) -> bool:
    """Tell whether all numbers are finite and below a limit, so that rounding does not decide."""
    return all(np.isfinite(array).all() and np.abs(array).max() < limit for array in memory.values())


def check_gradients(function: Function, inputs: Inputs) -> bool:
    """Compare the adjoint, for several numbers of checkpoint slots, with dual numbers.

    Gives False, and compares nothing, if numbers grow so large that rounding would decide. Raises AutogradError if
    the kernel has no adjoint.
    """
    after = run_interpreted(function, inputs)
    expected = gradients_by_duals(function, inputs)
    if not (is_tame(after, 1e6) and is_tame(expected, 1e8)):
        return False
    reverse = adjoint(function)
    kept, records = taped(function, reverse, inputs)
    before = {name: array.copy() for name, array in after.items()}
    for name, array in kept.items():
        np.testing.assert_array_equal(array, before[name], err_msg=f"the recording kernel computes another {name}")
    scale = max(np.abs(array).max() for array in expected.values())
    for slots in SLOTS:
        found = gradients_by_adjoint(reverse, inputs, after, slots, records)
        for name, array in expected.items():
            message = f"gradient of {name}, slots {slots}"
            np.testing.assert_allclose(found[name], array, rtol=1e-8, atol=1e-10 * scale, err_msg=message)
            np.testing.assert_array_equal(after[name], before[name], err_msg=f"backward wrote {name}")
    return True
