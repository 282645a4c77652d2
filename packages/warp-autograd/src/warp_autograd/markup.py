"""Texts in the GraphViz language."""

from __future__ import annotations

from html import escape
from itertools import zip_longest

from warp_autograd.graph import Operation

_BOX = "gray85"
_NO_PORT = "<td></td>"


def quote(text: str) -> str:
    """Return a quoted string; line breaks become line breaks of the label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def operation_label(operation: Operation) -> str:
    """Return a table: the operation's name, below it a cell for each port, inputs on the left."""
    cells = [
        [f'<td port="{port}">{escape(name)}</td>' for port, name, is_output in operation.ports if is_output is side]
        for side in (False, True)
    ]
    rows = "".join(f"<tr>{left}{right}</tr>" for left, right in zip_longest(*cells, fillvalue=_NO_PORT))
    title = f'<tr><td colspan="2" bgcolor="{_BOX}"><b>{escape(operation.name)}</b></td></tr>'
    return f'<<table border="0" cellborder="1" cellspacing="0" cellpadding="4">{title}{rows}</table>>'
