"""The decorators and options that users write."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from typing import overload as typing_overload

from warp._src.lang.annotations import result_types
from warp._src.lang.custom import check_native, counterpart
from warp._src.lang.modules import Module, check_options, get_module, get_module_options, set_module_options
from warp._src.lang.objects import Definition, Function, Kernel, Native, Overload
from warp._src.lang.options import checked_bounds, checked_cuda_options, checked_flag, checked_name
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
    name: str | None = None,
    enable_backward: bool | None = None,
    module: Module | str | types.ModuleType | None = None,
    module_options: Mapping[str, Any] | None = None,
    grid_stride: bool | None = None,
    launch_bounds: int | tuple[int, ...] | None = None,
    **cuda_options: Any,
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    enable_backward: bool | None = None,
    module: Module | str | types.ModuleType | None = None,
    module_options: Mapping[str, Any] | None = None,
    grid_stride: bool | None = None,
    launch_bounds: int | tuple[int, ...] | None = None,
    **cuda_options: Any,
) -> Any:
    """Make a kernel of a function whose parameters are annotated.

    Args:
        function: The function; its body is compiled, not run.
        name: Name of the kernel in messages and reports, instead of the function's.
        enable_backward: Whether there is an adjoint. None: what the module says, else `wp.config.enable_backward`.
        module: A module to take options from, or "unique" for one of its own.
        module_options: Options of a unique module.
        grid_stride: For CUDA: let threads take several work items if the grid is smaller than the launch.
        launch_bounds: For CUDA: the most threads per block, and the fewest blocks per multiprocessor.
        cuda_options: Further options that only matter to CUDA: `cuda_max_registers`, `cluster_dim`,
            `enable_cuda_smem_spilling`.

    Raises:
        KernelTypeError: A parameter has no usable annotation.
        ArgumentError: An option does not exist or has no usable value.
    """
    given = {
        "enable_backward": checked_flag("enable_backward", enable_backward),
        "grid_stride": checked_flag("grid_stride", grid_stride),
        "launch_bounds": checked_bounds(launch_bounds),
        **checked_cuda_options(cuda_options),
    }
    options = {option: value for option, value in given.items() if value is not None}

    def decorate(function: Callable[..., Any], scope: Mapping[str, Any]) -> Kernel:
        if not isinstance(function, types.FunctionType):
            raise UnsupportedSyntaxError(f"wp.kernel decorates a function, got {function!r}")
        owner = _module_for(function, module, module_options)
        return Kernel(Definition(function, "kernel", scope), owner, options, checked_name(name))

    return _decorator(function, decorate, sys._getframe(1))


def func(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    module: Module | str | None = None,
    inline: bool | None = None,  # noqa: ARG001 - a hint to the peer's compiler; inlining is decided here
) -> Any:
    """Make a function that kernels can call; functions of one name and different parameters are overloads.

    `name` takes the place of the function's own name in messages and generated code.
    """

    def decorate(function: Callable[..., Any], scope: Mapping[str, Any]) -> Function:
        made = _function(function, scope, None, module)
        if name is not None:
            made.key = made.overloads[-1].name = name
        return made

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
        counterpart(forward, gradient, "gradient").gradients.append(gradient)
        return Function([gradient], forward.module)

    return decorate


def func_replay(forward: Function) -> Callable[[Callable[..., Any]], Function]:
    """Give `forward` a function to run in its place in the backward pass; it has the same signature.

    Raises KernelTypeError if the parameters do not fit.
    """
    _check_function(forward, "func_replay")

    def decorate(function: Callable[..., Any]) -> Function:
        replay = Overload(function, sys._getframe(1).f_locals)
        counterpart(forward, replay, "replay").replays.append(replay)
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
    if native is not None:
        check_native(made, native)
    result_types(made.returns, f"the result of function '{made.name}'")
    existing = scope.get(function.__name__)
    others: list[Overload] = []
    if isinstance(existing, Function) and _is_sibling(existing, function):
        others = [other for other in existing.overloads if other.types != made.types]
        # In an interactive session kernels that were compiled already take the new definition.
        for kernel in get_module(function.__module__).kernels:
            kernel.compiled.clear()
    owner = module if isinstance(module, Module) else get_module(module or function.__module__)
    return Function([*others, made], owner)


def _is_sibling(existing: Function, function: Callable[..., Any]) -> bool:
    return existing.__module__ == function.__module__ and existing.__qualname__ == function.__qualname__


def _check_function(forward: Any, decorator: str) -> None:
    if not isinstance(forward, Function):
        raise KernelTypeError(f"wp.{decorator} needs a function made by wp.func, got {forward!r}")


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
