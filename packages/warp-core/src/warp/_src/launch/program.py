"""Compiled forms of a kernel: the only module where compiler, tools and runtime meet."""

from __future__ import annotations

import hashlib
import linecache
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from warp import config
from warp._src import build
from warp._src.builtins.declare import Literal as Literal
from warp._src.emit.cpp import emit_kernel
from warp._src.emit.options import EmitOptions
from warp._src.ir.core import Function as IrFunction
from warp._src.ir.ops import Invoke, Op
from warp._src.lang.mapping import MappedCall as MappedCall
from warp._src.lang.mapping import mapped_call as mapped_call
from warp._src.lang.modules import MODULES as MODULES
from warp._src.lang.modules import Module as Module
from warp._src.lang.modules import get_module as get_module
from warp._src.lang.objects import Function as Function
from warp._src.lang.objects import Kernel as Kernel
from warp._src.lang.source import build_kernel
from warp._src.passes import pipeline
from warp._src.passes.access import AccessSummary
from warp._src.passes.access import Root as Root
from warp._src.passes.adjoint import Adjoint
from warp._src.passes.adjoint_context import Problem
from warp._src.passes.cost import has_loops, operations_per_item
from warp._src.runtime.cpu import Executor, LoadedObject, launch_flags, pack_launch
from warp._src.runtime.record import LaunchRecord
from warp._src.types.struct_type import Type
from warp.errors import AutogradError

# Work that is worth a chunk of its own, and work during which other Python threads may not wait, in operations.
_OPERATIONS_PER_CHUNK = 16_384
_OPERATIONS_WITH_GIL = 40_000
# What every loaded object exports.
_NATIVE_HEAD = """
WP_EXPORT const int wp_abi = WP_ABI_VERSION;
WP_EXPORT void wp_bind(const void* const*) {}
"""


@cache
def executor() -> Executor:
    """The worker pool of this process, built at first use."""
    return Executor(build.build_runtime_library(), build.LIBM)


@dataclass(frozen=True)
class Entry:
    """A compiled entry point and what a launch must know of it."""

    address: int
    summary: AccessSummary
    operations: int  # per work item, estimated
    has_loops: bool
    must_be_ordered: bool  # whatever the summary says: work items append to one stream
    identity: str  # of the code: the same in every process
    chunk: int = field(init=False)  # the fewest work items that are worth a chunk
    _ordered: tuple[int, ...] = field(init=False)  # flags by whether the interpreter lock is released

    def __post_init__(self) -> None:
        object.__setattr__(self, "chunk", max(1, _OPERATIONS_PER_CHUNK // self.operations))
        ordered = tuple(launch_flags(release_gil=releases, ordered=True) for releases in (False, True))
        object.__setattr__(self, "_ordered", ordered)

    def run(
        self,
        dim: tuple[int, ...],
        packed: bytes,
        may_alias: bool,
        label: str,
        record: LaunchRecord | None = None,
        block_dim: int = 0,
        max_blocks: int = 0,
    ) -> None:
        """Run all work items of a launch and wait for them. Raises LaunchError if a check failed."""
        size = math.prod(dim)
        if size:
            block = pack_launch(dim) if record is None else pack_launch.__wrapped__(dim, record=record.address)
            flags = self.ordered_flags(size) if self.is_small(size) else self.flags(dim, size, may_alias)
            executor().run(self.address, block, packed, flags, label)

    def is_small(self, size: int) -> bool:
        """Tell whether a launch is a single chunk, so that it runs on the caller whatever its kind."""
        return size <= self.chunk

    def ordered_flags(self, size: int) -> int:
        """Flags for a launch that runs on the caller, in order."""
        return self._ordered[self.has_loops or size * self.operations > _OPERATIONS_WITH_GIL]

    def flags(self, shape: tuple[int, ...], size: int, may_alias: bool) -> int:
        """Choose workers, chunks and the interpreter lock for a launch."""
        several = frozenset(d for d, extent in enumerate(shape) if extent > 1)
        if may_alias or self.must_be_ordered or not self.summary.is_independent(several):
            return self.ordered_flags(size)
        releases = self.has_loops or size * self.operations > _OPERATIONS_WITH_GIL
        return launch_flags(parallel=True, release_gil=releases, smallest_chunk=self.chunk)


@dataclass(frozen=True, eq=False)
class Variant:
    """What the adjoint of a launch depends on besides the types; made by `variant_of`, which makes equal ones once.

    `may_alias`: arrays of different parameters overlap. `dimensions`: those with more than one thread. `is_same`: those
    that overlap are one and the same; only CUDA devices ask for that.
    """

    may_alias: bool
    dimensions: frozenset[int]
    is_same: bool = False


def variant_of(shape: tuple[int, ...], may_alias: bool, is_same: bool = False) -> Variant:
    """Give the variant of a launch; launches of a kind share one object."""
    return _variant_of(may_alias, tuple([extent > 1 for extent in shape]), is_same)


@cache
def _variant_of(may_alias: bool, is_several: tuple[bool, ...], is_same: bool) -> Variant:
    return _variant(may_alias, frozenset(d for d, several in enumerate(is_several) if several), is_same)


@cache
def _variant(may_alias: bool, dimensions: frozenset[int], is_same: bool) -> Variant:
    return Variant(may_alias, dimensions, is_same)


@dataclass(frozen=True)
class BackwardEntry:
    """A compiled adjoint; `needed` names the arrays whose values after the launch it reads."""

    entry: Entry
    needed: frozenset[Root | None]


@dataclass(frozen=True)
class RecordedEntry:
    """The forward kernel that keeps values for its adjoint, and how much room it wants."""

    entry: Entry
    bytes_per_thread: int
    has_stream: bool

    def make_record(self, size: int) -> LaunchRecord:
        return LaunchRecord(size, self.bytes_per_thread, self.has_stream)


class Program:
    """One kernel at concrete parameter types, compiled piece by piece when first needed."""

    def __init__(
        self, kernel: Kernel, types: tuple[Type, ...], verify_fp: bool = False, checks_bounds: bool = False
    ) -> None:
        self.kernel = kernel
        self.checks_bounds = checks_bounds
        self._verify_fp = verify_fp
        self.types = types
        self._lock = threading.RLock()
        self._forward: Entry | None = None
        self._backward: dict[Variant, BackwardEntry] = {}
        self._recorded: dict[Variant, RecordedEntry | None] = {}
        self._adjoints: dict[Variant, Adjoint] = {}
        self._tangents: dict[Variant | None, Entry] = {}
        self._recorded_tangents: dict[Variant, RecordedEntry | None] = {}
        self._function: IrFunction | None = None

    def with_checks(self, verify_fp: bool = False, checks_bounds: bool = False) -> Program:
        """Give the same kernel, compiled so that it checks more."""
        return Program(self.kernel, self.types, verify_fp, checks_bounds)

    @property
    def function(self) -> IrFunction:
        """The kernel as the front end gives it."""
        with self._lock:
            if self._function is None:
                self._function = build_kernel(self.kernel, self.types)
            return self._function

    def excerpt(self, line: int) -> str:
        """Show a line of the kernel, or of a function that it calls, as a fault names it."""
        own = self.kernel.definition.text.file
        files = {op.loc.file for op in _all_operations(self.function) if op.loc.line == line}
        file = own if own in files or not files else min(files)
        text = linecache.getline(file, line).strip()
        return f'\n  File "{file}", line {line}\n    {text}' if text else ""

    def forward(self) -> Entry:
        """Give the forward entry. Raises CompileError."""
        if self._forward is None:
            with self._lock:
                if self._forward is None:
                    self._forward = self._compile(self._forward_function, "wp_forward", self.accesses)
        return self._forward

    @cached_property
    def _forward_function(self) -> IrFunction:
        return pipeline.forward(self.function)

    @cached_property
    def accesses(self) -> AccessSummary:
        """What the kernel reads and writes; nothing is compiled for it."""
        return pipeline.accesses(self._forward_function)

    def backward(self, variant: Variant) -> BackwardEntry:
        """Give the adjoint for launches of a variant.

        Raises AutogradError, which names the lines, where the gradient would be wrong.
        """
        found = self._backward.get(variant)
        if found is None:
            with self._lock:
                found = self._backward.get(variant) or self._build_backward(variant)
                self._backward[variant] = found
        return found

    def recorded(self, variant: Variant) -> RecordedEntry | None:
        """Give the forward entry that a taped launch must use, or None if its adjoint needs no record."""
        if not self._may_need_record(variant):
            return None
        if variant not in self._recorded:
            with self._lock:
                if variant not in self._recorded:
                    self._recorded[variant] = self._build_recorded(variant)
        return self._recorded[variant]

    def tangent(self) -> Entry:
        """Give the forward-mode entry, whose parameters are those of the kernel and then their directions.

        Raises AutogradError, which names the lines, where there is no forward mode.
        """
        return self._tangent_entry(None)

    def adjoint_tangent(self, variant: Variant) -> Entry:
        """Give the tangent of the adjoint, for products with a Hessian. Raises AutogradError as `tangent` does."""
        return self._tangent_entry(variant)

    def recorded_tangent(self, variant: Variant) -> RecordedEntry | None:
        """Give the forward-mode entry that keeps what `adjoint_tangent` needs, or None if that needs nothing kept."""
        with self._lock:
            if variant not in self._recorded_tangents:
                self._recorded_tangents[variant] = self._build_recorded_tangent(variant)
            return self._recorded_tangents[variant]

    def _build_recorded_tangent(self, variant: Variant) -> RecordedEntry | None:
        if self.recorded(variant) is None:
            return None
        adjoint = self._adjoint(variant)
        made = pipeline.recording_forward_mode(
            self.function, may_alias=variant.may_alias, dimensions=variant.dimensions
        )
        assert made is not None, "the adjoint needs a record"
        if made.problems:
            raise AutogradError(_describe(self.kernel.key, made.problems))
        summary = pipeline.accesses(made.function, may_alias=variant.may_alias)
        entry = self._compile(made.function, "wp_forward", summary, must_be_ordered=adjoint.has_stream)
        return self._make_recorded(entry, replace(adjoint, bytes_per_thread=2 * adjoint.bytes_per_thread))

    def _tangent_entry(self, variant: Variant | None) -> Entry:
        with self._lock:
            if variant not in self._tangents:
                if variant is None:
                    made = pipeline.forward_mode(self.function)
                else:
                    made = pipeline.forward_over_reverse(
                        self.function, may_alias=variant.may_alias, dimensions=variant.dimensions
                    )
                if made.problems:
                    raise AutogradError(_describe(self.kernel.key, made.problems))
                name = "wp_forward" if variant is None else "wp_backward"
                self._tangents[variant] = self._compile(made.function, name, pipeline.accesses(made.function))
            return self._tangents[variant]

    def _may_need_record(self, variant: Variant) -> bool:
        """Tell cheaply whether a kernel could read what it overwrites; if not, the adjoint need not be built yet."""
        return (variant.may_alias or self._reads_what_it_writes) and bool(self.kernel.option("enable_backward"))

    @cached_property
    def _reads_what_it_writes(self) -> bool:
        summary = self.accesses
        roots = {root for root, _ in summary.reads | summary.writes}
        return bool(summary.reads & summary.writes) or (bool(summary.writes) and None in roots)

    def _adjoint(self, variant: Variant) -> Adjoint:
        if variant not in self._adjoints:
            self._adjoints[variant] = pipeline.backward(
                self.function, may_alias=variant.may_alias, dimensions=variant.dimensions
            )
        return self._adjoints[variant]

    def needs_record(self, variant: Variant) -> bool:
        """Tell whether `recorded` gives an entry, without compiling it."""
        if not self._may_need_record(variant):
            return False
        adjoint = self._adjoint(variant)
        # Problems are raised when the gradient is asked for.
        return not adjoint.problems and adjoint.recorded is not None

    def _build_recorded(self, variant: Variant) -> RecordedEntry | None:
        adjoint = self._adjoint(variant)
        if not self.needs_record(variant) or adjoint.recorded is None:
            return None
        summary = pipeline.accesses(adjoint.recorded, may_alias=variant.may_alias)
        entry = self._compile(adjoint.recorded, "wp_forward", summary, must_be_ordered=adjoint.has_stream)
        return self._make_recorded(entry, adjoint)

    def _make_recorded(self, entry: Entry, adjoint: Adjoint) -> RecordedEntry:
        return RecordedEntry(entry, adjoint.bytes_per_thread, adjoint.has_stream)

    def needed(self, variant: Variant) -> frozenset[Root | None]:
        """Name the arrays whose values the adjoint reads, without compiling it. Raises AutogradError as `backward`."""
        compiled = self._backward.get(variant)
        return self._checked_adjoint(variant).needed if compiled is None else compiled.needed

    def _checked_adjoint(self, variant: Variant) -> Adjoint:
        if not self.kernel.option("enable_backward"):
            raise AutogradError(
                f"kernel '{self.kernel.key}' was made with enable_backward=False, so no gradient can flow through "
                "it; enable it for the kernel or its module, or launch it outside the tape"
            )
        adjoint = self._adjoint(variant)
        if adjoint.problems:
            raise AutogradError(_describe(self.kernel.key, adjoint.problems))
        return adjoint

    def _build_backward(self, variant: Variant) -> BackwardEntry:
        adjoint = self._checked_adjoint(variant)
        summary = pipeline.accesses(adjoint.function, may_alias=variant.may_alias)
        entry = self._compile(adjoint.function, "wp_backward", summary)
        return BackwardEntry(entry, adjoint.needed)

    def _compile(self, function: IrFunction, name: Any, summary: AccessSummary, must_be_ordered: bool = False) -> Entry:
        is_debug = self.kernel.option("mode") == "debug"
        source = emit_kernel(
            function,
            EmitOptions(
                libm=build.libm_header(),
                entry=name,
                debug=is_debug or self.checks_bounds,
                descending=name == "wp_backward",
                verify_fp=self._verify_fp or bool(config.verify_fp),
            ),
        )
        options = build.BuildOptions(
            mode="debug" if is_debug else "release", fast_math=bool(self.kernel.option("fast_math"))
        )
        loaded = _load(source, options)
        address = loaded.forward if name == "wp_forward" else loaded.backward
        assert address is not None, "the emitter exports the entry that it was asked for"
        identity = hashlib.sha256(f"{options!r}\n{source}".encode()).hexdigest()
        return Entry(address, summary, operations_per_item(function), has_loops(function), must_be_ordered, identity)


def _load(source: str, options: build.BuildOptions) -> LoadedObject:
    if executor.cache_info().currsize:
        return executor().load(build.build_object(source, options=options))
    with ThreadPoolExecutor(1) as pool:
        # The worker pool is built beside the first kernel.
        runtime = pool.submit(executor)
        path = build.build_object(source, options=options)
        return runtime.result().load(path)


def _all_operations(function: IrFunction) -> Iterator[Op]:
    """Yield the operations of a function and of those that it calls."""
    for op in function.walk():
        yield op
        if isinstance(op, Invoke):
            yield from _all_operations(op.function)


def _describe(key: str, problems: tuple[Problem, ...]) -> str:
    lines = "\n".join(f"  {problem.loc}: {problem.text}" for problem in problems)
    return f"the gradient of kernel '{key}' cannot be computed correctly:\n{lines}"


def load_native(source: str) -> LoadedObject:
    """Compile C++ text, with native/abi.h and native/freestanding.h before it, and load it. Raises ToolchainError."""
    head = f"{build.native_text('abi.h')}\n{build.native_text('freestanding.h')}\n{_NATIVE_HEAD}\n"
    return executor().load(build.build_object(head + source))


def clear_cache() -> None:
    """Remove every compiled object from the cache directory."""
    build.clear()
