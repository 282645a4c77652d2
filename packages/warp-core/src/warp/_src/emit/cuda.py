"""A whole translation unit of CUDA C++: the text that C++ shares, a loop over work items and the entry."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from warp._src.emit.callees import hoist_gradient_tests, restored_lines
from warp._src.emit.cpp import arguments_struct, declare_missing_coordinates, dimensions_of
from warp._src.emit.cstyle import Body
from warp._src.emit.options import EmitOptions
from warp._src.emit.prelude import native_text, own_text, prelude
from warp._src.emit.records import emit_record_begin
from warp._src.emit.unit import Unit
from warp._src.ir.core import Function

_FAULT: Final = re.compile(r"\b(?:wp_raise_\w+|raise_bounds|checked_component)\b")


def emit_kernel(function: Function, options: EmitOptions) -> str:
    """Give the CUDA C++ text of a kernel: one translation unit that exports `options.entry`.

    The entry takes the launch and the struct of all arguments by value; a grid of any size runs all work items.
    Raises CompileError for a loop state that a thread's memory cannot hold.
    """
    unit = Unit(function, replace(options, target="cuda", libm=""))
    run = _run_function(unit, function)
    code = "\n\n".join([*unit.structs.values(), *unit.definitions, arguments_struct(unit, function), run])
    text = f"namespace wp {{\n\n{code}\n\n}}  // namespace wp\n\n{_entry(options)}"
    return restored_lines(f"{prelude(text, frozenset(unit.kinds), '', 'cuda')}\n{text}")


def _entry(options: EmitOptions) -> str:
    bounds = f" __launch_bounds__({', '.join(map(str, options.launch_bounds))})" if options.launch_bounds else ""
    # Arguments in constant memory have an address without being copied.
    parameters = "const __grid_constant__ wp_launch launch, const __grid_constant__ wp::arguments args"
    head = f"void{bounds} {options.entry}({parameters})"
    return f'extern "C" __global__ {head} {{\n    wp::run(&launch, args);\n}}\n'


def own_kernels_text(file: str) -> str:
    """Give the translation unit of a file of kernels, native/transfers.cu or native/conditions.cu."""
    body = native_text(file)
    kinds = frozenset(kind for kind in ("half", "bfloat16") if f"wp::{kind}" in body)
    return f"{prelude(body, kinds, '', 'cuda')}\n{body}"


def may_fault(text: str) -> bool:
    """Tell whether a kernel's own text has checks that can report a fault."""
    return _FAULT.search(own_text(text)) is not None


def _run_function(unit: Unit, function: Function) -> str:
    """Emit the loop over the work items of one thread: its own, and those a whole grid further on."""
    body = Body(unit, function, 1)
    for index, (param, arg) in enumerate(zip(function.params, function.body.args, strict=True)):
        name = body.fresh(param.name)
        body.line(f"const {unit.type(param.type)}& {name} = args.p{index};")
        body.names[arg] = body.names[param] = name
    hoist_gradient_tests(body)
    dimensions = dimensions_of(function)
    declare_missing_coordinates(body, dimensions)
    body.line("const wp_worker* worker = nullptr;")
    body.line("const wp_int64 grid = (wp_int64)gridDim.x * blockDim.x;")
    first = "wp_int64 item = (wp_int64)blockIdx.x * blockDim.x + threadIdx.x"
    with body.block(f"for ({first}; item < launch->size; item += grid)"):
        _decompose(body, dimensions)
        emit_record_begin(body, function)
        body.region(function.body)
    head = "WP_FN void run(const wp_launch* launch, const arguments& args) {"
    return "\n".join([head, *body.text(), "}"])


def _decompose(body: Body, dimensions: int) -> None:
    """Declare the coordinates of an item. A launch of more dimensions repeats them."""
    if dimensions == 0:
        return
    inner = " * ".join(f"launch->dim[{axis}]" for axis in range(dimensions, 4))
    body.line(f"wp_int64 rest = {f'item / ({inner})' if inner else 'item'};")
    for axis in range(dimensions - 1, 0, -1):
        body.line(f"const wp::int32 tid{axis} = (wp::int32)(rest % launch->dim[{axis}]);")
        body.line(f"rest /= launch->dim[{axis}];")
    body.line("const wp::int32 tid0 = (wp::int32)rest;")
