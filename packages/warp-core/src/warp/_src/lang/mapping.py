"""Kernels that apply a function to the elements of arrays."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warp._src.lang.modules import get_module
from warp._src.lang.objects import Definition, Function, Kernel, Overload, Parameter
from warp._src.lang.source import translated_results
from warp._src.lang.stubs import INTRINSICS
from warp._src.lang.text import SourceText
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.struct_type import Type
from warp.errors import KernelTypeError


@dataclass(frozen=True)
class MappedCall:
    """A function, the types it is applied to with the index texts of the arrays among them, and what it returns."""

    function: Function
    target: Any  # what the kernel calls: the function, or the builtin that it stands for
    parameters: tuple[tuple[Type, str | None], ...]
    ndim: int
    results: tuple[Type, ...]

    @property
    def key(self) -> Any:
        """What tells one kernel of a function from another."""
        return self.parameters, self.ndim

    def make(self) -> Kernel:
        """Make the kernel: a parameter for each input and each result, one work item for each element."""
        name = f"map_{self.function.key}" if self.function.key.isidentifier() else "map_lambda"
        inputs = [f"x{number}" for number in range(len(self.parameters))]
        outputs = [f"out{number}" for number in range(len(self.results))]
        axes = ", ".join(f"i{axis}" for axis in range(self.ndim))
        elements = [
            parameter if index is None else f"{parameter}[{index}]"
            for parameter, (_, index) in zip(inputs, self.parameters, strict=True)
        ]
        targets = ", ".join(f"{output}[{axes}]" for output in outputs)
        text = (
            f"def {name}({', '.join([*inputs, *outputs])}):\n"
            f"    {axes} = tid()\n"
            f"    {targets} = target({', '.join(elements)})\n"
        )
        arrays = [ArrayType(result, self.ndim) for result in self.results]
        annotations = dict(zip([*inputs, *outputs], [*(t for t, _ in self.parameters), *arrays], strict=True))
        function = _compiled(text, name, self.target, annotations)
        definition = Definition(function, "kernel", {})
        definition.text = SourceText(function, "kernel", text)
        return Kernel(definition, self.function.module, {})


def mapped_call(function: Any, parameters: tuple[tuple[Type, str | None], ...], ndim: int) -> MappedCall:
    """Find out what a function returns for the elements of arrays and for values, in the order of `parameters`.

    Raises KernelTypeError if it returns nothing, or a CompileError that shows the line.
    """
    mapped = _as_function(function)
    target = function if mapped.overloads[0].function is _builtin else mapped
    names = [f"x{number}" for number in range(len(parameters))]
    text = f"def apply({', '.join(names)}):\n    return target({', '.join(names)})\n"
    wrapper = Overload(_compiled(text, "apply", target, {}), {})
    wrapper.text = SourceText(wrapper.function, "function", text)
    element_types = [_element(t) for t, _ in parameters]
    bound = [(Parameter(name, t), t) for name, t in zip(names, element_types, strict=True)]
    results = translated_results(wrapper, bound)
    if not results:
        raise KernelTypeError(f"map: function '{mapped.key}' returns nothing, so there is nothing to store")
    return MappedCall(mapped, target, parameters, ndim, results)


def _element(t: Any) -> Any:
    return t.dtype if isinstance(t, (ArrayType, IndexedArrayType)) else t


def _as_function(function: Any) -> Function:
    """Give the function as one for kernels; a Python function keeps the one that was made of it."""
    if isinstance(function, Function):
        return function
    known = getattr(function, "__warp_function__", None)
    if isinstance(known, Function):
        return known
    if isinstance(getattr(function, "__warp_builtin__", None), str):
        made = Function([Overload(_builtin, {})], get_module(__name__))
        made.key = function.__name__
        function.__warp_function__ = made
        return made
    if not isinstance(function, types.FunctionType):
        raise KernelTypeError(f"map: {function!r} is no function that kernels can call")
    made = Function([Overload(function, {})], get_module(function.__module__))
    function.__warp_function__ = made  # type: ignore[attr-defined]  # found by the front end
    return made


def _builtin() -> None:
    """Stand for a builtin, which has overloads of its own."""


def _compiled(text: str, name: str, target: Any, annotations: dict[str, Any]) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"target": target, "tid": INTRINSICS["tid"], "__name__": __name__}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    function.__annotations__ = annotations
    return function
