"""These tests are collected only where JAX and the bridge to it are installed (`hatch run jax:test`)."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jax") and find_spec("warp_interop_jax") else ["*.py"]
