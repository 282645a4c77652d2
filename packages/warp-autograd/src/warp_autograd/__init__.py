"""Reverse-mode differentiation for Warp: the tape.

The names are loaded when first used, because Warp imports this package to learn what it contributes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from warp_autograd._version import __version__ as __version__

if TYPE_CHECKING:
    from warp_autograd.tape import Tape as Tape

__all__ = ["Tape"]

_HOMES = {"Tape": "warp_autograd.tape"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
