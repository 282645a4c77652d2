"""Translation of statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from warp._src.ir.core import Value
from warp._src.lang import loops
from warp._src.lang.analysis import always_exits
from warp._src.lang.assign import annotated, assign, augmented
from warp._src.lang.context import Context, Iteration, Step
from warp._src.lang.expr import condition
from warp._src.lang.operands import Known, Operand, spelled
from warp._src.lang.scope import BREAK, CONTINUE, RESULT, RETURN, YES, Branch, inside, join
from warp._src.types.scalars import bool_
from warp.errors import KernelTypeError

__all__ = ["run"]


def run(context: Context, steps: Sequence[Step], is_last: bool = False) -> None:
    """Translate statements in order; `is_last` says that nothing follows them in the function.

    What follows a conditional break, continue or return becomes the other side of that `if`.
    """
    for index, step in enumerate(steps):
        if context.scope.has_exited:
            return
        flags = context.scope.open_flags
        if flags:
            _guard(context, flags, steps[index:], is_last)
            return
        rest = steps[index + 1 :]
        if isinstance(step, ast.If):
            if _if(context, step, rest, is_last):
                return
        elif isinstance(step, Iteration):
            loops.iterate(context, step)
        else:
            _statement(context, step)


def _statement(context: Context, node: ast.stmt) -> None:
    rule = _RULES.get(type(node))
    if rule is None:
        what, hint = _REFUSED.get(type(node), (f"{type(node).__name__} statements", ""))
        raise context.unsupported(f"{what} cannot be used in kernels", node, hint)
    with context.at(node):
        rule(context, node)


def _guard(context: Context, flags: Sequence[Value], rest: Sequence[Step], is_last: bool) -> None:
    """Run the rest of a block only if no break, continue or return has happened."""
    first = rest[0]
    node = first.node if isinstance(first, Iteration) else first
    last = rest[-1]
    with context.at(node):
        exited = flags[0]
        for flag in flags[1:]:
            exited = context.value(context.call("logical_or", [exited, flag], node), node)
        skipped, remaining = Branch(context.scope.copy(is_exited=True)), Branch(context.scope.copy())
        if len(flags) == 1:
            name = next(name for name, operand in skipped.scope.names.items() if operand is exited)
            skipped.scope.names[name] = YES
        for name in (RETURN, BREAK, CONTINUE):
            if isinstance(remaining.scope.names[name], Value):
                remaining.scope.names[name] = Known(False)
        with inside(context, remaining):
            context.hooks.run(context, rest, is_last)
        keep = _live_after(context, last)
        join(context, exited, skipped, remaining, node, keep, is_last)


def _live_after(context: Context, step: Step) -> frozenset[str]:
    node = step.node if isinstance(step, Iteration) else step
    live = context.liveness.after.get(node, frozenset())
    if isinstance(step, Iteration):
        live |= context.liveness.head.get(node, frozenset())
    return live | context.live_at_exit


def _if(context: Context, node: ast.If, rest: Sequence[Step], is_last: bool) -> bool:
    """Translate an `if`; True means that the rest of the block went into one of its branches."""
    with context.at(node):
        test = condition(context, node.test)
    if isinstance(test, bool):
        run(context, node.body if test else node.orelse, is_last and not rest)
        return False
    is_then_left, is_else_left = always_exits(node.body), always_exits(node.orelse)
    takes_rest = bool(rest) and is_then_left is not is_else_left
    is_end = is_last and (takes_rest or not rest)
    body: list[Step] = [*node.body, *(rest if takes_rest and is_else_left else ())]
    orelse: list[Step] = [*node.orelse, *(rest if takes_rest and is_then_left else ())]
    branches = (Branch(context.scope.copy()), Branch(context.scope.copy()))
    for branch, steps in zip(branches, (body, orelse), strict=True):
        with inside(context, branch):
            run(context, steps, is_end)
    keep = _live_after(context, rest[-1] if takes_rest else node)
    join(context, test, *branches, node, keep, is_end)
    return takes_rest


# -- simple statements ---------------------------------------------------------------------------------


def _expression(context: Context, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        context.evaluate(node.value)


def _pass(context: Context, node: ast.Pass) -> None:
    """Do nothing, as the statement says."""


def _break(context: Context, node: ast.Break) -> None:
    _leave(context, node, BREAK, "break")


def _continue(context: Context, node: ast.Continue) -> None:
    _leave(context, node, CONTINUE, "continue")


def _leave(context: Context, node: ast.stmt, flag: str, word: str) -> None:
    if context.loop_depth == 0:
        raise context.unsupported(f"'{word}' outside a loop", node)
    context.scope.names[flag] = YES


def _return(context: Context, node: ast.Return) -> None:
    operands: tuple[Operand, ...] = ()
    if node.value is not None:
        operand = context.evaluate(node.value)
        operands = operand if isinstance(operand, tuple) else (operand,)
        if isinstance(operand, Known) and operand.object is None:
            operands = ()
    if context.is_kernel and operands:
        raise context.unsupported("a kernel cannot return a value", node, "write the result to an array parameter")
    if context.gradient_params is not None and operands:
        raise context.unsupported("a custom gradient returns nothing", node, "add to wp.adjoint[...] instead")
    _check_count(context, node, len(operands))
    for index, operand in enumerate(operands):
        context.scope.names[f"{RESULT}{index}"] = _result(context, node, operand, index)
    context.scope.names[RETURN] = YES


def _check_count(context: Context, node: ast.Return, count: int) -> None:
    expected = context.result_count
    if expected is None:
        context.result_count = count
    elif expected != count:
        raise context.error(
            KernelTypeError,
            f"this return gives {count} values, but {expected} are expected",
            node,
            "every return of a function gives the same number of values",
        )


def _result(context: Context, node: ast.Return, operand: Operand, index: int) -> Operand:
    if context.result_types is not None:
        what = "the return value" if len(context.result_types) == 1 else f"return value {index}"
        return context.converted(operand, context.result_types[index], node.value or node, what)
    if isinstance(operand, tuple) or (isinstance(operand, Known) and not isinstance(operand.object, bool)):
        raise context.error(KernelTypeError, f"{spelled(operand)} cannot be returned", node)
    return operand


def _assert(context: Context, node: ast.Assert) -> None:
    test = condition(context, node.test)
    value = context.builder.const(bool_, test) if isinstance(test, bool) else test
    context.call("assert_", [value], node, (node.lineno,))


_RULES: dict[type[ast.stmt], Callable[[Context, Any], None]] = {
    ast.Assign: assign,
    ast.AugAssign: augmented,
    ast.AnnAssign: annotated,
    ast.Expr: _expression,
    ast.For: loops.for_loop,
    ast.While: loops.while_loop,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Assert: _assert,
    ast.Pass: _pass,
}

_REFUSED: dict[type[ast.stmt], tuple[str, str]] = {
    ast.FunctionDef: ("nested functions", "define it outside and decorate it with @wp.func"),
    ast.AsyncFunctionDef: ("nested functions", "define it outside and decorate it with @wp.func"),
    ast.ClassDef: ("classes", "define a struct outside with @wp.struct"),
    ast.Try: ("try statements", "kernels raise no exceptions; test with 'if'"),
    ast.Raise: ("raise statements", "use an assertion"),
    ast.With: ("with statements", ""),
    ast.AsyncWith: ("with statements", ""),
    ast.AsyncFor: ("async loops", ""),
    ast.Global: ("global statements", "write to an array parameter"),
    ast.Nonlocal: ("nonlocal statements", "write to an array parameter"),
    ast.Delete: ("del statements", ""),
    ast.Import: ("import statements", "import outside the kernel"),
    ast.ImportFrom: ("import statements", "import outside the kernel"),
    ast.Match: ("match statements", "write if and elif"),
}
