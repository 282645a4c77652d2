"""Kernels compiled for a CUDA device."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from warp import config
from warp._src import build
from warp._src.emit import cuda
from warp._src.emit.options import EmitOptions
from warp._src.ir.core import Function as IrFunction
from warp._src.lang.objects import Kernel
from warp._src.launch.program import Program, Variant
from warp._src.passes import pipeline
from warp._src.passes.access import AccessSummary
from warp._src.passes.adjoint import Adjoint
from warp._src.runtime import own_kernels, transfers
from warp._src.runtime.cpu import pack_launch
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.cuda_record import CudaRecord
from warp._src.runtime.faults import Suspect
from warp._src.runtime.stream import get_stream
from warp._src.types.struct_type import Type
from warp.errors import ArgumentError, ToolchainError

_LARGEST_BLOCK: Final = 1024
# Bytes that each work item may append to the stream of a record, at the first launch of a kernel.
_FIRST_SHARE: Final = 64
_FIRST_WITH_CONDITIONS: Final = (12, 3)


@dataclass(frozen=True)
class CudaEntry:
    """A kernel on a device, and what a launch must know of it."""

    device: CudaDevice
    kernel: int
    summary: AccessSummary
    may_fault: bool
    waits: bool  # in debug mode, so that the launch that fails is the one that raises
    largest_block: int
    excerpt: Callable[[int], str]
    identity: str  # of the code: the same in every process and on every device
    address: int = 0

    def run(
        self,
        dim: tuple[int, ...],
        packed: bytes,
        may_alias: bool,
        label: str,
        record: Any = None,
        block_dim: int = 256,
        max_blocks: int = 0,
    ) -> None:
        """Queue all work items of a launch on the device's current stream; `block_dim` 0 leaves the choice here."""
        block_dim = block_dim or min(transfers.BLOCK, self.largest_block)
        if not 1 <= block_dim <= self.largest_block:
            raise ArgumentError(f"{label}: block_dim must be 1 to {self.largest_block}, got {block_dim}")
        driver = self.device.driver
        stream = get_stream(self.device)
        size = math.prod(dim)
        if not size:
            return
        with self.device.active():
            address = 0 if record is None else record.address
            fault = self._watch(dim, label, stream.handle) if self.may_fault else 0
            block = pack_launch.__wrapped__(dim, record=address, fault=fault) if address or fault else pack_launch(dim)
            grid = transfers.grid_for(size, block_dim, max_blocks)
            driver.launch(self.kernel, grid, block_dim, stream.handle, (block, packed))
        if (self.waits or config.verify_cuda) and not stream.is_capturing:
            stream.synchronize()

    def _watch(self, dim: tuple[int, ...], label: str, stream: int) -> int:
        """Give the launch a place to report faults to."""
        log = self.device.faults
        capture = self.device.capture_of(stream)
        if log.is_full and not self.device.captures:
            self.device.synchronize()
        with self.device.relaxed():
            address = log.watch(Suspect(stream, label, pack_launch(dim), self.excerpt, capture is not None))
        if capture is not None:
            capture.keep(_Watched(self.device, address))
        return address


class _Watched:
    """Gives back a place for faults with the graph that reports to it."""

    def __init__(self, device: CudaDevice, address: int) -> None:
        self._device = device
        self._address = address

    def __del__(self) -> None:
        self._device.faults.forget(self._address)


class CudaRecordedEntry:
    """The forward kernel that keeps values for its adjoint, and how much room it wants.

    `share` are the bytes of the stream that each work item gets; they grow with what launches turn out to need.
    """

    def __init__(self, entry: CudaEntry, bytes_per_thread: int, has_stream: bool) -> None:
        self.entry = entry
        self.bytes_per_thread = bytes_per_thread
        self.has_stream = has_stream
        self.share = _FIRST_SHARE if has_stream else 0

    def make_record(self, size: int) -> CudaRecord:
        return CudaRecord(self.entry.device, size, self.bytes_per_thread, self.share)


class CudaProgram(Program):
    """One kernel at concrete parameter types for one device."""

    def __init__(
        self,
        kernel: Kernel,
        types: tuple[Type, ...],
        device: CudaDevice,
        verify_fp: bool = False,
        checks_bounds: bool = False,
    ) -> None:
        super().__init__(kernel, types, verify_fp, checks_bounds)
        self.device = device

    def with_checks(self, verify_fp: bool = False, checks_bounds: bool = False) -> CudaProgram:
        """Give the same kernel, compiled so that it checks more."""
        return CudaProgram(self.kernel, self.types, self.device, verify_fp, checks_bounds)

    def _adjoint(self, variant: Variant) -> Adjoint:
        if variant not in self._adjoints:
            adjoint = super()._adjoint(variant)
            races = pipeline.races(
                self.function,
                may_alias=variant.may_alias,
                dimensions=variant.dimensions,
                is_same=variant.is_same,
            )
            self._adjoints[variant] = replace(adjoint, problems=(*adjoint.problems, *races))
        return self._adjoints[variant]

    def adjoint_tangent(self, variant: Variant) -> Any:
        """Give the tangent of the adjoint. Raises AutogradError where there is no adjoint, because of races too."""
        self._checked_adjoint(variant)
        return super().adjoint_tangent(variant)

    def _make_recorded(self, entry: Any, adjoint: Adjoint) -> Any:
        return CudaRecordedEntry(entry, adjoint.bytes_per_thread, adjoint.has_stream)

    def _compile(self, function: IrFunction, name: Any, summary: AccessSummary, must_be_ordered: bool = False) -> Any:
        kernel = self.kernel
        is_debug = kernel.option("mode") == "debug"
        bounds = tuple(kernel.option("launch_bounds") or ())
        verifies = self._verify_fp or bool(config.verify_fp)
        text = cuda.emit_kernel(
            function,
            EmitOptions(
                libm="",
                entry=name,
                debug=is_debug or self.checks_bounds,
                verify_fp=verifies,
                launch_bounds=bounds,
            ),
        )
        options = build.NvrtcOptions(
            mode="debug" if is_debug else "release",
            fast_math=bool(kernel.option("fast_math")),
            fmad=config.cuda_contract,
            fast_compile=config.cuda_fast_compile,
            max_registers=kernel.option("cuda_max_registers") or 0,
        )
        image = compile_image(self.device, text, options)
        driver = self.device.driver
        with self.device.active(), self.device.relaxed():
            loaded = driver.kernel(driver.load_library(image), name)
        return CudaEntry(
            self.device,
            loaded,
            summary,
            cuda.may_fault(text),
            is_debug or self.checks_bounds or verifies,
            min(bounds[0], _LARGEST_BLOCK) if bounds else _LARGEST_BLOCK,
            self.excerpt,
            hashlib.sha256(f"{options!r}\n{text}".encode()).hexdigest(),
        )


def compile_image(device: CudaDevice, text: str, options: build.NvrtcOptions) -> bytes:
    """Compile CUDA C++ for a device. Raises ToolchainError."""
    if device.compiler is not None:
        return device.compiler(text)
    return build.build_image(text, device.arch, options)


def _build_own(device: CudaDevice, file: str) -> bytes:
    if file == "conditions.cu" and device.compiler is None and build.nvrtc_version() < _FIRST_WITH_CONDITIONS:
        found = ".".join(map(str, build.nvrtc_version()))
        raise ToolchainError(f"branches and loops of graphs need NVRTC from CUDA 12.3 on; this is NVRTC {found}")
    return compile_image(device, cuda.own_kernels_text(file), build.NvrtcOptions())


own_kernels.set_builder(_build_own)
