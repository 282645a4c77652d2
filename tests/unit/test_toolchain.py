from __future__ import annotations

import ctypes
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from warp import config
from warp._src import build
from warp._src.build import flags, toolchain
from warp._src.build.flags import BuildOptions, Platform, compiler_flags
from warp._src.build.libm import LIBM, libm_header
from warp._src.build.toolchain import Compiler, available_compilers, compile_shared, find_compiler
from warp._src.runtime.cpu import Executor, launch_flags, pack_launch
from warp.errors import ToolchainError

COMPILERS = available_compilers()
HEADER = build.native_text("abi.h") + build.native_text("freestanding.h") + libm_header()
HEADER += "WP_EXPORT const int wp_abi = WP_ABI_VERSION;\n"
each_compiler = pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.name)


def load(
    source: str, compiler: Compiler, directory: Path, options: BuildOptions = flags.DEFAULT_OPTIONS
) -> ctypes.CDLL:
    path = directory / "object.so"
    path.write_bytes(compile_shared(source, compiler=compiler, options=options))
    return ctypes.CDLL(str(path))


def test_two_compilers_are_there_to_be_tested() -> None:
    assert len(COMPILERS) >= 2


@each_compiler
@pytest.mark.parametrize("mode", ["release", "debug"])
def test_each_compiler_makes_a_loadable_object(compiler: Compiler, mode: flags.Mode, tmp_path: Path) -> None:
    library = load('extern "C" int answer() { return 42; }', compiler, tmp_path, BuildOptions(mode=mode))
    assert library.answer() == 42


@each_compiler
def test_a_refusal_carries_the_log(compiler: Compiler) -> None:
    with pytest.raises(ToolchainError, match="undeclared_name") as caught:
        compile_shared("int f() { return undeclared_name; }", compiler=compiler)
    assert "undeclared_name" in caught.value.log


@each_compiler
def test_include_directories_reach_the_compiler(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "number.h").write_text("#define NUMBER 7\n")
    data = compile_shared(
        '#include "number.h"\nint f() { return NUMBER; }', compiler=compiler, include_dirs=(tmp_path,)
    )
    assert len(data) > 100


@each_compiler
def test_wrap_around_aliasing_and_contraction_are_as_promised(compiler: Compiler, tmp_path: Path) -> None:
    library = load(
        """
        extern "C" int wraps(int a) { return a + 1 < a; }
        extern "C" int punned(int* i, float* f) { *i = 1; *f = 2.0f; return *i; }
        extern "C" double product_sum(double a, double b, double c) { return a * b + c; }
        """,
        compiler,
        tmp_path,
    )
    assert library.wraps(2**31 - 1) == 1
    memory = ctypes.c_int(0)
    assert library.punned(ctypes.byref(memory), ctypes.byref(memory)) == 0x40000000
    library.product_sum.restype = ctypes.c_double
    library.product_sum.argtypes = (ctypes.c_double,) * 3
    # A fused multiply-add would give 2**-60.
    assert library.product_sum(1.0 + 2.0**-30, 1.0 + 2.0**-30, -(1.0 + 2.0**-29)) == 0.0


@each_compiler
def test_memory_functions_are_right(compiler: Compiler, tmp_path: Path) -> None:
    wrappers = """
        extern "C" void copy(void* t, const void* s, wp_size n) { wp_memcpy(t, s, n); }
        extern "C" void move(void* t, const void* s, wp_size n) { wp_memmove(t, s, n); }
        extern "C" void fill(void* t, int v, wp_size n) { wp_memset(t, v, n); }
        extern "C" int compare(const void* a, const void* b, wp_size n) { return wp_memcmp(a, b, n); }
    """
    library = load(build.native_text("freestanding.h") + wrappers, compiler, tmp_path)
    generator = np.random.default_rng(1)
    for size in (0, 1, 15, 16, 17, 63, 64, 65, 200):
        for source, target in ((0, 300), (3, 300), (0, 1), (1, 0), (0, 17), (17, 0), (5, 70), (70, 5)):
            memory = generator.integers(0, 256, 600, dtype=np.uint8)
            expected = memory.copy()
            expected[target : target + size] = memory[source : source + size].copy()
            is_apart = abs(target - source) >= size
            base = memory.ctypes.data
            function = library.copy if is_apart else library.move
            arguments = ctypes.c_void_p(base + target), ctypes.c_void_p(base + source), ctypes.c_size_t(size)
            function(*arguments)
            np.testing.assert_array_equal(memory, expected)
            assert library.compare(*arguments) == 0 or not is_apart
        filled = np.zeros(600, np.uint8)
        library.fill(ctypes.c_void_p(filled.ctypes.data + 3), 0x1A5, ctypes.c_size_t(size))
        assert (filled[3 : 3 + size] == 0xA5).all()
        assert filled.sum() == size * 0xA5
    low, high = ctypes.create_string_buffer(b"aa\x7f"), ctypes.create_string_buffer(b"aa\x80")
    assert library.compare(low, high, 3) < 0 < library.compare(high, low, 3)


@each_compiler
def test_kernels_reach_libm_through_the_table(compiler: Compiler, tmp_path: Path) -> None:
    names = [name for name in LIBM if name in vars(math) or name.removesuffix("f") in vars(math)]
    calls = {}
    for name in names:
        scalar = "double" if name in vars(math) else "float"
        reference = getattr(math, name if scalar == "double" else name.removesuffix("f"))
        arity = 2 if reference in (math.pow, math.atan2, math.fmod, math.hypot) else 1
        calls[name] = (reference, (0.75, 0.5)[:arity])
    text = (
        HEADER + "WP_EXPORT void wp_forward(wp_int64, wp_int64, const wp_launch*, const void* args, const wp_worker*) {"
    )
    text += "double* out = *(double* const*)args;"
    for position, (name, (_, arguments)) in enumerate(calls.items()):
        text += f"out[{position}] = wp_m.{name}({', '.join(map(str, arguments))});"
    executor = Executor(build.build_runtime_library(compiler), LIBM)
    path = tmp_path / "libm.so"
    path.write_bytes(compile_shared(text + "}", compiler=compiler))
    out = np.zeros(len(calls))
    forward = executor.load(path).forward
    assert forward is not None
    executor.run(forward, pack_launch((1,)), out.ctypes.data.to_bytes(8, "little"), launch_flags())
    expected = [reference(*arguments) for reference, arguments in calls.values() if reference is not math.acosh]
    found = [value for value, (reference, _) in zip(out, calls.values(), strict=True) if reference is not math.acosh]
    assert len(found) > 40
    np.testing.assert_allclose(found, expected, rtol=2e-7)


def test_the_compiler_is_chosen_by_name_config_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = COMPILERS[0], COMPILERS[-1]
    monkeypatch.delenv("WARP_CXX", raising=False)
    monkeypatch.setattr(config, "cpu_compiler", None)
    assert find_compiler() == first
    monkeypatch.setenv("WARP_CXX", second.name)
    assert find_compiler() == second
    monkeypatch.setattr(config, "cpu_compiler", first.name)
    assert find_compiler() == first
    assert find_compiler(second.name) == second


def test_a_path_or_a_command_names_a_compiler(tmp_path: Path) -> None:
    wrapper = tmp_path / "my own clang++"
    wrapper.write_text('#!/bin/sh\nexec c++ "$@"\n')
    wrapper.chmod(0o755)
    found = find_compiler(str(wrapper))
    assert found.command == (str(wrapper),)
    assert found.family == "clang"
    command = find_compiler(f"{sys.executable} -m ziglang c++")
    assert command.family == "zig"
    assert command.command == (sys.executable, "-m", "ziglang", "c++")


def test_a_changed_compiler_has_another_identity(tmp_path: Path) -> None:
    program = tmp_path / "g++"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    before = toolchain._identity_of(program)
    program.write_text("#!/bin/sh\n# upgraded\n")
    assert toolchain._identity_of(program) != before


def test_without_a_compiler_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WARP_CXX", raising=False)
    monkeypatch.setattr(config, "cpu_compiler", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda _: None)
    toolchain._find.cache_clear()
    try:
        with pytest.raises(ToolchainError, match=r"pip install warp-core\[compiler\]"):
            find_compiler()
        with pytest.raises(ToolchainError, match="'g\\+\\+' is not installed"):
            find_compiler("g++")
        with pytest.raises(ToolchainError, match="does not exist"):
            find_compiler("/nowhere/clang++")
    finally:
        toolchain._find.cache_clear()


def test_finding_a_compiler_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **_: object) -> None:
        raise AssertionError(f"started {arguments}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    toolchain._find.cache_clear()
    assert find_compiler().name
    assert available_compilers()


def test_windows_is_refused_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    flags.host_platform.cache_clear()
    try:
        with pytest.raises(ToolchainError, match="Windows"):
            find_compiler()
    finally:
        flags.host_platform.cache_clear()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("family", ["zig", "clang", "gcc"])
def test_every_supported_pair_has_flags(family: flags.Family, machine: str) -> None:
    march = "x86-64-v3" if machine == "x86_64" else "armv8-a"
    chosen = compiler_flags(family, Platform("linux", machine), BuildOptions(march=march))
    assert {"-nostdlib", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-finite-loops"} <= set(chosen)
    assert ("-mno-outline-atomics" in chosen) == (machine == "aarch64")
    assert ("-O3" if family == "gcc" else "-O2") in chosen
    assert (f"-mcpu={march.replace('-', '_')}" if family == "zig" else f"-march={march}") in chosen


@pytest.mark.parametrize(
    ("features", "level"),
    [
        ("fpu sse2", ""),
        ("sse4_1 sse4_2 ssse3 popcnt cx16", "x86-64-v2"),
        ("sse4_1 sse4_2 ssse3 popcnt cx16 avx avx2 bmi1 bmi2 f16c fma abm movbe avx512f", "x86-64-v3"),
    ],
)
def test_the_instruction_set_is_read_from_the_system(features: str, level: str, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {features}\nbugs\t\t:\n")
    assert flags._level_of(cpuinfo) == level
    assert flags._level_of(tmp_path / "missing") == ""
