"""Matching of generic types against concrete ones."""

from __future__ import annotations

from typing import Any, TypeVar

from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.matrices import Matrix, matrix
from warp._src.types.rotations import Quaternion, Transform, quaternion, transformation
from warp._src.types.signature import AnyFloat, AnyInt, AnyScalar, is_generic, is_tensor
from warp._src.types.struct_type import Type
from warp._src.types.tensor_base import ANY_LENGTH
from warp._src.types.vectors import Vector, vector

__all__ = ["substitute", "unify", "with_scalar"]

Bindings = dict[TypeVar, Any]

_INDEPENDENT = (AnyScalar, AnyFloat, AnyInt)


def unify(pattern: Any, actual: Any, bindings: Bindings) -> bool:
    """Tell whether `actual` is an instance of the generic type `pattern`.

    TypeVars seen for the first time are added to `bindings`; a TypeVar must mean one type throughout, and one of
    its constraints if it has any. `wp.Scalar`, `wp.Float` and `wp.Int` may mean another type each time. On False,
    `bindings` may hold what matched before the mismatch.
    """
    if pattern is Any:
        return True
    if isinstance(pattern, TypeVar):
        return _bind(pattern, actual, bindings)
    if isinstance(pattern, (ArrayType, IndexedArrayType)):
        if type(actual) is not type(pattern) or actual.ndim != pattern.ndim:
            return False
        return unify(pattern.dtype, actual.dtype, bindings)
    if is_tensor(pattern) and pattern.generic:
        return _unify_tensor(pattern, actual, bindings)
    return bool(pattern == actual)


def substitute(pattern: Any, bindings: Bindings) -> Type:
    """Replace the TypeVars in `pattern` by the types bound to them; unbound ones stay."""
    result: Any = pattern
    if isinstance(pattern, TypeVar):
        result = bindings.get(pattern, pattern)
    elif isinstance(pattern, (ArrayType, IndexedArrayType)):
        result = type(pattern)(substitute(pattern.dtype, bindings), pattern.ndim)
    elif is_tensor(pattern) and is_generic(pattern):
        result = with_scalar(pattern, substitute(pattern.scalar, bindings))
    made: Type = result
    return made


def _bind(variable: TypeVar, actual: Any, bindings: Bindings) -> bool:
    if variable.__constraints__ and actual not in variable.__constraints__:
        return False
    known = bindings.setdefault(variable, actual)
    return variable in _INDEPENDENT or bool(known == actual)


def _unify_tensor(pattern: Any, actual: Any, bindings: Bindings) -> bool:
    if not is_tensor(actual) or actual.category != pattern.category:
        return False
    shapes = zip(pattern.shape, actual.shape, strict=True)
    if not all(wanted in (ANY_LENGTH, found) for wanted, found in shapes):
        return False
    return unify(pattern.scalar, actual.scalar, bindings)


def with_scalar(pattern: Any, scalar: Any, shape: Any = None) -> Any:
    """Give a scalar or tensor type with another scalar type, vectors and matrices with another shape if given."""
    if not is_tensor(pattern):
        return scalar
    if issubclass(pattern, Vector):
        return vector((shape or pattern.shape)[0], scalar)
    if issubclass(pattern, Matrix):
        return matrix(shape or pattern.shape, scalar)
    if issubclass(pattern, Quaternion):
        return quaternion(scalar)
    return transformation(scalar) if issubclass(pattern, Transform) else pattern
