"""Compiles the C++ texts of many overloads into one object and calls them."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from tests.builtins.instances import scalar_type

from warp._src.build import LIBM, Compiler, build_object, libm_header
from warp._src.builtins.declare import Overload
from warp._src.emit.names import cpp_type
from warp._src.emit.prelude import prelude
from warp._src.types.scalars import bfloat16, is_scalar

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
BATCH = 200
ALL_KINDS = frozenset({"bfloat16", "half", "tensor", "rotation"})


class NativeCalls:
    """One function for each overload, which runs it over packed arguments and packs the results."""

    def __init__(self, overloads: Sequence[Overload], compiler: Compiler) -> None:
        texts = [function_text(f"call_{index}", overload) for index, overload in enumerate(overloads)]
        units = ["\n".join(texts[first : first + BATCH]) for first in range(0, len(texts), BATCH)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.libraries = list(pool.map(lambda unit: load(unit, compiler), units))
        self.overloads = {id(overload): index for index, overload in enumerate(overloads)}

    def run(self, overload: Overload, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Call an overload for each row of arguments; gives the tuples of results."""
        packed = b"".join(pack(type, arg) for row in rows for type, arg in zip(overload.param_types, row, strict=True))
        size = sum(result.size for result in overload.result_types)
        out = ctypes.create_string_buffer(len(rows) * size)
        index = self.overloads[id(overload)]
        self.libraries[index // BATCH][f"call_{index}"](packed, out, ctypes.c_longlong(len(rows)))
        return [_unpack(overload, out.raw[size * row : size * (row + 1)]) for row in range(len(rows))]


def _unpack(overload: Overload, data: bytes) -> tuple[Any, ...]:
    found, at = [], 0
    for result in overload.result_types:
        found.append(unpack(result, data[at : at + result.size]))
        at += result.size
    return tuple(found)


def unpack(type: Any, data: bytes) -> Any:
    scalar = scalar_type(type)
    stored = np.frombuffer(data, dtype=scalar.dtype)
    numbers = bfloat16.decode_array(stored) if scalar is bfloat16 else stored
    return numbers.reshape(() if is_scalar(type) else type.shape)


def pack(type: Any, value: Any) -> bytes:
    scalar = scalar_type(type)
    if scalar is bfloat16:
        return bfloat16.encode_array(np.asarray(value)).tobytes()
    return np.asarray(value, dtype=scalar.dtype).tobytes()


def function_text(name: str, overload: Overload) -> str:
    """Spell a C function over packed rows of arguments."""
    record, computed = overload.builtin, overload.computed
    parameters = zip(record.parameters, overload.param_types, computed.param_types, strict=True)
    words = {parameter: converted(f"{parameter}_", source, target) for parameter, source, target in parameters}
    words |= {
        variable.__name__: str(bound) if isinstance(bound, int) else cpp_type(bound)
        for variable, bound in computed.bindings.items()
    }
    words |= {f"ret{number}": f"ret{number}_" for number in range(len(overload.result_types))}
    reads = "".join(
        f"        {cpp_type(type)} {parameter}_; __builtin_memcpy(&{parameter}_, in, {type.size}); in += {type.size};\n"
        for parameter, type in zip(record.parameters, overload.param_types, strict=True)
    )
    declared = " ".join(f"{cpp_type(type)} ret{number}_;" for number, type in enumerate(computed.result_types))
    written = "".join(
        f"{cpp_type(target)} stored{number} = {converted(f'ret{number}_', source, target)}; "
        f"__builtin_memcpy(out, &stored{number}, {target.size}); out += {target.size};"
        for number, (source, target) in enumerate(zip(computed.result_types, overload.result_types, strict=True))
    )
    text = _PLACEHOLDER.sub(lambda match: words[match[1]], record.cpp)
    value = text if "{ret" in record.cpp else f"ret0_ = {text}"
    return (
        f"WP_EXPORT void {name}(const char* in, char* out, long long rows) {{\n"
        f"    for (long long row = 0; row < rows; ++row) {{\n{reads}"
        f"        {declared} {value};\n        {written}\n    }}\n}}\n"
    )


def converted(text: str, source: Any, target: Any) -> str:
    """Spell the conversion between a type and that in which a builtin computes."""
    if source == target:
        return text
    return f"wp::{'cast' if is_scalar(target) else 'cast_all'}<{cpp_type(target)}>({text})"


def load(text: str, compiler: Compiler) -> ctypes.CDLL:
    """Compile text that follows the prelude, or find it in the cache, load it and bind libm."""
    source = prelude(text, ALL_KINDS, libm_header()) + "\n" + text
    library = ctypes.CDLL(str(build_object(source, compiler=compiler)))
    symbols = (ctypes.CDLL("libm.so.6"), ctypes.CDLL(None))
    addresses = [_address(name, symbols) for name in LIBM]
    library.wp_bind((ctypes.c_void_p * len(addresses))(*addresses))
    return library


def _address(name: str, libraries: tuple[ctypes.CDLL, ...]) -> int:
    for library in libraries:
        if hasattr(library, name):
            address = ctypes.cast(library[name], ctypes.c_void_p).value
            assert address is not None
            return address
    raise AssertionError(f"no symbol {name}")
