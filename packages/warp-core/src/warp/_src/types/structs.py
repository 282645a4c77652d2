"""The decorator that turns a class with annotated fields into a struct type."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from warp._src.types.signature import canonical, is_generic, type_name
from warp._src.types.struct_type import StructInstance, StructType, Type
from warp.errors import KernelTypeError

__all__ = ["StructInstance", "StructType", "struct"]


def struct(cls: type[Any]) -> StructType:
    """Make a struct type of a class whose annotations name the fields; class attributes are defaults.

    Raises KernelTypeError for a field that is no kernel type or is generic, NameError for an unknown annotation.
    """
    if not isinstance(cls, type):
        raise TypeError(f"wp.struct decorates a class, got {cls!r}")
    caller = sys._getframe(1)
    annotations = inspect.get_annotations(cls, globals=caller.f_globals, locals=dict(caller.f_locals), eval_str=True)
    fields: dict[str, Type] = {}
    for field, annotation in annotations.items():
        fields[field] = _field_type(cls.__name__, field, annotation)
    if not fields:
        raise KernelTypeError(f"struct '{cls.__name__}' has no annotated fields")
    defaults = {field: vars(cls)[field] for field in fields if field in vars(cls)}
    key = f"{cls.__module__}.{cls.__qualname__}"
    made = StructType(cls.__name__, fields, key=key, defaults=defaults, doc=cls.__doc__, cls=cls)
    made.__module__ = cls.__module__
    made.__qualname__ = cls.__qualname__
    return made


def _field_type(struct_name: str, field: str, annotation: object) -> Type:
    try:
        t = canonical(annotation)
    except KernelTypeError as error:
        raise KernelTypeError(f"field '{field}' of struct '{struct_name}': {error}") from error
    if is_generic(t):
        raise KernelTypeError(f"field '{field}' of struct '{struct_name}' has the generic type {type_name(t)}")
    return t
