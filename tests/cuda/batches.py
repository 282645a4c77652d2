"""Texts of many kernels in one translation unit, so that a compiler starts once for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.builtins.native_calls import ALL_KINDS

from warp._src.build import libm_header
from warp._src.emit import cpp, cuda
from warp._src.emit.options import EmitOptions
from warp._src.emit.prelude import native_text, own_text, prelude
from warp._src.ir.core import Function
from warp._src.lang.objects import Kernel
from warp._src.lang.source import build_kernel
from warp._src.passes import pipeline

HOST_CUDA = (Path(__file__).parent / "host_cuda.h").read_text(encoding="utf-8")
OWN_NAME = re.compile(r"\b(wp_forward|wp_backward|wp_abi|arguments|run|function\d+_\w+|native\d+_\w+)\b")
STRUCT = re.compile(
    r"^struct (struct_\w+) {$.*?^WP_FN bool is_finite_value\(const \1& x\).*?$", re.MULTILINE | re.DOTALL
)


class Unit(NamedTuple):
    """A function to emit, under an entry name."""

    function: Function
    entry: str


def units_of(kernel: Kernel) -> list[Unit]:
    """Give what a launch and its gradient run: forward, forward with records, backward."""
    primal = build_kernel(kernel, tuple(type for _, type in kernel.parameters))
    units = [Unit(pipeline.forward(primal), "wp_forward")]
    if not kernel.option("enable_backward"):
        return units
    dimensions = frozenset(range(cpp.dimensions_of(primal)))
    adjoint = pipeline.backward(primal, may_alias=False, dimensions=dimensions)
    if adjoint.problems:
        return units
    if adjoint.recorded is not None:
        units.append(Unit(adjoint.recorded, "wp_forward"))
    return [*units, Unit(adjoint.function, "wp_backward")]


def cuda_text(units: Sequence[Unit], *, debug: bool = False) -> str:
    """Emit CUDA kernels `wp_forward_0`, `wp_backward_1` and so on, numbered in order."""
    options = [EmitOptions(libm="", entry=unit.entry, debug=debug, verify_fp=debug) for unit in units]
    texts = [cuda.emit_kernel(unit.function, chosen) for unit, chosen in zip(units, options, strict=True)]
    text = "\n".join(_apart(index, text) for index, text in enumerate(texts))
    return f"{prelude(text, ALL_KINDS | {'snippet'}, '', 'cuda')}\n{text}"


def hosted_text(units: Sequence[Unit]) -> str:
    """Emit the same text for a C++ compiler, with functions `run_0`, `run_1` that run the kernels."""
    head = "\n".join([native_text("freestanding.h"), libm_header(), HOST_CUDA])
    launchers = "\n".join(
        f"HOST_LAUNCH(run_{index}, {unit.entry}_{index}, wp::arguments_{index})" for index, unit in enumerate(units)
    )
    return "\n".join([head, cuda_text(units), launchers])


def cpp_text(units: Sequence[Unit]) -> str:
    """Emit the kernels for the CPU: `wp_forward_0`, `wp_backward_1` and so on."""
    texts = [cpp.emit_kernel(unit.function, EmitOptions(libm="", entry=unit.entry)) for unit in units]
    text = "\n".join(_apart(index, text) for index, text in enumerate(texts))
    return f"{prelude(text, ALL_KINDS | {'snippet'}, libm_header())}\n{text}"


def _apart(index: int, text: str) -> str:
    """Give what a kernel adds to the headers, with names of its own; structs of one name are the same struct."""
    own = own_text(text)
    own = STRUCT.sub(lambda match: f"#ifndef HAS_{match[1]}\n#define HAS_{match[1]}\n{match[0]}\n#endif", own)
    return OWN_NAME.sub(lambda match: f"{match[0]}_{index}", own)
