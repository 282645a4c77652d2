"""What `python -m warp` can be asked: one module for each command."""

from __future__ import annotations
