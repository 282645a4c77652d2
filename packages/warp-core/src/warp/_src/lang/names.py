"""What a name means outside the function: closure, globals, Python's builtins."""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_MISSING = object()


class Names:
    """The values of a function's free names, as they are now."""

    def __init__(self, function: Callable[..., Any], extra: Mapping[str, Any] | None = None) -> None:
        """Look at `function`; `extra` holds names of the defining scope that its closure lacks."""
        code: Any = getattr(function, "__code__", None)
        cells = getattr(function, "__closure__", None) or ()
        self._cells = dict(zip(code.co_freevars, cells, strict=True)) if code is not None else {}
        self._globals: Mapping[str, Any] = getattr(function, "__globals__", {})
        self._extra = extra or {}

    def find(self, name: str) -> Any:
        """Give the object that a name stands for; KeyError if there is none yet."""
        if name in self._cells:
            try:
                return self._cells[name].cell_contents
            except ValueError:
                raise KeyError(name) from None
        for scope in (self._globals, self._extra, vars(builtins)):
            value = scope.get(name, _MISSING)
            if value is not _MISSING:
                return value
        raise KeyError(name)

    def namespace(self) -> dict[str, Any]:
        """Give all names in one dict, for evaluating an expression while compiling."""
        filled = {}
        for name in self._cells:
            try:
                filled[name] = self.find(name)
            except KeyError:
                continue
        return {**self._extra, **self._globals, **filled}

    def similar(self, name: str, local: Iterable[str]) -> str:
        """Make a hint from names that are spelled like `name`."""
        return suggestion(name, [*local, *self._cells, *self._globals, *vars(builtins)])


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Make the hint "did you mean ...?", or an empty text."""
    visible = [candidate for candidate in candidates if not candidate.startswith(("_", "$"))]
    matches = difflib.get_close_matches(name, visible, n=1, cutoff=0.6)
    return f"did you mean '{matches[0]}'?" if matches else ""
