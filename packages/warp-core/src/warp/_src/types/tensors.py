"""The tensor types and the short names that users know them by."""

from __future__ import annotations

from typing import Any

from warp._src.types.matrices import Matrix, matrix, row_type
from warp._src.types.rotations import Quaternion, Transform, quaternion, transformation
from warp._src.types.scalars import SCALARS
from warp._src.types.tensor_base import ANY_LENGTH, Tensor
from warp._src.types.vectors import SUFFIXES, Vector, vector

__all__ = [
    "ANY_LENGTH",
    "SHORT_NAMES",
    "Matrix",
    "Quaternion",
    "Tensor",
    "Transform",
    "Vector",
    "matrix",
    "quaternion",
    "row_type",
    "transformation",
    "vector",
]


def _short_names() -> dict[str, type[Tensor]]:
    scalars: dict[str, Any] = {scalar.name: scalar for scalar in SCALARS}
    names: dict[str, type[Tensor]] = {}
    for suffix, name in SUFFIXES.items():
        for length in (2, 3, 4):
            names[f"vec{length}{suffix}"] = vector(length, scalars[name])
    for suffix in ("h", "f", "d"):
        scalar = scalars[SUFFIXES[suffix]]
        for size in (2, 3, 4):
            names[f"mat{size}{size}{suffix}"] = matrix((size, size), scalar)
        names[f"quat{suffix}"] = quaternion(scalar)
        names[f"transform{suffix}"] = transformation(scalar)
        names[f"spatial_vector{suffix}"] = vector(6, scalar)
        names[f"spatial_matrix{suffix}"] = matrix((6, 6), scalar)
    unsuffixed = {name[:-1]: tensor for name, tensor in names.items() if name.endswith("f")}
    return {**unsuffixed, **names}


SHORT_NAMES: dict[str, type[Tensor]] = _short_names()
"""Every short name of the public API, such as "vec3" (float32) and "mat22d"."""
