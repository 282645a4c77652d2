"""Builtins: each is declared once, and importing this package fills the registry."""

from __future__ import annotations

from warp._src.builtins.host import PUBLIC, call_on_host, make_public

__all__ = ["PUBLIC", "call_on_host", "make_public"]
