"""Elementary functions in compiled code stay within the units that docs/semantics.md promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.builtins.native_calls import NativeCalls

import warp._src.builtins  # noqa: F401 - fills the registry
from warp._src.build import find_compiler
from warp._src.builtins.declare import Overload, resolve
from warp._src.types.scalars import float16, float32, float64

# Name, NumPy's function, ranges of the arguments, allowed units in the last place.
FUNCTIONS: list[tuple[str, Any, tuple[tuple[float, float], ...], float]] = [
    ("sin", np.sin, ((-100.0, 100.0),), 2.0),
    ("cos", np.cos, ((-100.0, 100.0),), 2.0),
    ("tan", np.tan, ((-50.0, 50.0),), 4.0),
    ("asin", np.arcsin, ((-1.0, 1.0),), 2.0),
    ("acos", np.arccos, ((-1.0, 1.0),), 2.0),
    ("atan", np.arctan, ((-50.0, 50.0),), 2.0),
    ("atan2", np.arctan2, ((-5.0, 5.0), (-5.0, 5.0)), 2.0),
    ("sinh", np.sinh, ((-10.0, 10.0),), 2.0),
    ("cosh", np.cosh, ((-10.0, 10.0),), 2.0),
    ("tanh", np.tanh, ((-5.0, 5.0),), 2.0),
    ("exp", np.exp, ((-10.0, 10.0),), 2.0),
    ("log", np.log, ((1e-4, 1e4),), 2.0),
    ("log2", np.log2, ((1e-4, 1e4),), 2.0),
    ("log10", np.log10, ((1e-4, 1e4),), 2.0),
    ("cbrt", np.cbrt, ((-1e4, 1e4),), 2.0),
    ("pow", np.power, ((0.01, 10.0), (-4.0, 4.0)), 4.0),
]
TYPES = (float16, float32, float64)
OVERLOADS: dict[tuple[str, str], Overload] = {
    (name, type.name): resolve(name, [type] * len(ranges)) for name, _, ranges, _ in FUNCTIONS for type in TYPES
}


@pytest.fixture(scope="module")
def native() -> NativeCalls:
    return NativeCalls(list(OVERLOADS.values()), find_compiler())


@pytest.mark.parametrize("type", TYPES, ids=[type.name for type in TYPES])
@pytest.mark.parametrize(("name", "exact", "ranges", "units"), FUNCTIONS, ids=[name for name, *_ in FUNCTIONS])
def test_units_in_the_last_place(
    native: NativeCalls, name: str, exact: Any, ranges: Any, units: float, type: Any
) -> None:
    random = np.random.default_rng(3)
    args = [random.uniform(low, high, 500).astype(type.dtype) for low, high in ranges]
    got = np.array([value for (value,) in native.run(OVERLOADS[name, type.name], list(zip(*args, strict=True)))])
    # A long double has more digits than the widest type under test.
    with np.errstate(all="ignore"):
        want = exact(*(arg.astype(np.longdouble) for arg in args))
        is_normal = (np.abs(want) > np.finfo(type.dtype).tiny) & (np.abs(want) < np.finfo(type.dtype).max)
        spacing = np.spacing(np.abs(want).astype(type.dtype)).astype(np.longdouble)
        error = np.abs(got.astype(np.longdouble) - want) / spacing
    assert is_normal.sum() > 400
    assert error[is_normal].max() <= units
