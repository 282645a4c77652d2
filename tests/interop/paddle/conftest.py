"""These tests are collected only where Paddle and the bridge to it are installed (`hatch run paddle:test`)."""

from __future__ import annotations

import importlib
import warnings
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("paddle") and find_spec("warp_interop_paddle") else ["*.py"]

if not collect_ignore_glob:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Paddle says which build tools it misses
        importlib.import_module("paddle")
