"""Strategies for numbers of a type within a domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import warp as wp
from warp.errors import ArgumentError

Interval = tuple[float, float]
Domain = Interval | Sequence[Interval]

_FLOAT_DOMAIN = (-2.0, 2.0)
_INTEGER_DOMAIN = (0, 3)


def numbers(dtype: Any, domain: Domain | None = None) -> Any:
    """Return a strategy for numbers of a scalar type, both ends of each interval of the domain included."""
    st = require_hypothesis()
    kind = wp.empty((0,), dtype=dtype).numpy().dtype
    if kind.kind == "b":
        return st.booleans()
    if kind.kind == "f":
        width = 8 * kind.itemsize
        parts = [
            st.floats(*_rounded_inward(kind, low, high), width=width, allow_subnormal=False)
            for low, high in _intervals(domain or _FLOAT_DOMAIN)
        ]
    else:
        parts = [st.integers(int(low), int(high)) for low, high in _intervals(domain or _INTEGER_DOMAIN)]
    return st.one_of(parts)


def require_hypothesis() -> Any:
    """Return `hypothesis.strategies`; ImportError says what to install."""
    try:
        from hypothesis import strategies
    except ImportError as error:
        raise ImportError("the strategies of warp.testing need hypothesis: pip install hypothesis") from error
    return strategies


def _intervals(domain: Domain) -> list[Interval]:
    given: Any = list(domain)
    pairs = [tuple(given)] if given and not isinstance(given[0], (tuple, list)) else [tuple(pair) for pair in given]
    if not pairs or any(len(pair) != 2 or not pair[0] <= pair[1] for pair in pairs):
        raise ArgumentError(f"a domain is (low, high) with low <= high, or a list of such intervals, got {domain!r}")
    return pairs


def _rounded_inward(kind: np.dtype[Any], low: float, high: float) -> tuple[float, float]:
    bounds = []
    for bound, inward in ((low, np.inf), (high, -np.inf)):
        rounded = kind.type(bound)
        is_outside = rounded < low if inward > 0 else rounded > high
        bounds.append(float(np.nextafter(rounded, kind.type(inward)) if is_outside else rounded))
    return bounds[0], bounds[1]
