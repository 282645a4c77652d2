"""C++ spelling of types, constants and names."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from typing import Any, Final

from warp._src.ir.core import Type
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.scalars import Scalar, bfloat16, bool_, float16, float32, is_float, is_scalar
from warp._src.types.signature import type_name
from warp._src.types.tensors import Tensor
from warp.errors import InternalCompilerError

_CPP_SCALARS: Final = {"float16": "wp::half", "float32": "float", "float64": "double", "bool": "bool"}
_TEMPLATES: Final = {"vector": "wp::vec", "matrix": "wp::mat", "quaternion": "wp::quat", "transform": "wp::transform"}
_KEYWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
        compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit
        export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
        nullptr operator or or_eq private protected public register reinterpret_cast return short signed sizeof
        static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
        typename union unsigned using virtual void volatile wchar_t while xor xor_eq
        """,
    )
)
_NOT_ASCII_WORD: Final = re.compile(r"[^0-9A-Za-z_]")
_NAME_LENGTH: Final = 24


def is_tensor(type: Type) -> bool:
    """Tell whether `type` is a vector, matrix, quaternion or transform."""
    return isinstance(type, _CLASS) and issubclass(type, Tensor)


def is_array(type: Type) -> bool:
    """Tell whether `type` is an array or an indexed array."""
    return isinstance(type, (ArrayType, IndexedArrayType))


def is_struct(type: Type) -> bool:
    """Tell whether `type` is a struct."""
    return not is_scalar(type) and not is_tensor(type) and hasattr(type, "fields")


def cpp_type(type: Type) -> str:
    """Spell a type: "float", "wp::vec<3, float>", "wp::struct_Particle_1f2e3d4c", "wp_array"."""
    if is_scalar(type):
        return _CPP_SCALARS.get(type.name, f"wp::{type.name}")
    if is_tensor(type):
        return tensor_name(type.category, type.shape, type.scalar)
    if isinstance(type, ArrayType):
        return "wp_array"
    if isinstance(type, IndexedArrayType):
        return "wp_indexed_array"
    if is_struct(type):
        return f"wp::{struct_name(type)}"
    raise InternalCompilerError(f"type {type!r} has no C++ name")


def tensor_name(category: str, shape: tuple[int, ...], scalar: Type) -> str:
    """Spell a tensor type from its parts."""
    sizes = "".join(f"{size}, " for size in shape) if category in ("vector", "matrix") else ""
    return f"{_TEMPLATES[category]}<{sizes}{cpp_type(scalar)}>"


def struct_name(type: Any) -> str:
    """Name a struct by its key and layout, so that equal definitions share one name."""
    return f"struct_{plain_name(type.key.rpartition('.')[2])}_{_digest(_layout(type))}"


def _layout(type: Type) -> str:
    if not is_struct(type):
        return type_name(type)
    fields = ", ".join(f"{name}: {_layout(field)}" for name, field in type.fields.items())
    return f"{type.key}{{{fields}}}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def field_name(name: str) -> str:
    """Spell a struct field; C++ keywords and letters outside ASCII need another name."""
    if name in _KEYWORDS or name.startswith("__"):
        return f"{name.strip('_')}_"
    if _NOT_ASCII_WORD.search(name):
        return f"{plain_name(name)}_{_digest(name)}"
    return name


def plain_name(name: str) -> str:
    """Reduce a Python name to what C++ allows inside a longer name."""
    return _NOT_ASCII_WORD.sub("", name).strip("_").replace("__", "_")[:_NAME_LENGTH].rstrip("_")


def cpp_constant(type: Type, value: bool | int | float) -> str:
    """Spell a scalar exactly; negative numbers come in parentheses, so that the text fits anywhere."""
    if type is bool_:
        return "true" if value else "false"
    if is_float(type):
        return _float_constant(type, float(value))
    return _integer_constant(type, int(value))


def _float_constant(type: type[Scalar], value: float) -> str:
    if type is bfloat16:
        return f"wp::bfloat16::from_bits({bfloat16.encode(value):#06x})"
    if type is float16:
        return f"wp::half::from_bits({int.from_bytes(struct.pack('<e', value), 'little'):#06x})"
    suffix = "f" if type is float32 else ""
    if math.isnan(value):
        text = f'__builtin_nan{suffix}("")'
    elif math.isinf(value):
        text = f"__builtin_inf{suffix}()"
    else:
        # The shortest decimal text of the double is also the right one for the float it holds.
        text = f"{abs(value)!r}{suffix}"
    return f"(-{text})" if math.copysign(1.0, value) < 0 and not math.isnan(value) else text


def _integer_constant(type: type[Scalar], value: int) -> str:
    suffix = {"int32": "", "uint32": "u", "int64": "ll", "uint64": "ull"}.get(type.name)
    if suffix is None:
        return f"((wp::{type.name}){value})"
    if type.kind == "i" and value == -(2 ** (8 * type.size - 1)):
        return f"({value + 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


_CLASS = type
