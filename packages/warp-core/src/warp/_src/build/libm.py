"""The functions of the C library that kernels may call, and the C++ text through which they do.

Kernels reach them through a table that Python fills: a plain reference would bind to the oldest version of a symbol,
and would tie an object to one C library.
"""

from __future__ import annotations

from typing import Final

_UNARY: Final = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "erf", "erfc",
    "floor", "ceil", "trunc", "rint", "round",
)  # fmt: skip
_BINARY: Final = ("pow", "atan2", "fmod", "hypot")
_TERNARY: Final = ("fma",)
_OTHER: Final = {
    "printf": "int (*printf)(const char* format, ...);",
    "fflush": "int (*fflush)(void* stream);",
    "realloc": "void* (*realloc)(void* block, unsigned long size);",
}

LIBM: Final[tuple[str, ...]] = (
    *(name + suffix for name in (*_UNARY, *_BINARY, *_TERNARY) for suffix in ("", "f")),
    *_OTHER,
)
"""Names in the order of the table; the suffix f marks the float32 version."""


def libm_header() -> str:
    """Return the C++ text that declares the table `wp_m` and the exported `wp_bind` that fills it.

    A kernel calls `wp_m.sinf(x)`. The text depends on nothing and belongs in front of the code that uses it.
    """
    fields = "\n".join(f"    {_declaration(name)}" for name in LIBM)
    return f"""\
struct wp_libm {{
{fields}
}};
static wp_libm wp_m;
extern "C" __attribute__((visibility("default"))) void wp_bind(const void* const* table) {{
    const void** fields = (const void**)&wp_m;
    for (int i = 0; i < {len(LIBM)}; ++i) fields[i] = table[i];
}}
"""


def _declaration(name: str) -> str:
    if name in _OTHER:
        return _OTHER[name]
    is_double = name in (*_UNARY, *_BINARY, *_TERNARY)
    stem, scalar = (name, "double") if is_double else (name.removesuffix("f"), "float")
    arity = 1 if stem in _UNARY else 2 if stem in _BINARY else 3
    return f"{scalar} (*{name})({', '.join([scalar] * arity)});"
