"""Kernels and functions as users hold them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warp import config
from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang.annotations import EMPTY, Parameter, match_all, parameters_of
from warp._src.lang.modules import Module
from warp._src.lang.operands import spelled
from warp._src.lang.text import SourceText, source_text
from warp._src.types.scalars import is_scalar
from warp._src.types.signature import canonical, is_generic, type_name
from warp.errors import ArgumentError, UnsupportedSyntaxError


@dataclass(eq=False)
class Native:
    """The C++ texts of a native function."""

    snippet: str
    adjoint: str | None
    replay: str | None


class Definition:
    """A decorated Python function: its parameters and, when it is first needed, its syntax tree."""

    def __init__(self, function: Callable[..., Any], kind: str, scope: Mapping[str, Any]) -> None:
        """Resolve the annotations of `function`; `scope` holds the names of the defining scope."""
        self.function = function
        self.kind = kind
        self.name = function.__name__
        self.doc = inspect.getdoc(function)
        self.parameters, self.returns, self.annotation_scope = parameters_of(function, kind, scope)
        self._text: SourceText | None = None

    @property
    def text(self) -> SourceText:
        """The source, read once; it may be given for a function that was made of a text."""
        if self._text is None:
            self._text = source_text(self.function, self.kind)
        return self._text

    @text.setter
    def text(self, text: SourceText) -> None:
        self._text = text

    @property
    def types(self) -> tuple[Any, ...]:
        return tuple(parameter.type for parameter in self.parameters)

    @property
    def is_generic(self) -> bool:
        return any(is_generic(t) for t in self.types)

    @property
    def signature(self) -> str:
        """The function in words, for messages."""
        return f"{self.name}({', '.join(f'{p.name}: {type_name(p.type)}' for p in self.parameters)})"


class Overload(Definition):
    """One definition of a function for kernels, with what the user put in place of its adjoint and replay."""

    def __init__(self, function: Callable[..., Any], scope: Mapping[str, Any], native: Native | None = None) -> None:
        super().__init__(function, "function", scope)
        self.native = native
        self.gradients: list[Overload] = []
        self.replays: list[Overload] = []


class Function:
    """A function that kernels can call (`wp.func`); calling it from Python runs the Python code."""

    def __init__(self, overloads: Sequence[Overload], module: Module) -> None:
        self.overloads = tuple(overloads)
        self.module = module
        # Kernels that `wp.map` has made of this function.
        self.mapped: dict[Any, Kernel] = {}
        first = self.overloads[-1]
        self.key = self.__name__ = first.name
        self.__doc__ = first.doc
        self.__module__ = first.function.__module__
        self.__qualname__ = first.function.__qualname__
        self.__wrapped__ = first.function

    @property
    def func(self) -> Callable[..., Any]:
        """The Python function."""
        return self.overloads[-1].function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run on the host."""
        fitting = [overload for overload in self.overloads if _accepts(overload, args, keywords)]
        overload = fitting[0] if fitting else self.overloads[-1]
        if overload.native is not None:
            raise UnsupportedSyntaxError(f"native function '{self.key}' can only be called in a kernel")
        return overload.function(*args, **keywords)

    def __repr__(self) -> str:
        return f"<wp.func {self.key}>"


class Kernel:
    """A function that `wp.launch` runs for every work item."""

    def __init__(
        self,
        definition: Definition,
        module: Module,
        options: Mapping[str, Any],
        key: str | None = None,
        types: Sequence[Any] | None = None,
    ) -> None:
        self.definition = definition
        self.module = module
        self.options = dict(options)
        self.key = self.__name__ = key or definition.name
        self.__doc__ = definition.doc
        self.__module__ = definition.function.__module__
        self.__qualname__ = definition.function.__qualname__
        self.__wrapped__ = definition.function
        self._types = tuple(types) if types is not None else definition.types
        self.parameter_count = len(self._types)
        self.overloads: list[Kernel] = []
        module.kernels.add(self)
        # What the launch layer has compiled, by concrete parameter types; () stands for the declared ones.
        self.compiled: dict[tuple[Any, ...], Any] = {}

    @property
    def func(self) -> Callable[..., Any]:
        """The Python function."""
        return self.definition.function

    @property
    def parameters(self) -> list[tuple[str, Any]]:
        """Names and types; a type may be generic."""
        return [(parameter.name, t) for parameter, t in zip(self.definition.parameters, self._types, strict=True)]

    @property
    def is_generic(self) -> bool:
        """Whether concrete types must be found from the arguments of a launch."""
        return any(is_generic(t) for t in self._types)

    def option(self, name: str) -> Any:
        """Give an option: the kernel's own, else its module's, else that of `wp.config`."""
        if name in self.options:
            return self.options[name]
        if name in self.module.options:
            return self.module.options[name]
        return getattr(config, name, None)

    def complete(self, args: list[Any]) -> list[Any]:
        """Append the defaults of the parameters for which no arguments are given."""
        rest = [parameter.default for parameter in self.definition.parameters[len(args) :]]
        return args if EMPTY in rest else [*args, *rest]

    def signature(self, types: Sequence[Any]) -> tuple[Any, ...]:
        """Check concrete types against the parameters and give those to build for.

        A number of Python stands as a Literal for its type, which a type variable may settle, or the only overload
        that fits. Raises ArgumentError that names the parameter and both types.
        """
        if len(types) != len(self._types):
            raise ArgumentError(
                f"kernel '{self.key}' takes {len(self._types)} arguments "
                f"({', '.join(name for name, _ in self.parameters)}), got {len(types)}"
            )
        given = [_canonical(t) for t in types]
        fitting = [known._types for known in self.overloads if _is_overload_for(known._types, given)]
        if len(fitting) == 1:
            return fitting[0]
        parameters = [Parameter(name, wanted) for name, wanted in self.parameters]
        operands = [t if isinstance(t, Literal) else Value(t) for t in given]
        result = match_all(parameters, operands)
        for parameter, operand, found in zip(parameters, operands, result, strict=True):
            if found is None:
                raise ArgumentError(
                    f"parameter '{parameter.name}' of kernel '{self.key}' has type {type_name(parameter.type)}, "
                    f"got {spelled(operand)}"
                )
        return tuple(result)

    def specialize(self, types: Sequence[Any]) -> Kernel:
        """Give this kernel for concrete types; the same types give the same kernel."""
        concrete = self.signature(types)
        for known in self.overloads:
            if known._types == concrete:
                return known
        kernel = Kernel(self.definition, self.module, self.options, self.key, concrete)
        self.overloads.append(kernel)
        return kernel

    def __call__(self, *args: Any, **keywords: Any) -> None:
        raise UnsupportedSyntaxError(
            f"kernel '{self.key}' is not called; launch it: wp.launch({self.key}, dim, inputs)"
        )

    def __repr__(self) -> str:
        return f"<wp.kernel {self.key}>"


def _is_overload_for(types: Sequence[Any], given: Sequence[Any]) -> bool:
    """Tell whether arguments have the types of an overload; a number of Python has any type that can hold it."""
    return all(
        is_scalar(t) and t.kind in ("f" if found.kind == "f" else "iuf") if isinstance(found, Literal) else t == found
        for t, found in zip(types, given, strict=True)
    )


def _canonical(given: Any) -> Any:
    return given if isinstance(given, Literal) else canonical(given)


def _accepts(overload: Overload, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Tell whether host arguments look as if they belong to this overload."""
    try:
        bound = inspect.signature(overload.function).bind(*args, **keywords)
    except TypeError:
        return False
    kinds = {parameter.name: parameter.type for parameter in overload.parameters}
    return all(_resembles(value, kinds.get(name, Any)) for name, value in bound.arguments.items())


def _resembles(value: Any, wanted: Any) -> bool:
    if is_generic(wanted) or not isinstance(wanted, type):
        return True
    if isinstance(value, bool):
        return getattr(wanted, "kind", "") == "b"
    if isinstance(value, int):
        return getattr(wanted, "kind", "") in ("i", "u")
    if isinstance(value, float):
        return getattr(wanted, "kind", "") == "f"
    return isinstance(value, wanted)


__all__ = ["Definition", "Function", "Kernel", "Native", "Overload", "Parameter"]
