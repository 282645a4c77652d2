"""Named groups of operations on a tape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warp.errors import ArgumentError, AutogradError


@dataclass(slots=True)
class Scope:
    """A group of operations, by their indices on the tape; `end` is past the last, None while it is open."""

    name: str
    begin: int
    end: int | None = None
    depth: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ScopeList:
    """The scopes of a tape in the order in which they were opened."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self._open: list[Scope] = []

    def begin(self, name: str, position: int, metadata: Mapping[str, Any] | None) -> None:
        """Open a scope."""
        if not isinstance(name, str):
            raise ArgumentError(f"scope_name must be a string, got {type(name).__qualname__}")
        scope = Scope(name, position, None, len(self._open), dict(metadata or {}))
        self.scopes.append(scope)
        self._open.append(scope)

    def end(self, position: int, remove_if_empty: bool) -> None:
        """Close the scope opened last; AutogradError if none is open."""
        if not self._open:
            raise AutogradError("record_scope_end() without a matching record_scope_begin()")
        scope = self._open.pop()
        scope.end = position
        if remove_if_empty and scope.begin == position:
            self.scopes.remove(scope)

    def clear(self) -> None:
        """Forget all scopes."""
        self.scopes.clear()
        self._open.clear()
