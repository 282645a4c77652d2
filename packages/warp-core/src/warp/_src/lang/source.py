"""From Python functions to functions of the intermediate representation."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Type, Value
from warp._src.lang import analysis, expr, stmt
from warp._src.lang.annotations import match_all, match_operand, result_types
from warp._src.lang.context import Context, Hooks
from warp._src.lang.modules import OPTIONS
from warp._src.lang.names import Names
from warp._src.lang.negative_indices import count_from_start
from warp._src.lang.objects import Definition, Kernel, Overload, Parameter
from warp._src.lang.operands import Known, Operand, Poison, is_truth, spelled
from warp._src.lang.scope import ADJOINT, RESULT, RETURN, Scope
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.signature import is_differentiable, type_name
from warp.errors import KernelTypeError, UnsupportedSyntaxError

# What identifies a translation: the definition, and for each parameter its type or compile-time object.
_Key = tuple[Any, ...]


def build_kernel(kernel: Kernel, param_types: Sequence[Type]) -> Function:
    """Translate a kernel for concrete parameter types; the same inputs give the same result.

    Raises a CompileError that shows the line, or ArgumentError if a type does not fit its parameter.
    """
    types = kernel.signature(param_types)
    options = {name: kernel.option(name) for name in OPTIONS}
    options.update(kernel.options)
    session = _Session(options)
    parameters = list(zip(kernel.definition.parameters, types, strict=True))
    made = session.translate(kernel.definition, parameters, is_kernel=True)
    made.function.name = kernel.key
    made.function.options.update(options)
    return made.function


def translated_results(overload: Overload, bound: Sequence[tuple[Parameter, Any]]) -> tuple[Type, ...]:
    """Give the types that a function returns for concrete parameter types, those it changes left out.

    Raises a CompileError that shows the line.
    """
    function = _Session({}).translate(overload, bound).function
    return function.result_types[: len(function.result_types) - len(function.changed)]


@dataclass
class _Translation:
    """A translated function and what was known at its end."""

    function: Function
    context: Context


@dataclass(eq=False)
class _Session:
    """The functions that one kernel calls, each translated once."""

    options: dict[str, Any]
    functions: dict[_Key, Function] = field(default_factory=dict)
    pending: list[_Key] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    def build(
        self, overload: Overload, bound: Sequence[tuple[Parameter, Any]], call: ast.AST, caller: Context
    ) -> Function:
        """Translate a function for types and compile-time objects, with its custom adjoint and replay."""
        key = (overload, *(_identity(given) for _, given in bound))
        if key in self.functions:
            return self.functions[key]
        if key in self.pending:
            raise caller.unsupported(
                f"function '{overload.name}' calls itself; kernels know no recursion", call, "use a loop"
            )
        self.pending.append(key)
        try:
            function = self.translate(overload, bound).function
            function.name = self._unique(overload.name)
            self._attach(overload, bound, function)
        finally:
            self.pending.pop()
        self.functions[key] = function
        return function

    def _unique(self, name: str) -> str:
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def _attach(self, overload: Overload, bound: Sequence[tuple[Parameter, Any]], function: Function) -> None:
        gradient, custom_replay = _fitting(overload.gradients, bound), _fitting(overload.replays, bound)
        if gradient is not None:
            function.custom_gradient, function.gradient_params = self._gradient(gradient, bound, function)
        if custom_replay is not None:
            replay = self.translate(custom_replay, _renamed(custom_replay, bound)).function
            if replay.result_types != function.result_types:
                raise custom_replay.text.error(
                    KernelTypeError,
                    f"the replay of '{overload.name}' returns ({type_name(replay.result_types)}), "
                    f"the function itself ({type_name(function.result_types)})",
                    custom_replay.text.tree,
                )
            replay.name = self._unique(custom_replay.name)
            function.custom_replay = replay

    def _gradient(
        self, gradient: Overload, bound: Sequence[tuple[Parameter, Any]], function: Function
    ) -> tuple[Function, tuple[int, ...]]:
        text = gradient.text
        if function.changed:
            raise text.error(
                UnsupportedSyntaxError,
                f"function '{function.name}' changes a parameter, so it cannot have a custom gradient",
                text.tree,
                "return the changed value instead",
            )
        count = len(bound)
        adjoints = gradient.parameters[count:]
        wanted = [function.result_types[i] if i < len(function.result_types) else None for i in range(len(adjoints))]
        matches = [match_operand(p, Value(t), {}) is not None for p, t in zip(adjoints, wanted, strict=True) if t]
        if len(adjoints) != len(function.result_types) or not all(matches):
            raise text.error(
                KernelTypeError,
                f"the custom gradient of '{function.name}' takes its {count} inputs and the adjoints of its results "
                f"({type_name(function.result_types)}), got {gradient.signature}",
                text.tree,
            )
        parameters = [*_renamed(gradient, bound), *zip(adjoints, function.result_types, strict=True)]
        inputs = {p.name: t for p, t in parameters[:count] if not isinstance(t, Known) and is_differentiable(t)}
        made = self.translate(gradient, parameters, gradient_params=inputs)
        made.function.name = self._unique(gradient.name)
        values = [p.name for p, t in parameters[:count] if not isinstance(t, Known)]
        return made.function, tuple(values.index(name) for name in inputs)

    def translate(
        self,
        definition: Definition,
        bound: Sequence[tuple[Parameter, Any]],
        is_kernel: bool = False,
        gradient_params: dict[str, Type] | None = None,
    ) -> _Translation:
        """Translate one body."""
        text = definition.text
        body = text.tree.body
        region = Region()
        context = Context(
            text=text,
            names=Names(definition.function, definition.annotation_scope),
            hooks=HOOKS,
            options=self.options,
            liveness=analysis.Liveness(body),
            local_names=frozenset(analysis.rebound(body)),
            is_kernel=is_kernel,
            session=self,
            builder=Builder(region, text.location(text.tree)),
            gradient_params=gradient_params,
        )
        params = _bind_parameters(context, bound)
        _expect_results(context, definition)
        if not is_kernel:
            context.exit_names = context.live_at_exit = _changeable(context, params)
        for name, type in (gradient_params or {}).items():
            context.scope.names[ADJOINT + name] = context.builder.zero(type)
        stmt.run(context, body, True)
        results, changed = _finish(context, params)
        context.builder.yield_(results)
        region.args = tuple(params.values())
        count_from_start(region)
        function = Function(
            name=definition.name,
            params=region.args,
            result_types=tuple(value.type for value in results),
            body=region,
            loc=text.location(text.tree),
            is_kernel=is_kernel,
            changed=changed,
        )
        return _Translation(function, context)


def _identity(given: Any) -> Any:
    return (
        ("object", given.object if given.object.__hash__ else id(given.object)) if isinstance(given, Known) else given
    )


def _fitting(custom: Sequence[Overload], bound: Sequence[tuple[Parameter, Any]]) -> Overload | None:
    """Choose among custom gradients or replays the one for the types at hand; one without generic parameters first."""
    operands = [given if isinstance(given, Known) else Value(given) for _, given in bound]
    concrete = [candidate for candidate in reversed(custom) if not candidate.is_generic]
    generic = [candidate for candidate in reversed(custom) if candidate.is_generic]
    for candidate in (*concrete, *generic):
        types = match_all(candidate.parameters[: len(bound)], operands)
        if all(t is not None or isinstance(o, Known) for t, o in zip(types, operands, strict=True)):
            return candidate
    return None


def _renamed(other: Overload, bound: Sequence[tuple[Parameter, Any]]) -> list[tuple[Parameter, Any]]:
    return [(parameter, given) for parameter, (_, given) in zip(other.parameters, bound, strict=False)]


def _bind_parameters(context: Context, bound: Sequence[tuple[Parameter, Any]]) -> dict[str, Value]:
    """Bind the parameters; compile-time ones take no part at run time."""
    params = {}
    for parameter, given in bound:
        if isinstance(given, Known):
            context.scope.names[parameter.name] = given
        else:
            params[parameter.name] = context.scope.names[parameter.name] = Value(given, parameter.name)
    context.local_names |= {parameter.name for parameter, _ in bound}
    return params


def _expect_results(context: Context, definition: Definition) -> None:
    if context.gradient_params is not None:
        context.result_count = 0
        return
    wanted = result_types(definition.returns, f"the result of {definition.kind} '{definition.name}'")
    if context.is_kernel and wanted:
        raise context.unsupported(
            "a kernel cannot return a value, but its return is annotated",
            context.text.tree.returns or context.text.tree,
            "write the result to an array parameter",
        )
    if wanted is not None:
        context.result_types = wanted
        context.result_count = len(wanted)


def _changeable(context: Context, params: Mapping[str, Value]) -> frozenset[str]:
    """Find local arrays among the parameters that the function may change, as its caller will see."""
    body = context.text.tree.body
    updated = (set(analysis.assigned(body)) | set(analysis.call_arguments(body))) - set(analysis.rebound(body))
    return frozenset(name for name in updated & set(params) if isinstance(params[name].type, LocalArrayType))


def _finish(context: Context, params: Mapping[str, Value]) -> tuple[list[Value], tuple[int, ...]]:
    """Give the values to yield at the end of the function, and the parameters it has changed."""
    scope, tree = context.scope, context.text.tree
    with context.at(tree):
        if context.gradient_params is not None:
            return [context.value(_operand(scope, ADJOINT + name), tree) for name in context.gradient_params], ()
        results = []
        if context.result_count:
            if not _has_returned(scope):
                raise context.error(
                    KernelTypeError,
                    f"function '{context.text.name}' returns a value on some paths only: a return is missing",
                    tree if not tree.body else tree.body[-1],
                    "every path must end in a return",
                )
            results = [context.value(_operand(scope, f"{RESULT}{i}"), tree) for i in range(context.result_count)]
        changed = []
        for index, (name, value) in enumerate(params.items()):
            end = scope.names.get(name)
            if name in context.exit_names and isinstance(end, Value) and end is not value:
                changed.append(index)
                results.append(end)
    return results, tuple(changed)


def _has_returned(scope: Scope) -> bool:
    flag = scope.names[RETURN]
    return isinstance(flag, Known) and flag.object is True


def _operand(scope: Scope, name: str) -> Operand:
    operand = scope.names[name]
    return Known(None) if isinstance(operand, Poison) else operand


def _build_overload(
    context: Context, overload: Overload, operands: Sequence[Operand], node: ast.AST
) -> tuple[Function, list[Value]]:
    """Translate the function that a call needs, and give the arguments that exist at run time."""
    bound: list[tuple[Parameter, Any]] = []
    values = []
    types = match_all(overload.parameters, operands)
    for parameter, operand, type in zip(overload.parameters, operands, types, strict=True):
        if isinstance(operand, Known) and not is_truth(operand):
            bound.append((parameter, operand))
            continue
        if isinstance(operand, tuple):
            raise context.error(KernelTypeError, f"{spelled(operand)} cannot be passed to a function", node)
        bound.append((parameter, type))
        values.append(context.converted(operand, type, node, f"argument '{parameter.name}' of '{overload.name}'"))
    session: _Session = context.session
    return session.build(overload, bound, node, context), values


HOOKS = Hooks(evaluate=expr.evaluate, place=expr.place, run=stmt.run, build_overload=_build_overload)

__all__ = ["build_kernel"]
