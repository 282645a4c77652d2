"""Names of struct values under the module where older programs look for them: `wp.codegen.StructInstance`."""

from __future__ import annotations

from warp._src.types import StructInstance as StructInstance
from warp._src.types import StructType as Struct

__all__ = ["Struct", "StructInstance"]
