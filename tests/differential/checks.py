"""The comparison that random programs of both kinds share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tests.differential.inputs import Inputs, leaves, plain
from tests.differential.running import adjoint, gradients_by_adjoint, gradients_by_duals, run_interpreted, taped

from warp._src.ir.core import Function

SLOTS = (2, 3, 8, 64, None)


def is_tame(arrays: Mapping[str, np.ndarray], limit: float) -> bool:
    """Tell whether all numbers are finite and below a limit, so that rounding does not decide."""
    return all(np.isfinite(array).all() and np.abs(array).max() < limit for array in arrays.values())


def check_gradients(function: Function, inputs: Inputs) -> bool:
    """Compare the adjoint, for several numbers of checkpoint slots, with dual numbers.

    Gives False, and compares nothing, if numbers grow so large that rounding would decide. Raises AutogradError if
    the adjoint is refused.
    """
    after = run_interpreted(function, inputs)
    expected = gradients_by_duals(function, inputs)
    if not (is_tame(dict(plain(after)), 1e6) and is_tame(expected, 1e8)):
        return False
    reverse = adjoint(function, inputs)
    kept, records = taped(function, reverse, inputs)
    before = {name: array.copy() for name, array in plain(after)}
    for name, array in plain(kept):
        np.testing.assert_array_equal(array, before[name], err_msg=f"the recording kernel computes another {name}")
    scale = max(np.abs(array).max() for array in expected.values())
    for slots, factor in zip(SLOTS, (1.0, 1.0, -2.0, 1.0, 1.0), strict=True):
        found = dict(leaves(gradients_by_adjoint(reverse, inputs, after, slots, records, factor), inputs.overlap))
        for name, array in expected.items():
            message = f"gradient of {name}, slots {slots}, seeds times {factor}"
            limit = 1e-10 * scale
            np.testing.assert_allclose(found[name], factor * array, rtol=1e-8, atol=limit, err_msg=message)
    for name, array in plain(after):
        np.testing.assert_array_equal(array, before[name], err_msg=f"backward wrote {name}")
    return True
