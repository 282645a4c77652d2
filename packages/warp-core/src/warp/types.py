"""Types of values and the factories that make them: `wp.types.vector(length=5, dtype=wp.float64)`."""

from __future__ import annotations

from warp._src.array.array import array as array
from warp._src.array.indexed import indexedarray as indexedarray
from warp._src.types import SHORT_NAMES as _SHORT_NAMES
from warp._src.types import AnyFloat as Float
from warp._src.types import AnyInt as Int
from warp._src.types import AnyScalar as Scalar
from warp._src.types import ArrayType as ArrayType
from warp._src.types import IndexedArrayType as IndexedArrayType
from warp._src.types import bfloat16 as bfloat16
from warp._src.types import bool_ as bool
from warp._src.types import float16 as float16
from warp._src.types import float32 as float32
from warp._src.types import float64 as float64
from warp._src.types import int8 as int8
from warp._src.types import int16 as int16
from warp._src.types import int32 as int32
from warp._src.types import int64 as int64
from warp._src.types import matrix as matrix
from warp._src.types import quaternion as quaternion
from warp._src.types import transformation as transformation
from warp._src.types import type_name as type_name
from warp._src.types import uint8 as uint8
from warp._src.types import uint16 as uint16
from warp._src.types import uint32 as uint32
from warp._src.types import uint64 as uint64
from warp._src.types import vector as vector

globals().update(_SHORT_NAMES)

__all__ = [
    "ArrayType",
    "Float",
    "IndexedArrayType",
    "Int",
    "Scalar",
    "array",
    "bfloat16",
    "bool",
    "float16",
    "float32",
    "float64",
    "indexedarray",
    "int8",
    "int16",
    "int32",
    "int64",
    "matrix",
    "quaternion",
    "transformation",
    "type_name",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "vector",
]
