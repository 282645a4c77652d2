"""Modules: the kernels and functions of one Python module share options."""

from __future__ import annotations

import difflib
import sys
import weakref
from collections.abc import Mapping
from typing import Any

from warp import config
from warp.errors import ArgumentError

OPTIONS = (
    "enable_backward",
    "max_unroll",
    "mode",
    "fast_math",
    "verify_fp",
    "deterministic",
    "block_dim",
    "cuda_output",
    "fuse_fp",
    "lineinfo",
    "cpu_compiler_flags",
    "optimization_level",
    "compile_time_trace",
    "strip_hash",
)


class Module:
    """What holds the options of the kernels defined in one Python module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.options: dict[str, Any] = {}
        self.kernels: weakref.WeakSet[Any] = weakref.WeakSet()

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Change options; ArgumentError for one that does not exist."""
        check_options(options)
        self.options.update(options)

    def resolved_options(self) -> dict[str, Any]:
        """Give every option that has a value here or in `wp.config`."""
        defaults = {name: getattr(config, name) for name in OPTIONS if hasattr(config, name)}
        return {**defaults, **self.options}

    def __repr__(self) -> str:
        return f"<wp.Module {self.name}>"


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ArgumentError if a name is no option."""
    for name in options:
        if name not in OPTIONS:
            close = difflib.get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(OPTIONS)}"
            raise ArgumentError(f"there is no module option '{name}'; {hint}")


MODULES: dict[str, Module] = {}


def get_module(name: str) -> Module:
    """Give the module of this name; it is made at the first call."""
    return MODULES.setdefault(name, Module(name))


def set_module_options(options: Mapping[str, Any], module: Any = None) -> None:
    """Set options of the calling module, or of `module`, for kernels that are compiled from now on.

    Raises ArgumentError for an unknown option.
    """
    _named(module, sys._getframe(1).f_globals).set_options(options)


def get_module_options(module: Any = None) -> dict[str, Any]:
    """Give the options of the calling module, or of `module`, with defaults filled in from `wp.config`."""
    return _named(module, sys._getframe(1).f_globals).resolved_options()


def _named(module: Any, caller: Mapping[str, Any]) -> Module:
    if isinstance(module, Module):
        return module
    return get_module(getattr(module, "__name__", module) or caller.get("__name__", "__main__"))
