"""Annotations of parameters: resolving and matching them."""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warp._src.builtins.declare import Literal
from warp._src.lang.operands import Operand, type_of
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.generics import substitute, unify
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.scalars import float32, int32, is_float, is_int
from warp._src.types.signature import canonical, is_generic
from warp._src.types.structs import StructType
from warp.errors import CompileError, KernelTypeError, UnknownNameError, UnsupportedSyntaxError

EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """Name, type and default (EMPTY if there is none) of a parameter.

    The type may be generic; `is_function` marks a parameter annotated as callable.
    """

    name: str
    type: Any
    default: Any = EMPTY
    is_function: bool = False


def parameters_of(
    function: Callable[..., Any], kind: str, scope: Mapping[str, Any]
) -> tuple[tuple[Parameter, ...], Any, dict[str, Any]]:
    """Give the parameters, the annotated result (EMPTY if there is none) and the types of the defining scope.

    Raises KernelTypeError for an annotation that is no type, UnknownNameError for one that cannot be evaluated.
    """
    names = _names_of(function, scope)
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UnsupportedSyntaxError(
                f"{kind} '{function.__name__}' has star-parameters; name each parameter{_where(function)}"
            )
        if parameter.annotation is EMPTY and kind == "kernel":
            raise KernelTypeError(
                f"parameter '{parameter.name}' of kernel '{function.__name__}' has no annotation, such as "
                f"{parameter.name}: float or {parameter.name}: wp.array(dtype=float){_where(function)}"
            )
        what = f"parameter '{parameter.name}' of {kind} '{function.__name__}'"
        annotation = evaluated(parameter.annotation, names, what, _where(function))
        parameters.append(_parameter(parameter, annotation, what + _where(function)))
    returns = evaluated(
        inspect.signature(function).return_annotation,
        names,
        f"the result of {kind} '{function.__name__}'",
        _where(function),
    )
    return tuple(parameters), returns, _types_in(function, scope)


def _types_in(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the types of a defining scope, which annotations in the body may name; nothing else is kept alive."""
    if scope is getattr(function, "__globals__", None):
        return {}
    return {name: value for name, value in scope.items() if isinstance(value, (type, StructType, ArrayType))}


def _names_of(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    code: Any = getattr(function, "__code__", None)
    names = {**vars(builtins), **getattr(function, "__globals__", {}), **scope}
    for name, cell in zip(code.co_freevars if code else (), getattr(function, "__closure__", None) or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def _where(function: Callable[..., Any]) -> str:
    code: Any = getattr(function, "__code__", None)
    return f' (file "{code.co_filename}", line {code.co_firstlineno})' if code is not None else ""


def evaluated(annotation: Any, names: Mapping[str, Any], what: str, where: str = "") -> Any:
    """Evaluate an annotation that is a string; others are given back."""
    if not isinstance(annotation, str):
        return annotation
    try:
        result = eval(annotation, dict(names))
    except (NameError, AttributeError) as error:
        raise UnknownNameError(f"{what}: the annotation {annotation!r} cannot be evaluated: {error}{where}") from error
    except (SyntaxError, TypeError, ValueError) as error:
        raise KernelTypeError(f"{what}: the annotation {annotation!r} is not valid: {error}{where}") from error
    # A quoted annotation in a module that postpones annotations is a string in a string.
    return evaluated(result, names, what, where)


def _parameter(parameter: inspect.Parameter, annotation: Any, what: str) -> Parameter:
    made = Parameter(parameter.name, Any, parameter.default)
    if annotation is EMPTY:
        return made
    if annotation in (Callable, typing.Callable) or typing.get_origin(annotation) is collections.abc.Callable:
        return replace(made, is_function=True)
    return replace(made, type=annotated_type(annotation, what))


def annotated_type(annotation: Any, what: str) -> Any:
    """Give the type that an annotation means; KernelTypeError that starts with `what`."""
    try:
        return canonical(annotation)
    except CompileError as error:
        raise KernelTypeError(f"{what}: {error}") from error


def result_types(returns: Any, what: str) -> tuple[Any, ...] | None:
    """Give the types that a return annotation means, or None if it leaves any open."""
    if returns is EMPTY:
        return None
    if returns is None or returns is type(None):
        return ()
    parts = typing.get_args(returns) if typing.get_origin(returns) is tuple else (returns,)
    if isinstance(returns, (tuple, list)):
        parts = tuple(returns)
    found = tuple(annotated_type(part, what) for part in parts)
    return None if any(is_generic(t) for t in found) else found


def match(pattern: Any, actual: Any, bindings: dict[Any, Any]) -> Any | None:
    """Give the concrete type of a parameter for an argument type, or None if they do not fit.

    An indexed or local array fits a parameter annotated as an array.
    """
    actual = canonical(actual)
    if isinstance(pattern, ArrayType) and isinstance(actual, (IndexedArrayType, LocalArrayType)):
        fits = unify(pattern, ArrayType(actual.dtype, actual.ndim), bindings)
        return actual if fits else None
    if not unify(pattern, actual, bindings):
        return None
    return actual if is_generic(pattern) else pattern


def match_operand(parameter: Parameter, operand: Operand, bindings: dict[Any, Any]) -> Any | None:
    """Give the concrete type for an operand: a literal adopts the parameter's type if it is of its kind."""
    pattern = parameter.type
    if not isinstance(operand, Literal):
        actual = type_of(operand)
        return None if actual is None else match(pattern, actual, bindings)
    pattern = substitute(pattern, bindings) if isinstance(pattern, typing.TypeVar) else pattern
    if is_generic(pattern):
        return match(pattern, float32 if operand.kind == "f" else int32, bindings)
    fits = is_float(pattern) if operand.kind == "f" else is_int(pattern)
    return pattern if fits else None


def match_all(parameters: Sequence[Parameter], operands: Sequence[Operand]) -> list[Any | None]:
    """Give the concrete type of each parameter, None where the operand does not fit.

    Untyped numbers come last, so that they adopt what a type variable means for the typed arguments.
    """
    bindings: dict[Any, Any] = {}
    found: dict[int, Any | None] = {}
    for number in sorted(range(len(operands)), key=lambda number: isinstance(operands[number], Literal)):
        found[number] = match_operand(parameters[number], operands[number], bindings)
    return [found[number] for number in range(len(operands))]
