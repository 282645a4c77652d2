"""The source text of a function: its syntax tree, locations in it, and errors that show the line."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from warp._src.ir.core import Location
from warp.errors import CompileError, UnsupportedSyntaxError

_E = TypeVar("_E", bound=CompileError)


class SourceText:
    """The lines of one function, with their numbers in the user's file."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        """Read and parse `function`; `kind` is "kernel" or "function" and only appears in messages.

        Raises CompileError if there is no source to read.
        """
        code: Any = getattr(function, "__code__", None)
        self.kind = kind
        self.name = function.__name__
        self.file: str = code.co_filename if code is not None else "<unknown>"
        try:
            lines, first = inspect.getsourcelines(function)
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
            raise UnsupportedSyntaxError(f"the source of {self.kind} '{self.name}' is not complete") from error
        ast.increment_lineno(module, self.first - (2 if is_indented else 1))
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name == self.name:
                return node
        raise UnsupportedSyntaxError(
            f"'{self.name}' in {self.file}, line {self.first}, is no function defined with 'def'; "
            "kernels and functions cannot be lambdas or async"
        )

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


def _column(text: str, byte_offset: int) -> int:
    """Turn an offset in UTF-8 bytes, as syntax trees have them, into one in characters."""
    return len(text.encode()[:byte_offset].decode(errors="ignore"))
