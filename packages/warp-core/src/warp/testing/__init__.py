"""A kit for the tests of programs that use Warp: strategies for what kernels take, gradient checks, bridges.

The strategies need hypothesis. `assert_gradients_close` and `gradient_property` live in `warp.autograd.testing`, so
they need warp-autograd.
"""

from __future__ import annotations

import importlib
from typing import Any

from warp.testing.bridges import BridgeConformance as BridgeConformance
from warp.testing.devices import available_devices as available_devices
from warp.testing.shared_gradients import GradientConformance as GradientConformance
from warp.testing.strategies import KernelArguments as KernelArguments
from warp.testing.strategies import arguments as arguments
from warp.testing.strategies import arrays as arrays
from warp.testing.strategies import dtypes as dtypes
from warp.testing.strategies import shapes as shapes
from warp.testing.strategies import values as values

__all__ = [
    "BridgeConformance",
    "GradientConformance",
    "KernelArguments",
    "arguments",
    "arrays",
    "assert_gradients_close",
    "available_devices",
    "dtypes",
    "gradient_property",
    "shapes",
    "values",
]

_OF_AUTOGRAD = ("assert_gradients_close", "gradient_property")


def __getattr__(name: str) -> Any:
    if name not in _OF_AUTOGRAD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("warp.autograd.testing"), name)
