"""The decorators and options that users write."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from typing import overload as typing_overload

from warp._src.lang.annotations import EMPTY, result_types
from warp._src.lang.modules import Module, check_options, get_module, get_module_options, set_module_options
from warp._src.lang.objects import Definition, Function, Kernel, Native, Overload
from warp._src.lang.stubs import static
from warp._src.types.signature import canonical
from warp._src.types.structs import struct
from warp.errors import ArgumentError, KernelTypeError, UnsupportedSyntaxError

_T = TypeVar("_T")


@typing_overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@typing_overload
def kernel(
    function: None = None,
    /,
    *,
    enable_backward: bool | None = None,
    module: Module | str | types.ModuleType | None = None,
    module_options: Mapping[str, Any] | None = None,
    grid_stride: bool | None = None,
    launch_bounds: int | tuple[int, ...] | None = None,
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    enable_backward: bool | None = None,
    module: Module | str | types.ModuleType | None = None,
    module_options: Mapping[str, Any] | None = None,
    grid_stride: bool | None = None,
    launch_bounds: int | tuple[int, ...] | None = None,
) -> Any:
    """Make a kernel of a function whose parameters are annotated.

    `module` is a module to take options from, or "unique" for one of its own, which `module_options` may then
    configure. Raises KernelTypeError for a parameter without a usable annotation.
    """
    given = {"enable_backward": enable_backward, "grid_stride": grid_stride, "launch_bounds": launch_bounds}
    options = {name: value for name, value in given.items() if value is not None}

    def decorate(function: Callable[..., Any], scope: Mapping[str, Any]) -> Kernel:
        if not isinstance(function, types.FunctionType):
            raise UnsupportedSyntaxError(f"wp.kernel decorates a function, got {function!r}")
        owner = _module_for(function, module, module_options)
        return Kernel(Definition(function, "kernel", scope), owner, options)

    return _decorator(function, decorate, sys._getframe(1))


def func(function: Callable[..., Any] | None = None, /, *, module: Module | str | None = None) -> Any:
    """Make a function that kernels can call; functions of one name and different parameters are overloads."""

    def decorate(function: Callable[..., Any], scope: Mapping[str, Any]) -> Function:
        return _function(function, scope, None, module)

    return _decorator(function, decorate, sys._getframe(1))


def func_native(
    snippet: str, adj_snippet: str | None = None, replay_snippet: str | None = None
) -> Callable[[Callable[..., Any]], Function]:
    """Make a function whose body is C++: `snippet`, its adjoint, and what replaces it in the backward pass.

    Raises KernelTypeError if the snippet returns a value but the function has no return annotation.
    """

    def decorate(function: Callable[..., Any]) -> Function:
        scope = sys._getframe(1).f_locals
        return _function(function, scope, Native(snippet, adj_snippet, replay_snippet), None)

    return decorate


def func_grad(forward: Function) -> Callable[[Callable[..., Any]], Function]:
    """Give `forward` a custom adjoint: it takes the inputs and the adjoints of the results.

    Raises KernelTypeError if the parameters do not fit.
    """
    _check_function(forward, "func_grad")

    def decorate(function: Callable[..., Any]) -> Function:
        gradient = Overload(function, sys._getframe(1).f_locals)
        target = _counterpart(forward, gradient, "gradient", is_exact=False)
        target.gradient = gradient
        return Function([gradient], forward.module)

    return decorate


def func_replay(forward: Function) -> Callable[[Callable[..., Any]], Function]:
    """Give `forward` a function to run in its place in the backward pass; it has the same signature.

    Raises KernelTypeError if the parameters do not fit.
    """
    _check_function(forward, "func_replay")

    def decorate(function: Callable[..., Any]) -> Function:
        replay = Overload(function, sys._getframe(1).f_locals)
        target = _counterpart(forward, replay, "replay", is_exact=True)
        target.replay = replay
        return Function([replay], forward.module)

    return decorate


def overload(kernel: Kernel | Callable[..., Any], arg_types: Sequence[Any] | Mapping[str, Any] | None = None) -> Kernel:
    """Give a generic kernel for concrete types: a list, or a dict of those parameters that are generic.

    As a decorator, the annotations of the function give the types, and the kernel of the same name is meant.
    Raises ArgumentError that names a parameter whose type does not fit.
    """
    if not isinstance(kernel, Kernel):
        return _overload_by_name(kernel, sys._getframe(1))
    parameters = kernel.parameters
    if isinstance(arg_types, Mapping):
        unknown = set(arg_types) - {name for name, _ in parameters}
        if unknown:
            raise ArgumentError(f"kernel '{kernel.key}' has no parameter '{min(unknown)}'")
        given = [arg_types.get(name, t) for name, t in parameters]
    else:
        given = list(arg_types or ())
    return kernel.specialize([canonical(t) for t in given])


def _overload_by_name(function: Callable[..., Any], frame: types.FrameType) -> Kernel:
    existing = frame.f_locals.get(function.__name__, frame.f_globals.get(function.__name__))
    if not isinstance(existing, Kernel):
        raise ArgumentError(f"there is no generic kernel named '{function.__name__}' to overload")
    definition = Definition(function, "kernel", frame.f_locals)
    existing.specialize(definition.types)
    return existing


def constant(x: _T) -> _T:
    """Mark a value as one that kernels may use; numbers, scalars, vectors and matrices can be."""
    return x


# -- helpers -------------------------------------------------------------------------------------------


def _decorator(
    function: Callable[..., Any] | None,
    decorate: Callable[[Callable[..., Any], Mapping[str, Any]], Any],
    frame: types.FrameType,
) -> Any:
    if function is not None:
        return decorate(function, frame.f_locals)

    def later(function: Callable[..., Any]) -> Any:
        return decorate(function, sys._getframe(1).f_locals)

    return later


def _module_for(function: Callable[..., Any], module: Any, options: Mapping[str, Any] | None) -> Module:
    if module == "unique":
        owner = Module(f"{function.__module__}.{function.__qualname__}")
        owner.options.update(get_module(function.__module__).options)
    elif module is None:
        owner = get_module(function.__module__)
    else:
        owner = module if isinstance(module, Module) else get_module(getattr(module, "__name__", module))
    if options:
        if module != "unique":
            raise ArgumentError('module_options need module="unique"; use wp.set_module_options() for a shared module')
        owner.set_options(dict(options))
    if module == "unique":
        check_options(owner.options)
    return owner


def _function(
    function: Callable[..., Any], scope: Mapping[str, Any], native: Native | None, module: Module | str | None
) -> Function:
    if not isinstance(function, types.FunctionType):
        raise UnsupportedSyntaxError(f"wp.func decorates a function, got {function!r}")
    made = Overload(function, scope, native)
    if native is not None and made.returns is EMPTY and _returns_value(native.snippet):
        raise KernelTypeError(
            f"native function '{made.name}' returns a value, so its return type must be annotated, such as -> float"
        )
    result_types(made.returns, f"the result of function '{made.name}'")
    existing = scope.get(function.__name__)
    others: list[Overload] = []
    if isinstance(existing, Function) and _is_sibling(existing, function):
        others = [other for other in existing.overloads if other.types != made.types]
    owner = module if isinstance(module, Module) else get_module(module or function.__module__)
    return Function([*others, made], owner)


def _is_sibling(existing: Function, function: Callable[..., Any]) -> bool:
    return existing.__module__ == function.__module__ and existing.__qualname__ == function.__qualname__


def _returns_value(snippet: str) -> bool:
    return any(
        part.strip().startswith("return ")
        for line in snippet.splitlines()
        for part in line.replace("{", ";").split(";")
    )


def _check_function(forward: Any, decorator: str) -> None:
    if not isinstance(forward, Function):
        raise KernelTypeError(f"wp.{decorator} needs a function made by wp.func, got {forward!r}")


def _counterpart(forward: Function, made: Overload, what: str, is_exact: bool) -> Overload:
    """Find the overload of `forward` that a custom gradient or replay belongs to."""
    for target in reversed(forward.overloads):
        count = len(target.types)
        results = 0 if is_exact else _result_count(target)
        fits_count = results is None or len(made.types) == count + results
        if made.types[:count] == target.types and fits_count:
            _check_concrete(target, made, what)
            return target
    wanted = forward.overloads[-1]
    expected = "the same parameters" if is_exact else "the inputs, then one adjoint for each result"
    raise KernelTypeError(
        f"the custom {what} {made.signature} does not fit function {wanted.signature}: it must take {expected}; "
        f'file "{made.function.__code__.co_filename}", line {made.function.__code__.co_firstlineno}'
    )


def _check_concrete(target: Overload, made: Overload, what: str) -> None:
    if target.is_generic or made.is_generic:
        raise KernelTypeError(f"function '{target.name}' is generic, so it cannot have a custom {what}")
    if target.native is not None:
        raise KernelTypeError(f"native function '{target.name}' takes its {what} as a snippet")


def _result_count(target: Overload) -> int | None:
    """Count the results of a function without translating it; None if that cannot be told."""
    known = result_types(target.returns, f"the result of function '{target.name}'")
    if known is not None:
        return len(known)
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


__all__ = [
    "constant",
    "func",
    "func_grad",
    "func_native",
    "func_replay",
    "get_module_options",
    "kernel",
    "overload",
    "set_module_options",
    "static",
    "struct",
]
