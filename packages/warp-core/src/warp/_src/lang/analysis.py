"""Questions about syntax trees: which variables are live, assigned, and how blocks end."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True)
class _Exits:
    """What is live where `break`, `continue` and `return` lead to."""

    after_break: Names = NONE
    after_continue: Names = NONE


class Liveness:
    """For every statement, the names whose values may still be read after it; for every loop, at its head."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.after: dict[ast.stmt, Names] = {}
        self.head: dict[ast.stmt, Names] = {}
        self._block(body, NONE, _Exits())

    def _block(self, body: Sequence[ast.stmt], out: Names, exits: _Exits) -> Names:
        for statement in reversed(body):
            self.after[statement] = out
            out = self._statement(statement, out, exits)
        return out

    def _statement(self, node: ast.stmt, out: Names, exits: _Exits) -> Names:
        if isinstance(node, ast.If):
            branches = self._block(node.body, out, exits) | self._block(node.orelse, out, exits)
            return branches | reads(node.test)
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, out)
        if isinstance(node, ast.Return):
            return reads(node)
        if isinstance(node, ast.Break):
            return exits.after_break
        if isinstance(node, ast.Continue):
            return exits.after_continue
        return (out - kills(node)) | reads(node)

    def _loop(self, node: ast.For | ast.While, out: Names) -> Names:
        is_for = isinstance(node, ast.For)
        own = NONE if isinstance(node, ast.For) else reads(node.test)
        target = names_in_target(node.target) if isinstance(node, ast.For) else NONE
        head = out | own
        for _ in range(2):  # a name can only become live through one trip around the loop
            head = head | (self._block(node.body, head, _Exits(out, head)) - target)
        self.head[node] = head
        return head | (reads(node.iter) if is_for and isinstance(node, ast.For) else NONE)


def reads(node: ast.AST) -> Names:
    """Names that a node reads; updating a component or augmenting a variable reads it."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if isinstance(node, ast.AugAssign):
        found |= names_in_target(node.target)
    return frozenset(found)


def kills(node: ast.stmt) -> Names:
    """Names that a simple statement gives an entirely new value."""
    if isinstance(node, ast.Assign):
        return frozenset().union(*(names_in_target(target) for target in node.targets))
    if isinstance(node, ast.AnnAssign):
        return names_in_target(node.target) if node.value is not None else NONE
    return NONE


def names_in_target(target: ast.expr) -> Names:
    """Names that are bound by assigning to a target; not those of which only a component changes."""
    if isinstance(target, ast.Name):
        return frozenset((target.id,))
    if isinstance(target, (ast.Tuple, ast.List)):
        return frozenset().union(*(names_in_target(element) for element in target.elts))
    return NONE


def root_name(node: ast.expr) -> str | None:
    """The variable at the start of a chain such as `s.a[0].b`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def rebound(body: Sequence[ast.stmt]) -> list[str]:
    """Names that statements bind, in order of appearance, without names of which only components change."""
    return list(dict.fromkeys(name for target in _targets(body) for name in sorted(names_in_target(target))))


def assigned(body: Sequence[ast.stmt]) -> list[str]:
    """Names that statements bind or whose components they change, in order of appearance."""
    found: dict[str, None] = {}
    for target in _targets(body):
        for leaf in _leaves(target):
            name = root_name(leaf)
            if name is not None:
                found[name] = None
    return list(found)


def call_arguments(nodes: Sequence[ast.AST]) -> list[str]:
    """Variables of which a part is passed to a call, which may change it."""
    return _arguments(nodes, None)


def arguments_of_calls(nodes: Sequence[ast.AST], names: frozenset[str]) -> list[str]:
    """Variables of which a part is passed to a call of a function of one of some names."""
    return _arguments(nodes, names)


def _arguments(nodes: Sequence[ast.AST], names: frozenset[str] | None) -> list[str]:
    found: dict[str, None] = {}
    for root in nodes:
        for node in ast.walk(root):
            if isinstance(node, ast.Call) and (names is None or _last_name(node.func) in names):
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    name = root_name(argument)
                    if name is not None:
                        found[name] = None
    return list(found)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def has_jump(body: Sequence[ast.stmt], kind: type[ast.Break] | type[ast.Continue]) -> bool:
    """Tell whether statements hold a break, or continue, of the loop that they are the body of."""
    for node in body:
        if isinstance(node, kind):
            return True
        if isinstance(node, ast.If) and (has_jump(node.body, kind) or has_jump(node.orelse, kind)):
            return True
    return False


def has_return(body: Sequence[ast.stmt]) -> bool:
    """Tell whether statements hold a return."""
    return any(isinstance(node, ast.Return) for root in body for node in ast.walk(root))


def always_exits(body: Sequence[ast.stmt]) -> bool:
    """Tell whether control never reaches the end of a block."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(node, ast.If) and always_exits(node.body) and always_exits(node.orelse):
            return True
        if isinstance(node, ast.While) and is_endless(node):
            return True
    return False


def is_endless(node: ast.While) -> bool:
    """Tell whether a loop is a `while True` without a break."""
    return isinstance(node.test, ast.Constant) and bool(node.test.value) and not has_jump(node.body, ast.Break)


def _targets(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    for root in body:
        for node in ast.walk(root):
            if isinstance(node, ast.Assign):
                yield from node.targets
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
                yield node.target


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _leaves(element)
    else:
        yield target
