"""The one declaration of a builtin and the registry that everything else reads.

The stub of a builtin is its declaration: its annotations are the type rules, its docstring the documentation,
and `@builtin(...)` has no defaults for what must not be forgotten: the C++ text, the adjoint and the reference
implementation.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from warp._src.builtins.patterns import Bindings, accepts_scalar, match, pattern_name, substitute
from warp._src.ir.core import Type
from warp._src.types.generics import with_scalar
from warp._src.types.scalars import bfloat16, float32, int32
from warp._src.types.signature import is_tensor, type_name
from warp.errors import KernelTypeError, UnknownNameError

# Adjoint contribution of one parameter. Called with those of the builtin's parameters, `ret` (or `ret0`,
# `ret1`, ...) and `adj` (or `adj0`, `adj1`, ...) that its own parameter list names, all of them `Expr`.
AdjointRule = Callable[..., Any]


@dataclass(frozen=True)
class NonDifferentiable:
    """States that a builtin passes no gradient on, and why; the documentation shows the reason."""

    reason: str


@dataclass(frozen=True)
class Sampling:
    """Where the generated tests may evaluate a builtin.

    `ranges` gives an interval for each named parameter (default -2 to 2); `condition` rejects samples near
    kinks and poles: it takes the arguments as NumPy values and returns True for a good sample. `count` samples are
    taken, fewer where a reference is slow.
    """

    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    condition: Callable[..., bool] | None = None
    count: int = 20


@dataclass(frozen=True, eq=False)
class Builtin:
    """One overload class of a builtin, such as `dot` of two vectors of one length and float type.

    `reference` is called with the arguments in order, then the attributes: scalars as NumPy scalars of the type's
    dtype, tensors as arrays of the type's shape. When duals run, all floats are `Dual`s and float tensors object
    arrays of them, so it keeps to operators and ufuncs. The caller silences NumPy's warnings and brings the result
    to its type.

    `updates` names parameters that the call gives a new value, such as the state of a random number generator: these
    values are results of the call after the others. A kernel's variable that is passed to such a parameter is
    assigned the new value; whoever calls from Python gets the other results only.
    """

    name: str
    parameters: Mapping[str, Any]  # name to pattern
    results: tuple[Any, ...]  # patterns
    cpp: str
    adjoint: Mapping[str, AdjointRule] | NonDifferentiable
    reference: Callable[..., Any]
    group: str
    doc: str
    has_effects: bool
    bounded: bool  # its value is finite for finite arguments (sin, but not 1/x): no strong-zero test needed
    internal: bool  # not part of the public namespace
    sampling: Sampling
    updates: tuple[str, ...] = ()
    defaults: Mapping[str, int | float] = field(default_factory=dict)  # of trailing parameters

    @property
    def returned(self) -> tuple[Any, ...]:
        """Patterns of the results without the new values of updated parameters."""
        return self.results[: len(self.results) - len(self.updates)]

    @property
    def signature(self) -> str:
        """The signature in words, for messages and the reference page."""
        parameters = ", ".join(
            f"{name}: {pattern_name(pattern)}" + (f" = {self.defaults[name]}" if name in self.defaults else "")
            for name, pattern in self.parameters.items()
        )
        results = ", ".join(pattern_name(result) for result in self.returned)
        return f"{self.name}({parameters})" + (f" -> {results}" if results else "")


@dataclass(frozen=True, eq=False)
class Overload:
    """A builtin at concrete types: what a `Call` operation refers to."""

    builtin: Builtin
    param_types: tuple[Type, ...]
    result_types: tuple[Type, ...]
    bindings: Mapping[Any, Any]

    @property
    def name(self) -> str:
        return self.builtin.name

    @property
    def has_effects(self) -> bool:
        return self.builtin.has_effects

    @cached_property
    def computed(self) -> Overload:
        """The overload whose text computes this one: builtins of numbers compute bfloat16 in float32."""
        numbers = [bound for variable, bound in self.bindings.items() if variable.__constraints__]
        if bfloat16 not in numbers:
            return self
        wide = overload_of(self.builtin, [_widened(type) for type in self.param_types])
        assert wide is not None
        return wide

    def defaults_after(self, count: int) -> list[int | float]:
        """Give the defaults that stand for the arguments after the first `count`."""
        return [self.builtin.defaults[name] for name in list(self.builtin.parameters)[count:]]

    @property
    def label(self) -> str:
        """Unique text for this overload, for printed IR and cache keys."""
        return f"{self.name}({', '.join(type_name(t) for t in self.param_types)})"


@dataclass(frozen=True)
class Literal:
    """A number written in a kernel that has no type of its own yet; it adopts that of its neighbours."""

    value: int | float

    @property
    def kind(self) -> str:
        return "f" if isinstance(self.value, float) else "i"

    @property
    def default(self) -> Any:
        return float32 if isinstance(self.value, float) else int32


REGISTRY: dict[str, list[Builtin]] = {}
_PATTERNS: dict[tuple[str, str], Any] = {}
_OVERLOADS: dict[tuple[Builtin, tuple[Type, ...]], Overload] = {}


def builtin(
    name: str | None = None,
    *,
    cpp: str,
    adjoint: Mapping[str, AdjointRule] | NonDifferentiable,
    reference: Callable[..., Any],
    group: str,
    has_effects: bool = False,
    bounded: bool = False,
    internal: bool = False,
    sampling: Sampling | None = None,
    updates: tuple[str, ...] = (),
    defaults: Mapping[str, int | float] | None = None,
) -> Callable[[Callable[..., Any]], Builtin]:
    """Declare a builtin from its stub and register it.

    `cpp` is C++ text with one `{parameter}` per argument, and `{T}` and the like for bound type variables'
    C++ names; `{ret0}`, `{ret1}`, ... are the variables to assign where there are several results. Several stubs may
    share a `name`: they are tried in the order of declaration. `defaults` are numbers for the last parameters.
    """

    def declare(stub: Callable[..., Any]) -> Builtin:
        hints = {name: _evaluate(text, stub.__globals__) for name, text in stub.__annotations__.items()}
        result = hints.pop("return", None)
        results = typing.get_args(result) if typing.get_origin(result) is tuple else (result,)
        return register(
            Builtin(
                name=name or stub.__name__,
                parameters=hints,
                results=(*(() if result is None else results), *(hints[parameter] for parameter in updates)),
                cpp=cpp,
                adjoint=adjoint,
                reference=reference,
                group=group,
                doc=inspect.getdoc(stub) or "",
                has_effects=has_effects,
                bounded=bounded,
                internal=internal,
                sampling=sampling or Sampling(),
                updates=updates,
                defaults=defaults or {},
            )
        )

    return declare


def register(record: Builtin) -> Builtin:
    """Add an overload class to the registry; TypeError for an adjoint of a parameter that it does not have."""
    unknown = set(record.adjoint) - set(record.parameters) if isinstance(record.adjoint, Mapping) else set()
    if unknown:
        raise TypeError(f"builtin {record.name}: adjoint for unknown parameters {sorted(unknown)}")
    REGISTRY.setdefault(record.name, []).append(record)
    return record


def _evaluate(text: str, namespace: dict[str, Any]) -> Any:
    """Evaluate an annotation of a stub: `typing.get_type_hints`, but once for equal texts of a module."""
    key = (namespace["__name__"], text)
    if key not in _PATTERNS:
        _PATTERNS[key] = eval(text, namespace)
    return _PATTERNS[key]


def overload_of(record: Builtin, args: Sequence[Type | Literal]) -> Overload | None:
    """Instantiate one overload class for argument types, or give None if they do not match.

    Missing arguments at the end are literals, the defaults.
    """
    missing = list(record.parameters)[len(args) :]
    if len(args) > len(record.parameters) or not all(name in record.defaults for name in missing):
        return None
    args = [*args, *(Literal(record.defaults[name]) for name in missing)]
    bindings: Bindings = {}
    patterns = list(record.parameters.values())
    types: list[Type] = list(args)
    for pattern, arg in zip(patterns, args, strict=True):
        if not isinstance(arg, Literal) and not match(pattern, arg, bindings):
            return None
    for index, (pattern, arg) in enumerate(zip(patterns, args, strict=True)):
        if isinstance(arg, Literal):
            types[index] = accepts_scalar(pattern, bindings, arg.kind, arg.default)
            if types[index] is None:
                return None
    key = (record, tuple(types))
    if key not in _OVERLOADS:
        result_types = tuple(substitute(pattern, bindings) for pattern in record.results)
        _OVERLOADS[key] = Overload(record, tuple(types), result_types, bindings)
    return _OVERLOADS[key]


def resolve(name: str, args: Sequence[Type | Literal]) -> Overload:
    """Find the overload of builtin `name` for argument types; literals adopt the types of their neighbours.

    Raises UnknownNameError for an unknown name and KernelTypeError, which lists the candidates, if none fits.
    """
    candidates = REGISTRY.get(name)
    if candidates is None:
        raise UnknownNameError(f"there is no builtin named '{name}'")
    for record in candidates:
        overload = overload_of(record, args)
        if overload is not None:
            return overload
    given = ", ".join(describe(arg) for arg in args)
    known = "\n".join(f"    {record.signature}" for record in candidates)
    raise KernelTypeError(f"no overload of '{name}' takes ({given}); there are:\n{known}")


def _widened(type: Any) -> Type:
    if is_tensor(type):
        return with_scalar(type, _widened(type.scalar))
    return float32 if type is bfloat16 else type


def describe(arg: Type | Literal) -> str:
    """Name an argument's type for a message: a literal shows its value."""
    return f"{type_name(arg.default)} literal {arg.value}" if isinstance(arg, Literal) else type_name(arg)
