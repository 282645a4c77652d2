"""Builtins that act on the world outside: printing and assertions.

The attributes of a call (the format, the line) follow the arguments when the reference is called. There is no C++
text: the emitter writes these calls, because they need the fault and the types of the arguments.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TypeVar

from warp._src.builtins.declare import Builtin, NonDifferentiable, Sampling, builtin, register
from warp._src.builtins.patterns import A
from warp._src.types.scalars import bool_
from warp.errors import LaunchError

GROUP = "Utility"
MAX_PRINTED = 32

_EFFECT = NonDifferentiable("has an effect and no result")
_LENGTH_MODIFIER = re.compile(r"(%[-+ #0]*\d*(?:\.\d+)?)(?:hh|h|ll|l|z|j|t|L)(?=[diouxXeEfFgGcs])")

# Every argument has a type variable of its own, which no stub could list for each count.
_ARGUMENTS = {f"a{index}": TypeVar(f"A{index}", *A.__constraints__) for index in range(MAX_PRINTED)}


def _print(*arguments: Any) -> None:
    """Format as printf does; the last argument is the format."""
    *values, template = arguments
    plain = tuple(value.item() if hasattr(value, "item") else value for value in values)
    sys.stdout.write(_LENGTH_MODIFIER.sub(r"\1", template) % plain)


def _assert(condition: Any, line: int) -> None:
    if not condition:
        raise LaunchError(f"assertion failed at line {line}")


def _declare_printf(count: int) -> Builtin:
    return register(
        Builtin(
            name="printf",
            parameters=dict(list(_ARGUMENTS.items())[:count]),
            results=(),
            cpp="",
            adjoint=_EFFECT,
            reference=_print,
            group=GROUP,
            doc="Print numbers in the format of C's printf, a literal. It has at most 32 arguments.\n\n"
            'Example: `wp.printf("%d: %f\\n", i, x)`.',
            has_effects=True,
            bounded=True,
            internal=False,
            sampling=Sampling(),
        )
    )


for _count in range(MAX_PRINTED + 1):
    _declare_printf(_count)


@builtin(
    cpp="",
    adjoint=_EFFECT,
    reference=_assert,
    group=GROUP,
    has_effects=True,
    internal=True,
)
def assert_(condition: bool_) -> None:
    """Fail the launch with a LaunchError if the condition is false; the attribute is the line."""


__all__ = ["GROUP", "MAX_PRINTED"]
