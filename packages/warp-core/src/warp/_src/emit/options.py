"""What a translation unit is emitted for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class EmitOptions:
    """How to emit a kernel.

    `libm` is the text that declares the table `wp_m` and `wp_bind`. `entry` is the exported function. `debug`
    adds checks of bounds and integer division. `descending` runs the work items from the last to the first.
    `verify_fp` reports results that are not finite. `restrict` names parameters, all of them arrays, whose memory
    no other access overlaps. `specialise` emits small kernels twice, for packed and for strided arrays. `target`
    is the language: C++ for the CPU or CUDA C++, where `libm`, `descending`, `restrict` and `specialise` say nothing.
    `launch_bounds`, for CUDA, are the most threads of a block and the fewest blocks of a multiprocessor.
    """

    libm: str
    entry: Literal["wp_forward", "wp_backward"] = "wp_forward"
    debug: bool = False
    descending: bool = False
    verify_fp: bool = False
    restrict: frozenset[str] = frozenset()
    specialise: bool = True
    target: Literal["cpu", "cuda"] = "cpu"
    launch_bounds: tuple[int, ...] = ()
