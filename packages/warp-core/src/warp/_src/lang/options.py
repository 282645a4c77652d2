"""Options of the kernel decorator: whether they exist and what values they take."""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Mapping
from typing import Any, Final

from warp.errors import ArgumentError

CUDA_OPTIONS: Final = ("cuda_max_registers", "enable_cuda_smem_spilling", "cluster_dim")
_OPTIONS: Final = (
    "name",
    "enable_backward",
    "module",
    "module_options",
    "grid_stride",
    "launch_bounds",
    *CUDA_OPTIONS,
)


def checked_flag(name: str, value: Any) -> bool | None:
    """Give an option that is True, False or None. Raises ArgumentError for anything else."""
    if value is None or isinstance(value, bool):
        return value
    raise ArgumentError(f"wp.kernel: {name} must be True, False or None, got {value!r}")


def checked_bounds(value: Any) -> tuple[int, ...] | None:
    """Give `launch_bounds` as one or two positive integers. Raises ArgumentError."""
    if value is None:
        return None
    parts = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(parts) <= 2 or not all(_is_positive(part) for part in parts):
        raise ArgumentError(
            "wp.kernel: launch_bounds must be the largest number of threads per block, or a tuple of it and the "
            f"smallest number of blocks per multiprocessor, got {value!r}"
        )
    return parts


def checked_cuda_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give the options that only CUDA knows. Raises ArgumentError for an option that does not exist."""
    for name, value in options.items():
        if name not in CUDA_OPTIONS:
            close = difflib.get_close_matches(name, _OPTIONS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(_OPTIONS)}"
            raise ArgumentError(f"wp.kernel has no option '{name}'; {hint}")
        if name == "enable_cuda_smem_spilling":
            checked_flag(name, value)
        elif value is not None and not _is_positive(value):
            raise ArgumentError(f"wp.kernel: {name} must be a positive integer, got {value!r}")
    return dict(options)


def checked_name(name: Any) -> str | None:
    """Give the name of a kernel. Raises ArgumentError unless it is an identifier."""
    if name is None or (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        return name
    raise ArgumentError(f"wp.kernel: name must be an identifier, got {name!r}")


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
