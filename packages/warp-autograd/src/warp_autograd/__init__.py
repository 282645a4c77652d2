"""Reverse-mode differentiation for Warp: the tape, and tools to prove and debug gradients.

The names are loaded when first used, because Warp imports this package to learn what it contributes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from warp_autograd._version import __version__ as __version__

if TYPE_CHECKING:
    from warp_autograd.finite_differences import jacobian_fd as jacobian_fd
    from warp_autograd.forward_mode import hvp as hvp
    from warp_autograd.forward_mode import jvp as jvp
    from warp_autograd.gradient_checks import gradcheck as gradcheck
    from warp_autograd.gradient_checks import gradcheck_tape as gradcheck_tape
    from warp_autograd.jacobians import jacobian as jacobian
    from warp_autograd.metadata import FunctionMetadata as FunctionMetadata
    from warp_autograd.nan_hunt import NonFiniteGradient as NonFiniteGradient
    from warp_autograd.nan_hunt import find_nonfinite as find_nonfinite
    from warp_autograd.plot import jacobian_plot as jacobian_plot
    from warp_autograd.tape import Tape as Tape
    from warp_autograd.time_loops import checkpointed_loop as checkpointed_loop

__all__ = [
    "FunctionMetadata",
    "NonFiniteGradient",
    "Tape",
    "checkpointed_loop",
    "find_nonfinite",
    "gradcheck",
    "gradcheck_tape",
    "hvp",
    "jacobian",
    "jacobian_fd",
    "jacobian_plot",
    "jvp",
]

_HOMES = {
    "FunctionMetadata": "warp_autograd.metadata",
    "NonFiniteGradient": "warp_autograd.nan_hunt",
    "Tape": "warp_autograd.tape",
    "checkpointed_loop": "warp_autograd.time_loops",
    "find_nonfinite": "warp_autograd.nan_hunt",
    "gradcheck": "warp_autograd.gradient_checks",
    "gradcheck_tape": "warp_autograd.gradient_checks",
    "hvp": "warp_autograd.forward_mode",
    "jacobian": "warp_autograd.jacobians",
    "jacobian_fd": "warp_autograd.finite_differences",
    "jacobian_plot": "warp_autograd.plot",
    "jvp": "warp_autograd.forward_mode",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
