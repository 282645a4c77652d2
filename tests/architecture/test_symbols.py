"""What compiled objects may refer to: nothing. Everything reaches them through tables."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from warp._src import build

SHT_SYMTAB, SHT_DYNSYM, PT_TLS = 2, 11, 7
SHN_UNDEF, STT_TLS = 0, 6
COMPILERS = build.available_compilers()


@dataclass(frozen=True)
class Symbol:
    name: str
    section: int
    kind: int


def symbols_of(data: bytes) -> Iterator[Symbol]:
    """Yield the named symbols of a little-endian ELF64 object, those of its dynamic table included."""
    assert data[:6] == b"\x7fELF\x02\x01", "not a little-endian ELF64 object"
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * size) for index in range(count)]
    for _, kind, _, _, offset, length, link, _, _, entry in headers:
        if kind not in (SHT_SYMTAB, SHT_DYNSYM):
            continue
        strings = headers[link][4]
        for position in range(offset, offset + length, entry):
            name, info, _, section = struct.unpack_from("<IBBH", data, position)
            start = strings + name
            text = data[start : data.index(b"\0", start)].decode()
            if text:
                yield Symbol(text, section, info & 0xF)


def undefined_symbols(data: bytes) -> set[str]:
    """Return the names that an object expects others to define."""
    return {symbol.name for symbol in symbols_of(data) if symbol.section == SHN_UNDEF}


def has_thread_local_storage(data: bytes) -> bool:
    """Say whether an object has thread-local variables."""
    (table,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    kinds = [struct.unpack_from("<I", data, table + index * size)[0] for index in range(count)]
    return PT_TLS in kinds or any(symbol.kind == STT_TLS for symbol in symbols_of(data))


def check_object(data: bytes, allowed: frozenset[str] = frozenset()) -> None:
    """Fail if an object refers to anything not allowed, has thread-local storage or guarded statics."""
    assert undefined_symbols(data) <= allowed
    assert not has_thread_local_storage(data)
    assert not [symbol.name for symbol in symbols_of(data) if symbol.name.startswith("_ZGV")]


# Large copies, clears and comparisons, from which compilers make calls of memcpy, memset and memcmp.
KERNEL = """
WP_EXPORT const int wp_abi = WP_ABI_VERSION;
struct Big { double values[200]; };
struct Key { int a, b, c, d, e, f, g, h; };
WP_EXPORT bool same(const Key* x, const Key* y) {
    return x->a == y->a && x->b == y->b && x->c == y->c && x->d == y->d && x->e == y->e && x->f == y->f && x->g == y->g;
}
WP_EXPORT void wp_forward(wp_int64 begin, wp_int64 end, const wp_launch* launch, const void* args, const wp_worker*) {
    Big* __restrict out = ((Big* const*)args)[0];
    const Big* __restrict in = ((Big* const*)args)[1];
    for (wp_int64 i = begin; i < end; ++i) {
        Big zero = {};
        out[i] = in[i].values[0] > 0.0 ? in[i] : zero;
        out[i].values[1] += wp_m.sin(out[i].values[0]) + wp_m.round(out[i].values[2]);
        if (out[i].values[3] < 0.0) wp_raise_fault(launch, WP_FAULT_ASSERT, 1, i);
    }
}
WP_EXPORT void copy_bytes(char* __restrict to, const char* __restrict from, wp_int64 size) {
    for (wp_int64 i = 0; i < size; ++i) to[i] = from[i];
}
WP_EXPORT void clear_bytes(char* to, wp_int64 size) {
    for (wp_int64 i = 0; i < size; ++i) to[i] = 0;
}
"""


@pytest.mark.parametrize("mode", ["release", "debug"])
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.name)
def test_kernels_refer_to_nothing(compiler: build.Compiler, mode: str) -> None:
    source = build.native_text("abi.h") + build.native_text("freestanding.h") + build.libm_header() + KERNEL
    options = build.BuildOptions(mode="debug" if mode == "debug" else "release")
    check_object(build.compile_shared(source, compiler=compiler, options=options))


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.name)
def test_the_runtime_library_refers_to_nothing(compiler: build.Compiler) -> None:
    check_object(build.build_runtime_library(compiler).read_bytes())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_runtime_library_compiles_for_every_supported_machine(machine: str) -> None:
    data = build.compile_shared(
        build.native_text("runtime.cpp"),
        compiler=build.find_compiler("ziglang"),
        include_dirs=(build.NATIVE_DIRECTORY,),
        target=build.Platform("linux", machine),
    )
    check_object(data)
    assert struct.unpack_from("<H", data, 0x12) == ({"x86_64": 62, "aarch64": 183}[machine],)


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.name)
def test_the_check_sees_references_and_thread_locals(compiler: build.Compiler) -> None:
    options = build.BuildOptions(allow_undefined=True)
    reference = 'extern "C" double sinh(double); extern "C" double f(double x) { return sinh(x); }'
    assert undefined_symbols(build.compile_shared(reference, compiler=compiler, options=options)) == {"sinh"}
    thread_local = '__attribute__((visibility("hidden"))) thread_local int counter; int f() { return ++counter; }'
    assert has_thread_local_storage(build.compile_shared(thread_local, compiler=compiler, options=options))
