"""Questions about types: what an annotation means, sizes, components, differentiability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.matrices import Matrix
from warp._src.types.rotations import Transform, quaternion
from warp._src.types.scalar_base import Scalar
from warp._src.types.scalars import (
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    is_float,
    is_scalar,
    scalar_from,
    uint8,
    uint16,
    uint32,
    uint64,
)
from warp._src.types.struct_type import StructType, Type
from warp._src.types.tensor_base import Tensor
from warp._src.types.vectors import vector
from warp.errors import KernelTypeError

__all__ = [
    "AnyFloat",
    "AnyInt",
    "AnyScalar",
    "align_of",
    "canonical",
    "component_type",
    "is_array",
    "is_differentiable",
    "is_generic",
    "is_tensor",
    "pack_value",
    "scalar_of",
    "size_of",
    "type_name",
]

AnyScalar = TypeVar(
    "AnyScalar", int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64
)
AnyFloat = TypeVar("AnyFloat", float16, bfloat16, float32, float64)
AnyInt = TypeVar("AnyInt", int8, int16, int32, int64, uint8, uint16, uint32, uint64)

Step: TypeAlias = int | str | None


def canonical(annotation: Any) -> Type:
    """Return the type an annotation or dtype means.

    float, int, bool and NumPy dtypes become scalar types; typing.Any and TypeVars are kept as they are. Raises
    KernelTypeError for anything that is not a type of a kernel value.
    """
    scalar = scalar_from(annotation)
    if scalar is not None:
        return scalar
    if not (
        annotation is Any
        or isinstance(annotation, (StructType, TypeVar))
        or is_array(annotation)
        or is_tensor(annotation)
    ):
        name = getattr(annotation, "__name__", "")
        is_sequence = name in ("array", "ndarray", "list", "tuple", "Tensor")
        shown = name if isinstance(annotation, type) else repr(annotation)
        hint = "; for an array write wp.array(dtype=float), with ndim=2 for two dimensions" if is_sequence else ""
        raise KernelTypeError(f"{shown} is not a type that kernels know{hint}")
    known: Type = annotation
    return known


def is_tensor(t: object) -> bool:
    """Tell whether `t` is a vector, matrix, quaternion or transform type."""
    return isinstance(t, type) and issubclass(t, Tensor) and hasattr(t, "scalar")


def is_array(t: object) -> bool:
    """Tell whether `t` is an array or indexed array type."""
    return isinstance(t, (ArrayType, IndexedArrayType))


def is_generic(t: Any) -> bool:
    """Tell whether `t` is typing.Any, a TypeVar, or contains one."""
    if t is Any or isinstance(t, TypeVar):
        return True
    if isinstance(t, (ArrayType, IndexedArrayType)):
        return is_generic(t.dtype)
    return is_tensor(t) and bool(t.generic)


def type_name(t: Any) -> str:
    """Return the name of a type as messages show it; sequences of types are joined with commas."""
    if isinstance(t, (tuple, list)):
        return ", ".join(type_name(part) for part in t)
    if t is Any:
        return "Any"
    if isinstance(t, TypeVar):
        return t.__name__.removeprefix("Any")
    return str(getattr(t, "name", None) or getattr(t, "__name__", t))


def size_of(t: Any) -> int:
    """Return the size of a value in bytes; KernelTypeError for a generic type."""
    return int(_concrete(t).size)


def align_of(t: Any) -> int:
    """Return the alignment of a value in bytes; KernelTypeError for a generic type."""
    return int(_concrete(t).alignment)


def scalar_of(t: Any) -> type[Scalar]:
    """Return the scalar type that a scalar, tensor or array of these consists of; KernelTypeError otherwise."""
    if is_scalar(t):
        return t
    if is_tensor(t) and is_scalar(t.scalar):
        scalar: type[Scalar] = t.scalar
        return scalar
    if isinstance(t, (ArrayType, IndexedArrayType)):
        return scalar_of(t.dtype)
    raise KernelTypeError(f"{type_name(t)} does not consist of scalars of one type")


def component_type(t: Any, path: Sequence[Step]) -> Type:
    """Return the type of the part of `t` that `path` leads to.

    A step is an int (a component or row known when compiling), None (one known when running), or a str (a field
    of a struct, "p" or "q" of a transform). Raises KernelTypeError for a step that does not exist.
    """
    current: Any = t
    for step in path:
        current = _field_type(current, step) if isinstance(step, str) else _item_type(current, step)
    part: Type = current
    return part


def is_differentiable(t: Any) -> bool:
    """Tell whether a value of type `t` carries a gradient: floats, and what holds them; array fields do not."""
    if isinstance(t, StructType):
        return any(is_differentiable(field) for field in t.fields.values())
    return is_float(t.scalar if is_tensor(t) else t)


def pack_value(t: Any, value: object) -> bytes:
    """Return the bytes of a host value as kernels expect them; TypeError or ValueError naming both types."""
    data: bytes = _concrete(t).pack(value)
    return data


def _concrete(t: Any) -> Any:
    if is_generic(t) and not is_array(t):
        raise KernelTypeError(f"{type_name(t)} is generic and has no layout")
    if not (is_scalar(t) or is_tensor(t) or is_array(t) or isinstance(t, StructType)):
        raise KernelTypeError(f"{t!r} is not a type that kernels know")
    return t


def _field_type(t: Any, field: str) -> Any:
    if isinstance(t, StructType):
        if field in t.fields:
            return t.fields[field]
        raise KernelTypeError(f"struct '{t.name}' has no field '{field}'; its fields are {', '.join(t.fields)}")
    if is_tensor(t) and issubclass(t, Transform) and field in ("p", "q"):
        return vector(3, t.scalar) if field == "p" else quaternion(t.scalar)
    raise KernelTypeError(f"{type_name(t)} has no field '{field}'")


def _item_type(t: Any, index: int | None) -> Any:
    if not is_tensor(t):
        raise KernelTypeError(f"{type_name(t)} has no components")
    if index is not None and not 0 <= index < t.shape[0]:
        raise KernelTypeError(f"component {index} is out of range for {t.name} of shape {t.shape}")
    return vector(t.shape[1], t.scalar) if issubclass(t, Matrix) else t.scalar
