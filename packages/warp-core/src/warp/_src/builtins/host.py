"""Builtins called from Python: `wp.sin(0.5)` evaluates the reference implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warp._src.builtins import (
    angles,
    bits,
    checks,
    decompositions,
    intrinsics,
    linalg,
    logic,
    matrices,
    memory,
    noise,
    norms,
    operators,
    random,
    rigid,
    rotation,
    rounding,
    scalar,
    selection,
    spatial,
    special,
    strong,
    tensor_operators,
    transforms,
)
from warp._src.builtins.declare import REGISTRY, Literal, Overload, resolve
from warp._src.ir.core import Type
from warp._src.types.scalars import Scalar, bool_, is_scalar
from warp._src.types.signature import canonical
from warp._src.types.tensors import Tensor
from warp.errors import KernelTypeError


def call_on_host(name: str, *args: Any) -> Any:
    """Evaluate builtin `name` for Python numbers, Warp scalars and tensors.

    A Python number adopts the type of the other arguments, as a literal in a kernel does. The result is a Python
    bool, int or float, or a tensor; a tuple of them if there are several. Raises KernelTypeError if no overload
    takes the arguments.
    """
    overload = resolve(name, [_type_of(arg) for arg in args])
    args = (*args, *overload.defaults_after(len(args)))
    values = [_value(arg, type) for arg, type in zip(args, overload.param_types, strict=True)]
    with np.errstate(all="ignore"):
        result = overload.builtin.reference(*values)
    return _results(overload, result)


def make_public(name: str) -> Callable[..., Any]:
    """Make the function of the public namespace for builtin `name`."""

    def function(*args: Any) -> Any:
        return call_on_host(name, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = documentation(name)
    function.__warp_builtin__ = name  # type: ignore[attr-defined]  # found by the front end
    return function


def documentation(name: str) -> str:
    """Give signature and text of the overloads of a builtin, one for each text."""
    texts: dict[str, str] = {}
    for record in REGISTRY[name]:
        if not record.internal:
            texts.setdefault(record.doc, record.signature)
    return "\n\n".join(f"{signature}\n    {text}" for text, signature in texts.items())


def _type_of(arg: Any) -> Type | Literal:
    if isinstance(arg, (bool, np.bool_)):
        return bool_
    if isinstance(arg, (Scalar, Tensor)):
        return type(arg)
    if isinstance(arg, (int, float)):
        return Literal(arg)
    if isinstance(arg, np.generic):
        return canonical(type(arg))
    raise KernelTypeError(f"a builtin takes numbers, scalars and tensors, not {type(arg).__name__}")


def _value(arg: Any, type: Type) -> Any:
    if is_scalar(type):
        return type.numeric.type(type(arg.value if isinstance(arg, Scalar) else arg).value)
    return np.asarray(arg)


def _results(overload: Overload, result: Any) -> Any:
    """Give the results without the new values of updated parameters."""
    count = len(overload.builtin.returned)
    values = result if len(overload.result_types) > 1 else (result,)
    found = tuple(
        _result(type, value) for type, value in zip(overload.result_types[:count], values[:count], strict=True)
    )
    return None if not found else found[0] if count == 1 else found


def _result(type: Type, value: Any) -> Any:
    if is_scalar(type):
        return type(value.item() if isinstance(value, (np.generic, np.ndarray)) else value).value
    return type.from_numbers(value.reshape(-1).tolist())


# The registry is complete once these are imported.
_FAMILIES = (
    operators,
    logic,
    scalar,
    rounding,
    selection,
    strong,
    tensor_operators,
    linalg,
    matrices,
    rotation,
    transforms,
    intrinsics,
    memory,
    random,
    noise,
    special,
    norms,
    decompositions,
    angles,
    rigid,
    spatial,
    bits,
    checks,
)

PUBLIC: dict[str, Callable[..., Any]] = {
    name: make_public(name) for name, records in REGISTRY.items() if not all(record.internal for record in records)
}
"""Every builtin of the public namespace, by name."""

__all__ = ["PUBLIC", "call_on_host", "documentation", "make_public"]
