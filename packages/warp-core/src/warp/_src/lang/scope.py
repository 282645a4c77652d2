"""The variables of a function at one point of it, and how two control paths join."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Region, Type, Value
from warp._src.lang.operands import Known, Operand, Poison, Unsettled, is_same, is_truth, spelled
from warp._src.types.scalars import bool_
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    import ast

    from warp._src.lang.context import Context

# Pseudo-variables: what break, continue and return leave behind. All pseudo-variables start with "$".
RETURN, BREAK, CONTINUE = "$return", "$break", "$continue"
RESULT = "$result"  # $result0, $result1, ...: the values to return
ADJOINT = "$adjoint:"  # $adjoint:x: the gradient that a custom adjoint has given to x
FLAGS = (RETURN, BREAK, CONTINUE)
NO, YES = Known(False), Known(True)
SOMETIMES = Poison("has returned on some paths only")


class Scope:
    """Names and their operands."""

    def __init__(self, names: dict[str, Operand | Poison] | None = None, is_exited: bool = False) -> None:
        self.names: dict[str, Operand | Poison] = names if names is not None else dict.fromkeys(FLAGS, NO)
        self._is_exited = is_exited

    def copy(self, is_exited: bool = False) -> Scope:
        """Copy for a branch; `is_exited` marks one that is only entered after a break, continue or return."""
        return Scope(dict(self.names), is_exited)

    @property
    def has_exited(self) -> bool:
        """Whether control has certainly left the block."""
        return self._is_exited or any(_is_true(self.names[flag]) for flag in FLAGS)

    @property
    def open_flags(self) -> list[Value]:
        """Flags that are only known at run time."""
        return [flag for flag in map(self.names.__getitem__, FLAGS) if isinstance(flag, Value)]


@dataclass
class Branch:
    """One side of an `if`: its operations and the variables at its end."""

    scope: Scope
    region: Region = field(default_factory=Region)


@contextmanager
def inside(context: Context, branch: Branch) -> Iterator[None]:
    """Build into a branch, with its variables."""
    outer, context.scope = context.scope, branch.scope
    try:
        with context.builder.into(branch.region):
            yield
    finally:
        context.scope = outer


class _Join:
    """Collects the values that two branches yield."""

    def __init__(self, context: Context, then: Branch, orelse: Branch, node: ast.AST) -> None:
        self.context = context
        self.then = then
        self.orelse = orelse
        self.node = node
        self.yields: tuple[list[Value], list[Value]] = ([], [])

    def merge(self, name: str, left: Operand | Poison | None, right: Operand | Poison | None) -> Operand | Poison | int:
        """Decide what a variable is after the join; an int is the number of the If's result that it is."""
        if left is not None and right is not None and is_same(left, right):
            return left
        if left is None or isinstance(left, Poison):
            return self._one_sided(name, left, right, self.then)
        if right is None or isinstance(right, Poison):
            return self._one_sided(name, right, left, self.orelse)
        return self._two_sided(name, left, right)

    def _one_sided(
        self, name: str, poison: Poison | None, other: Operand | Poison | None, missing: Branch
    ) -> Operand | Poison | int:
        if other is None or isinstance(other, Poison):
            return poison or other or Poison("may be unbound here: it is bound in no branch")
        # A path that has left the block never reads the variable, so any value will do there.
        is_free = missing.scope.has_exited or name.startswith("$")
        other_type = self._joinable(other)
        if not is_free or other_type is None:
            return poison or Poison("may be unbound here: only one branch of an 'if' binds it")
        with self.context.builder.into(missing.region):
            zero = self.context.builder.zero(other_type)
        pair = (zero, other) if missing is self.then else (other, zero)
        return self._yield(name, pair[0], pair[1], other_type)

    def _joinable(self, operand: Operand) -> Type | None:
        if isinstance(operand, Value):
            return operand.type
        if isinstance(operand, Literal):
            return operand.default
        return bool_ if is_truth(operand) else None

    def _two_sided(self, name: str, left: Operand, right: Operand) -> Operand | Poison | int:
        if isinstance(left, Literal) and isinstance(right, Literal) and left.kind == right.kind:
            unsettled = next((side for side in (left, right) if isinstance(side, Unsettled)), None)
            return unsettled or self._yield(name, left, right, left.default)
        left_type, right_type = self._joinable(left), self._joinable(right)
        if left_type is None or right_type is None:
            return Poison("is a different compile-time object in the two branches of an 'if'")
        chosen = left_type if isinstance(left, Value) else right_type
        return self._yield(name, left, right, chosen)

    def _yield(self, name: str, left: Operand, right: Operand, type: Type) -> int:
        sides = ((self.then, left), (self.orelse, right))
        values = []
        for branch, operand in sides:
            with self.context.builder.into(branch.region):
                value = self.context.fitted(operand, type)
            if value is None:
                what = "the result" if name.startswith("$") else f"'{name}'"
                raise self.context.error(
                    KernelTypeError,
                    f"{what} is {spelled(left)} in one branch and {spelled(right)} in the other",
                    self.node,
                    "give it one type, for example by casting one of them",
                )
            values.append(value)
        for side, value in zip(self.yields, values, strict=True):
            side.append(value)
        return len(self.yields[0]) - 1


def join(
    context: Context,
    condition: Value,
    then: Branch,
    orelse: Branch,
    node: ast.AST,
    keep: Collection[str] | None = None,
    is_last: bool = False,
) -> None:
    """End an `if`: yield what differs between the branches and is needed later, and append the operation.

    `keep` names the variables that are still needed (None: all). `is_last` says that nothing follows in the
    function, so that it need not be known at run time whether it has returned.
    """
    collect = _Join(context, then, orelse, node)
    merged: dict[str, Operand | Poison | int] = {}
    for name in dict.fromkeys([*then.scope.names, *orelse.scope.names]):
        left, right = then.scope.names.get(name), orelse.scope.names.get(name)
        if is_last and name in FLAGS and not (left is not None and right is not None and is_same(left, right)):
            merged[name] = SOMETIMES
        elif keep is None or name in keep or name.startswith("$") or (left is right and left is not None):
            merged[name] = collect.merge(name, left, right)
    for branch, values in zip((then, orelse), collect.yields, strict=True):
        with context.builder.into(branch.region):
            context.builder.yield_(values)
    results: tuple[Value, ...] = ()
    if len(then.region.ops) > 1 or len(orelse.region.ops) > 1 or collect.yields[0]:
        with context.builder.at(context.text.location(node)):
            results = context.builder.if_(condition, then.region, orelse.region)
    for name, operand in merged.items():
        context.scope.names[name] = results[operand] if isinstance(operand, int) else operand
    for name in [name for name in context.scope.names if name not in merged]:
        del context.scope.names[name]


def _is_true(operand: Operand | Poison) -> bool:
    return isinstance(operand, Known) and operand.object is True
