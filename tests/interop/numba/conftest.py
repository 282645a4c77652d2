"""These tests are collected only where Numba is installed (`hatch run numba:test`)."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("numba") else ["*.py"]
