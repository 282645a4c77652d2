"""Text: the IR of one kernel as one C++ translation unit."""

from __future__ import annotations
