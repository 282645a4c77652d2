"""Checks that print to the standard output when they fail, and questions about the device."""

from __future__ import annotations

import signal
import sys
from typing import Any

import numpy as np

from warp._src.builtins.declare import NonDifferentiable, builtin
from warp._src.builtins.patterns import A, F, S, Ten, X
from warp._src.types.scalars import int32

GROUP = "Utility"

_EFFECT = NonDifferentiable("has an effect and no result")


def _report(name: str, a: Any, b: Any, is_met: bool) -> None:
    if not is_met:
        sys.stdout.write(f"Error, {name}() failed: {a} and {b}\n")


def _equal(a: Any, b: Any) -> None:
    _report("expect_eq", a, b, bool(np.all(a == b)))


def _unequal(a: Any, b: Any) -> None:
    _report("expect_neq", a, b, bool(np.any(a != b)))


def _near(a: Any, b: Any, tolerance: Any) -> None:
    _report("expect_near", a, b, bool(np.all(abs(a - b) <= tolerance)))


@builtin(
    "expect_eq",
    cpp="wp::expect_eq({a}, {b})",
    adjoint=_EFFECT,
    reference=_equal,
    group=GROUP,
    has_effects=True,
)
def expect_eq_scalars(a: A, b: A) -> None:
    """Print both values if they differ; the launch goes on.

    Example: `wp.expect_eq(count, 3)`.
    """


@builtin(
    "expect_eq",
    cpp="wp::expect_eq_tensors({a}, {b})",
    adjoint=_EFFECT,
    reference=_equal,
    group=GROUP,
    has_effects=True,
)
def expect_eq_tensors(a: Ten[X, S], b: Ten[X, S]) -> None:
    """Print both values if any component differs; the launch goes on.

    Example: `wp.expect_eq(v, wp.vec2(1.0, 2.0))`.
    """


@builtin(
    "expect_neq",
    cpp="wp::expect_neq({a}, {b})",
    adjoint=_EFFECT,
    reference=_unequal,
    group=GROUP,
    has_effects=True,
)
def expect_neq_scalars(a: A, b: A) -> None:
    """Print both values if they are equal; the launch goes on.

    Example: `wp.expect_neq(count, 0)`.
    """


@builtin(
    "expect_neq",
    cpp="wp::expect_neq_tensors({a}, {b})",
    adjoint=_EFFECT,
    reference=_unequal,
    group=GROUP,
    has_effects=True,
)
def expect_neq_tensors(a: Ten[X, S], b: Ten[X, S]) -> None:
    """Print both values if all components are equal; the launch goes on.

    Example: `wp.expect_neq(v, wp.vec2())`.
    """


@builtin(
    "expect_near",
    cpp="wp::expect_near({a}, {b}, {tolerance})",
    adjoint=_EFFECT,
    reference=_near,
    group=GROUP,
    has_effects=True,
    defaults={"tolerance": 1.0e-6},
)
def expect_near_scalars(a: F, b: F, tolerance: F) -> None:
    """Print both values if they differ by more than a tolerance; the launch goes on.

    Example: `wp.expect_near(x, 0.5, 1.0e-3)`.
    """


@builtin(
    "expect_near",
    cpp="wp::expect_near_tensors({a}, {b}, {tolerance})",
    adjoint=_EFFECT,
    reference=_near,
    group=GROUP,
    has_effects=True,
    defaults={"tolerance": 1.0e-6},
)
def expect_near_tensors(a: Ten[X, F], b: Ten[X, F], tolerance: F) -> None:
    """Print both values if any component differs by more than a tolerance; the launch goes on.

    Example: `wp.expect_near(v, wp.vec2(1.0, 2.0), 1.0e-3)`.
    """


@builtin(
    "breakpoint",
    cpp="wp::stop_in_debugger()",
    adjoint=_EFFECT,
    reference=lambda: signal.raise_signal(signal.SIGTRAP),
    group=GROUP,
    has_effects=True,
)
def stop_in_debugger() -> None:
    """Stop in the debugger that the process runs under; without one the process ends.

    Example: `if x < 0.0: wp.breakpoint()`.
    """


@builtin(
    cpp="wp::block_dim()",
    adjoint=NonDifferentiable("a size is an integer"),
    reference=lambda: np.int32(1),
    group=GROUP,
    bounded=True,
)
def block_dim() -> int32:
    """Number of work items in a block: that of the launch on CUDA, 1 on the CPU.

    Example: `lane = wp.tid() % wp.block_dim()`.
    """


__all__ = ["GROUP"]
