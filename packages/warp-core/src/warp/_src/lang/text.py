"""The source text of a function: its syntax tree, locations in it, and errors that show the line."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from warp._src.ir.core import Location
from warp.errors import CompileError, UnsupportedSyntaxError

_E = TypeVar("_E", bound=CompileError)
_LAMBDA = "<lambda>"


class SourceText:
    """The lines of one function, with their numbers in the user's file."""

    def __init__(self, function: Callable[..., Any], kind: str, text: str = "") -> None:
        """Read and parse `function`; `kind` is "kernel" or "function" and only appears in messages.

        Without `text` the source is looked up. Raises CompileError if there is none to read.
        """
        code: Any = getattr(function, "__code__", None)
        self.kind = kind
        self.name = function.__name__
        self.file: str = code.co_filename if code is not None else "<unknown>"
        self._code = code
        try:
            lines, first = (text.splitlines(), 1) if text else inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise CompileError(
                f"the source of {kind} '{self.name}' cannot be read (defined in {self.file}); kernels are compiled "
                "from their source, so define them in a file, in a notebook, or register the text with linecache"
            ) from error
        self.first = max(first, 1)
        self.lines = [line.rstrip("\r\n") for line in lines]
        self.tree = self._parse()

    def _parse(self) -> ast.FunctionDef:
        is_indented = self.lines[0][:1].isspace()
        text = "\n".join(["if True:", *self.lines] if is_indented else self.lines)
        try:
            module = ast.parse(text)
        except SyntaxError as error:
            if self.name == _LAMBDA:
                raise UnsupportedSyntaxError(
                    f"the lambda in {self.file}, line {self.first}, is part of a statement of several lines; give it a "
                    "name first, or define it with 'def'"
                ) from error
            raise UnsupportedSyntaxError(f"the source of {self.kind} '{self.name}' is not complete") from error
        ast.increment_lineno(module, self.first - (2 if is_indented else 1))
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name == self.name:
                return node
            if isinstance(node, ast.Lambda) and self.name == _LAMBDA and self._is_own(node):
                return _named(node)
        raise UnsupportedSyntaxError(
            f"'{self.name}' in {self.file}, line {self.first}, is no function defined with 'def'; "
            "kernels cannot be async functions or made by calls"
        )

    def _is_own(self, node: ast.Lambda) -> bool:
        """Tell whether a lambda in the source is the function itself: its code is the same."""
        own = self._code
        found: Any = eval(compile(ast.Expression(node), "", "eval"), {}).__code__
        if own.co_freevars:  # a lambda that is compiled alone takes its free names for globals
            names = {*own.co_names, *own.co_freevars}
            return names == set(found.co_names) and own.co_varnames == found.co_varnames
        traits = ("co_code", "co_consts", "co_names", "co_varnames", "co_argcount")
        return all(getattr(own, trait) == getattr(found, trait) for trait in traits)

    def location(self, node: ast.AST) -> Location:
        """Give the place of a node in the user's file."""
        line = getattr(node, "lineno", self.first)
        column = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", line) == line else None
        text = self._line(line)
        return Location(
            self.file,
            line,
            _column(text, column) + 1,
            (_column(text, end) if end is not None else len(text)) + 1,
            self.name,
        )

    def error(self, kind: type[_E], message: str, node: ast.AST, hint: str = "") -> _E:
        """Make an error whose message shows where `node` is: file, line, excerpt, caret, hint."""
        return kind(f"{message}\n{self.excerpt(self.location(node))}" + (f"\n  hint: {hint}" if hint else ""))

    def excerpt(self, location: Location) -> str:
        """Show one line of the source with the place underlined."""
        text = self._line(location.line)
        indent = len(text) - len(text.lstrip())
        marks = "^" * max(location.end_column - location.column, 1)
        return (
            f'  File "{location.file}", line {location.line}, in {self.kind} {self.name}\n'
            f"    {text.strip()}\n"
            f"    {' ' * max(location.column - 1 - indent, 0)}{marks}"
        )

    def _line(self, number: int) -> str:
        index = number - self.first
        return self.lines[index] if 0 <= index < len(self.lines) else ""


class _AnyFunction:
    """A function that is equal to any other, so that it takes no part in the key of a cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AnyFunction)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=1024)
def _shared_text(code: Any, file: str, name: str, kind: str, function: _AnyFunction) -> SourceText:  # noqa: ARG001
    return SourceText(function.function, kind)


def source_text(function: Callable[..., Any], kind: str) -> SourceText:
    """Give the source of a function; functions that one factory has made share it."""
    code: Any = getattr(function, "__code__", None)
    if code is None:
        return SourceText(function, kind)
    return _shared_text(code, code.co_filename, function.__name__, kind, _AnyFunction(function))


def _named(node: ast.Lambda) -> ast.FunctionDef:
    """Write a lambda as a function."""
    body = ast.copy_location(ast.Return(node.body), node.body)
    made = ast.FunctionDef(name=_LAMBDA, args=node.args, body=[body], decorator_list=[], returns=None)
    made.type_params = []  # type: ignore[attr-defined]  # since Python 3.12
    return ast.copy_location(made, node)


def _column(text: str, byte_offset: int) -> int:
    """Turn an offset in UTF-8 bytes, as syntax trees have them, into one in characters."""
    return len(text.encode()[:byte_offset].decode(errors="ignore"))
