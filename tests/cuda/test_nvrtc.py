"""Every builtin and every kernel of the tests, as CUDA text, compiles to code for a GPU; none is needed for that."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.builtins.instances import EVERY, instances, records
from tests.builtins.native_calls import ALL_KINDS, function_text
from tests.cuda import batches
from tests.cuda.kernels import CASES

import warp as wp
from warp._src.build import (
    NvrtcOptions,
    build_cubin,
    build_image,
    cache_entries,
    compile_cubin,
    compile_ptx,
    nvrtc_version,
    supported_architectures,
)
from warp._src.builtins.declare import Overload
from warp._src.emit import cuda
from warp._src.emit.options import EmitOptions
from warp._src.emit.prelude import prelude
from warp.errors import CompileError, ToolchainError

ARCHITECTURE = "sm_80"
QUICK = NvrtcOptions(fast_compile=True)
ROOT = Path(__file__).resolve().parents[2]
TRIVIAL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = sin(x[1]); }'
OVERLOADS = [overload for record in records() for overload in instances(record, EVERY)]
BATCH = 160
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("autograd", "device", "unit")
    for path in (ROOT / "tests" / folder).glob("*.py")
    if "\n@wp.kernel" in path.read_text(encoding="utf-8")
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let tests of all texts compile them for the architectures that the run asks for."""
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", metafunc.config.getoption("--arch") or [ARCHITECTURE])


def is_code(cubin: bytes) -> bool:
    return cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize("first", range(0, len(OVERLOADS), BATCH))
def test_every_overload_of_every_builtin_compiles(target: str, first: int) -> None:
    assert is_code(build_cubin(builtins_text(OVERLOADS[first : first + BATCH]), target, QUICK))


def builtins_text(overloads: Sequence[Overload]) -> str:
    """Spell a kernel for each overload."""
    functions = [function_text(f"call_{index}", overload) for index, overload in enumerate(overloads)]
    text = "\n".join(functions).replace("WP_EXPORT void", 'extern "C" __global__ void')
    return f"{prelude(text, ALL_KINDS, '', 'cuda')}\n{text}"


@pytest.mark.parametrize("debug", [False, True])
def test_every_operation_compiles(target: str, debug: bool) -> None:
    units = [unit for case in CASES for unit in batches.units_of(case.kernel)]
    assert is_code(build_cubin(batches.cuda_text(units, debug=debug), target, QUICK))


@wp.func_native(
    "__shared__ int sums[32]; sums[threadIdx.x & 31] = i; __syncthreads(); atomicAdd(out, sums[0] + __popc(i));"
)
def reduce_in_block(i: wp.int32, out: wp.array(dtype=wp.int32)): ...


@wp.kernel
def uses_the_block(out: wp.array(dtype=wp.int32)):
    reduce_in_block(wp.tid(), out)


def test_snippets_may_use_what_only_a_gpu_has(target: str) -> None:
    assert is_code(build_cubin(batches.cuda_text(batches.units_of(uses_the_block)), target, QUICK))


@pytest.mark.parametrize("module", MODULES)
def test_every_kernel_of_the_tests_compiles(target: str, module: str) -> None:
    importlib.import_module(module)
    units = []
    for kernel in sorted(wp.get_module(module).kernels, key=lambda kernel: kernel.key):
        if not kernel.is_generic:
            with contextlib.suppress(CompileError):  # there are kernels that are meant to be refused
                units += batches.units_of(kernel)
    assert is_code(build_cubin(batches.cuda_text(units), target, QUICK))


def test_one_text_compiles_for_every_architecture() -> None:
    (unit, *_) = batches.units_of(CASES[0].kernel)
    text = batches.cuda_text([unit])
    known = [name for name in supported_architectures() if int(name.removeprefix("sm_")) >= 75]
    assert {"sm_75", "sm_80", "sm_90"} <= set(known)
    for architecture in known:
        assert is_code(compile_cubin(text, architecture, QUICK))
    assert nvrtc_version() >= (12, 0)


@pytest.mark.parametrize("file", ["transfers.cu", "conditions.cu"])
def test_the_runtimes_own_kernels_compile(target: str, file: str) -> None:
    assert is_code(compile_cubin(cuda.own_kernels_text(file), target, QUICK))


def test_launch_bounds_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    (unit, *_) = batches.units_of(CASES[0].kernel)
    text = cuda.emit_kernel(unit.function, EmitOptions(libm="", entry="wp_forward", launch_bounds=(128, 2)))
    assert b".maxntid" in compile_ptx(text, "compute_80", QUICK)
    assert is_code(build_image(text, 80, QUICK))
    assert build_image(text, 999, QUICK).lstrip().startswith(b"//")  # a newer device gets PTX
    with pytest.raises(ToolchainError, match="cannot compile for sm_10"):
        build_image(text, 10, QUICK)


def test_what_sets_a_condition_is_left_to_the_driver() -> None:
    """A function that nobody provides is refused; this one is linked by the driver, like printf."""
    code = compile_cubin(cuda.own_kernels_text("conditions.cu"), ARCHITECTURE, QUICK)
    assert b"cudaGraphSetConditional" in code
    unknown = cuda.own_kernels_text("conditions.cu").replace("cudaGraphSetConditional", "cudaGraphSetAnything")
    with pytest.raises(ToolchainError, match="Unresolved extern function 'cudaGraphSetAnything'"):
        compile_cubin(unknown, ARCHITECTURE, QUICK)


def test_options_change_the_code() -> None:
    text = 'extern "C" __global__ void k(float* x) { x[0] = x[0] * x[1] + x[2]; }'
    fused = compile_ptx(text, "compute_80")
    apart = compile_ptx(text, "compute_80", NvrtcOptions(fmad=False))
    assert b"fma" in fused and b"fma" not in apart
    assert b".loc" in compile_ptx(text, "compute_80", NvrtcOptions(mode="debug"))
    assert not fused.endswith(b"\0")


def test_the_log_is_part_of_the_error() -> None:
    with pytest.raises(ToolchainError, match=r"refused(.|\n)*nowhere") as caught:
        compile_cubin("int f() { return nowhere; }", ARCHITECTURE)
    assert "nowhere" in caught.value.log


@pytest.mark.parametrize("architecture", ["cpu", "90", "compute_90", "sm_1"])
def test_unknown_architectures_are_refused(architecture: str) -> None:
    with pytest.raises(ToolchainError, match=architecture):
        compile_cubin(TRIVIAL, architecture)
    with pytest.raises(ToolchainError, match="compute_90"):
        compile_ptx(TRIVIAL, "sm_90")


def test_code_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    built = build_cubin(TRIVIAL, ARCHITECTURE)
    (entry,) = cache_entries()
    assert entry.suffix == ".cubin" and entry.parent == tmp_path and built == compile_cubin(TRIVIAL, ARCHITECTURE)
    stamp = entry.stat().st_mtime_ns
    assert build_cubin(TRIVIAL, ARCHITECTURE) == built and entry.stat().st_mtime_ns == stamp
    build_cubin(TRIVIAL, "sm_90")
    build_cubin(TRIVIAL, ARCHITECTURE, NvrtcOptions(fmad=False))
    assert len(cache_entries()) == 3
    entry.write_bytes(entry.read_bytes()[:-40])
    assert build_cubin(TRIVIAL, ARCHITECTURE) == built
