"""What the text of a native snippet says about its arrays; where it is not plain, the worst is assumed."""

from __future__ import annotations

import re

# After an element: an assignment, an increment, or a step further into it.
_CHANGE = re.compile(r"\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--|\[|\(|\.)")
_TAKEN = re.compile(r"(?:&|\+\+|--)\s*$|\b(?:atomic\w*|swap)\s*\([^;()]*$")


def uses(text: str | None, name: str) -> bool:
    """Tell whether a snippet mentions a name."""
    return text is not None and re.search(rf"\b{re.escape(name)}\b", text) is not None


def only_reads(text: str, name: str) -> bool:
    """Tell whether all that a snippet does with an array is to read elements: `x[i]` or `x(i, j)`."""
    for found in re.finditer(rf"\b{re.escape(name)}\b", text):
        end = _end_of_indices(text, found.end())
        if end is None or _CHANGE.match(text, end) or _TAKEN.search(text, 0, found.start()):
            return False
    return True


def _end_of_indices(text: str, start: int) -> int | None:
    """Position after the brackets that follow, or None if there are none."""
    while start < len(text) and text[start].isspace():
        start += 1
    if start == len(text) or text[start] not in "[(":
        return None
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] in "[(") - (text[position] in ")]")
        if depth == 0:
            return position + 1
    return None
