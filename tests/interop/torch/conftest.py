"""These tests are collected only where PyTorch and the bridge to it are installed (`hatch run torch:test`)."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") and find_spec("warp_interop_torch") else ["*.py"]
