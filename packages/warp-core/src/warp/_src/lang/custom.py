"""Custom gradients, replays and native functions: whether they fit what they belong to, checked at their definition."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from warp._src.ir.core import Value
from warp._src.lang.annotations import EMPTY, match_all, result_types
from warp._src.lang.objects import Function, Native, Overload
from warp._src.lang.source import translated_results
from warp._src.types.generics import unify
from warp._src.types.signature import is_generic, type_name
from warp.errors import CompileError, KernelTypeError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_RETURN_VALUE = re.compile(r"\breturn\b\s*[^;\s]")


def counterpart(forward: Function, made: Overload, what: str) -> Overload:
    """Find the overload of `forward` that a custom gradient or replay (`what`) belongs to.

    Raises KernelTypeError if its parameters or results fit none.
    """
    reasons = []
    for target in reversed(forward.overloads):
        reason = _mismatch(target, made, what)
        if not reason:
            return target
        reasons.append(reason)
    raise KernelTypeError(
        f"the custom {what} {made.signature} does not fit function {forward.overloads[-1].signature}: {reasons[0]}; "
        f'file "{made.function.__code__.co_filename}", line {made.function.__code__.co_firstlineno}'
    )


def check_native(made: Overload, native: Native) -> None:
    """Compare the annotated result of a native function with what its snippet returns. Raises KernelTypeError."""
    returns = _RETURN_VALUE.search(without_comments(native.snippet)) is not None
    has_result = made.returns not in (EMPTY, None, type(None))
    if returns and not has_result:
        raise KernelTypeError(
            f"native function '{made.name}' returns a value, so its return type must be annotated, such as -> float"
        )
    if has_result and not returns:
        raise KernelTypeError(
            f"native function '{made.name}' is annotated to return a value, but its snippet has no return statement"
        )


def without_comments(snippet: str) -> str:
    """Blank out the comments and strings of C++ text."""
    return _COMMENT.sub(" ", snippet)


# -- helpers -------------------------------------------------------------------------------------------


def _mismatch(target: Overload, made: Overload, what: str) -> str:
    """Say why a custom gradient or replay does not fit an overload; empty if it does."""
    if target.native is not None:
        return f"a native function takes its {what} as a snippet"
    count = len(target.types)
    for parameter, own in zip(made.parameters, target.parameters):  # noqa: B905 - the counts are compared below
        if not _fits(own.type, parameter.type):
            return (
                f"parameter '{parameter.name}' is {type_name(parameter.type)}, "
                f"'{own.name}' of the function is {type_name(own.type)}"
            )
    if what == "replay":
        return "" if len(made.types) == count else f"it must take the same {count} parameters"
    return _adjoint_mismatch(target, made.parameters[count:], len(made.types))


def _fits(own: Any, custom: Any) -> bool:
    """Tell whether a custom parameter has the type of the function's own, or one that a generic one may take."""
    return own == custom or unify(own, custom, {}) or (is_generic(custom) and unify(custom, own, {}))


def _adjoint_mismatch(target: Overload, adjoints: Sequence[Any], given: int) -> str:
    count = len(target.types)
    results = _results(target)
    number = len(results) if results is not None else _result_count(target)
    if given < count or (number is not None and given != count + number):
        adjoint = "" if number is None else f" and {number} adjoint{'s' * (number != 1)}, one for each result"
        return f"it must take the {count} input{'s' * (count != 1)}{adjoint}"
    for parameter, result in zip(adjoints, results or (), strict=bool(results)):
        if match_all([parameter], [Value(result)])[0] is None:
            return (
                f"parameter '{parameter.name}' is {type_name(parameter.type)}, "
                f"the result it belongs to is {type_name(result)}"
            )
    return ""


def _results(target: Overload) -> tuple[Any, ...] | None:
    """Give the types of the results, by annotation or translation; None while they cannot be told."""
    known = result_types(target.returns, f"the result of function '{target.name}'")
    if known is not None or target.is_generic or any(parameter.is_function for parameter in target.parameters):
        return known
    try:
        return translated_results(target, [(parameter, parameter.type) for parameter in target.parameters])
    except CompileError:
        return None  # it may use names that are defined later; the kernel that calls it will tell


def _result_count(target: Overload) -> int | None:
    """Count the results of a function without translating it; None if that cannot be told."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(target.function)))
    except (OSError, SyntaxError):
        return None
    counts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            if isinstance(node.value, ast.Call):
                return None
            counts.add(len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1)
    return counts.pop() if len(counts) == 1 else 0 if not counts else None


__all__ = ["check_native", "counterpart", "without_comments"]
