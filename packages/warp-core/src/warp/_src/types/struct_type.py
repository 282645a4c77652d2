"""Struct types and their instances on the host."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np

from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.scalar_base import Scalar, type_of
from warp._src.types.tensor_base import Tensor
from warp.errors import ArgumentError

__all__ = ["StructInstance", "StructType", "Type"]


class StructType:
    """A record with named fields, laid out as a C compiler would; equal only to itself."""

    def __init__(
        self,
        name: str,
        fields: Mapping[str, Type],
        *,
        key: str | None = None,
        defaults: Mapping[str, object] | None = None,
        doc: str | None = None,
        cls: type[Any] | None = None,
    ) -> None:
        """Lay out `fields` in order; ValueError if there are none. `cls` gives instances its methods."""
        if not fields:
            raise ValueError(f"struct '{name}' has no fields")
        self.name = name
        self.key = key or name
        self.fields: dict[str, Type] = dict(fields)
        self.offsets: dict[str, int] = {}
        self.alignment = 1
        end = 0
        for field, t in self.fields.items():
            size, alignment = _layout(t)
            end = _round_up(end, alignment)
            self.offsets[field] = end
            end += size
            self.alignment = max(self.alignment, alignment)
        self.size = _round_up(end, self.alignment)
        self.defaults: dict[str, object] = dict(defaults or {})
        self.__doc__ = doc
        self.cls = cls
        self.__name__ = self.__qualname__ = name

    def __call__(self, *arguments: object, **keywords: object) -> StructInstance:
        """Make an instance; fields not given take their default, else zeros and null arrays."""
        if len(arguments) > len(self.fields):
            raise TypeError(f"struct '{self.name}' has {len(self.fields)} fields, got {len(arguments)} values")
        given = dict(zip(self.fields, arguments, strict=False))
        twice = given.keys() & keywords.keys()
        if twice:
            raise TypeError(f"struct '{self.name}' got field '{sorted(twice)[0]}' twice")
        instance = StructInstance(self, {field: zero(t) for field, t in self.fields.items()})
        for field, value in {**self.defaults, **given, **keywords}.items():
            setattr(instance, field, value)
        return instance

    def __repr__(self) -> str:
        return f"struct({self.name})"

    def coerce(self, value: object) -> StructInstance:
        """Return a copy of an instance of this struct; TypeError for anything else."""
        if not isinstance(value, StructInstance) or value._struct_type is not self:
            found = value._struct_type.name if isinstance(value, StructInstance) else type_of(value)
            raise TypeError(f"expected struct '{self.name}', got {found}")
        return value._copy()

    def pack(self, value: object) -> bytes:
        """Return the bytes of an instance: fields at their offsets, arrays as C descriptors."""
        if not isinstance(value, StructInstance) or value._struct_type is not self:
            return self.pack(self.coerce(value))
        packed = bytearray(self.size)
        for field, t in self.fields.items():
            offset = self.offsets[field]
            try:
                data = t.pack(value._values[field])  # type: ignore[union-attr]  # not an array here
            except (TypeError, ValueError) as error:
                raise ArgumentError(f"field '{field}' of struct '{self.name}': {error}") from error
            packed[offset : offset + len(data)] = data
        return bytes(packed)

    def numpy_dtype(self) -> np.dtype[Any]:
        """Return the structured NumPy dtype with the same offsets and size."""
        layout: Any = {
            "names": list(self.fields),
            "formats": [t.numpy_dtype() for t in self.fields.values()],  # type: ignore[union-attr]  # not an array here
            "offsets": list(self.offsets.values()),
            "itemsize": self.size,
        }
        dtype: np.dtype[Any] = np.dtype(layout)
        return dtype

    def to_numpy_value(self, value: object) -> np.void:
        """Return an instance as one element of a structured NumPy array."""
        element: np.void = np.frombuffer(self.pack(value), dtype=self.numpy_dtype())[0]
        return element

    def from_numpy_value(self, element: Any) -> StructInstance:
        """Return an instance from one element of a structured NumPy array.

        Raises ArgumentError if the fields differ, or for an array field that is not null: the array cannot be
        recovered from its descriptor.
        """
        names = getattr(getattr(element, "dtype", None), "names", None)
        if names != tuple(self.fields):
            raise ArgumentError(f"struct '{self.name}' has fields {tuple(self.fields)}, got {names}")
        instance = self()
        for field, t in self.fields.items():
            value = element[field]
            if isinstance(t, StructType):
                value = t.from_numpy_value(value)
            elif isinstance(t, (ArrayType, IndexedArrayType)):
                if any(bytes(value)):
                    raise ArgumentError(
                        f"field '{field}' of struct '{self.name}' is an array; a descriptor cannot be read back"
                    )
                value = None
            elif issubclass(t, Tensor):  # type: ignore[arg-type]  # neither struct nor array
                value = t.from_bytes(value.tobytes())  # type: ignore[union-attr]  # neither struct nor array
            else:
                value = t.decode(value.item())  # type: ignore[union-attr]  # neither struct nor array
            setattr(instance, field, value)
        return instance

    def from_bytes(self, data: bytes) -> StructInstance:
        """Return an instance from `size` bytes; ArgumentError as in `from_numpy_value`."""
        if len(data) != self.size:
            raise ValueError(f"struct '{self.name}' needs {self.size} bytes, got {len(data)}")
        return self.from_numpy_value(np.frombuffer(data, dtype=self.numpy_dtype())[0])


class StructInstance:
    """The fields of one struct; values are owned, arrays are referred to."""

    __slots__ = ("_struct_type", "_values")
    __hash__ = None  # type: ignore[assignment]  # mutable

    _struct_type: StructType
    _values: dict[str, Any]

    def __init__(self, struct_type: StructType, values: dict[str, Any]) -> None:
        object.__setattr__(self, "_struct_type", struct_type)
        object.__setattr__(self, "_values", values)

    def __getattr__(self, field: str) -> Any:
        if field in StructInstance.__slots__:
            raise AttributeError(field)
        if field in self._values:
            return self._values[field]
        # Not getattr_static, which would find what belongs to the class itself, such as __name__.
        classes = inspect.getmro(self._struct_type.cls) if self._struct_type.cls else ()
        member = next((vars(base)[field] for base in classes if field in vars(base)), None)
        if member is None:
            raise AttributeError(_no_field(self._struct_type, field))
        return member.__get__(self, self._struct_type.cls) if hasattr(member, "__get__") else member

    def __setattr__(self, field: str, value: object) -> None:
        t = self._struct_type.fields.get(field)
        if t is None:
            raise AttributeError(_no_field(self._struct_type, field))
        try:
            self._values[field] = t.coerce(value)  # type: ignore[union-attr]  # not an array here
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"field '{field}' of struct '{self._struct_type.name}' has type {t.name}: {error}"  # type: ignore[union-attr]  # not an array here
            ) from error

    def __delattr__(self, field: str) -> None:
        raise AttributeError(f"fields of struct '{self._struct_type.name}' cannot be deleted")

    def __dir__(self) -> list[str]:
        return list(self._struct_type.fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StructInstance):
            return NotImplemented
        if self._struct_type is not other._struct_type:
            return False
        return all(
            self._values[field] is other._values[field] if _is_array(t) else self._values[field] == other._values[field]
            for field, t in self._struct_type.fields.items()
        )

    def __repr__(self) -> str:
        shown = (f"{field}={self._show(field, value)}" for field, value in self._values.items())
        return f"{self._struct_type.name}({', '.join(shown)})"

    def _show(self, field: str, value: Any) -> str:
        t = self._struct_type.fields[field]
        if _is_array(t):
            return "None" if value is None else f"<{t.name}>"  # type: ignore[union-attr]  # not an array here
        return repr(value)

    def _copy(self) -> StructInstance:
        copies = {
            field: value if _is_array(t) else t.coerce(value)  # type: ignore[union-attr]  # not an array here
            for (field, value), t in zip(self._values.items(), self._struct_type.fields.values(), strict=True)
        }
        return StructInstance(self._struct_type, copies)

    def __copy__(self) -> StructInstance:
        return self._copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> StructInstance:
        return self._copy()


Type: TypeAlias = type[Scalar] | type[Tensor] | ArrayType | IndexedArrayType | StructType | TypeVar
"""Anything a value in a kernel can have as its type; typing.Any and TypeVars appear in generic signatures only."""


def zero(t: Type) -> Any:
    """Return the host value of a type that was given none: zeros, or None for arrays."""
    if isinstance(t, (ArrayType, IndexedArrayType)):
        return None
    if isinstance(t, StructType) or (isinstance(t, type) and issubclass(t, Tensor)):
        return t()
    return t.convert(0)  # type: ignore[union-attr]  # not an array here


def _is_array(t: Type) -> bool:
    return isinstance(t, (ArrayType, IndexedArrayType))


def _layout(t: Type) -> tuple[int, int]:
    return t.size, t.alignment  # type: ignore[union-attr]  # not an array here


def _round_up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _no_field(struct_type: StructType, field: str) -> str:
    return f"struct '{struct_type.name}' has no field '{field}'; its fields are {', '.join(struct_type.fields)}"
