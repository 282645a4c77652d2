"""A whole translation unit: prelude, definitions, the loop over work items and the exported names."""

from __future__ import annotations

from typing import Final

# The modules of statements register themselves.
from warp._src.emit import control, memory  # noqa: F401
from warp._src.emit.callees import hoist_gradient_tests, restored_lines
from warp._src.emit.cstyle import Body
from warp._src.emit.options import EmitOptions
from warp._src.emit.prelude import prelude
from warp._src.emit.records import emit_record_begin
from warp._src.emit.unit import Unit, functions_below
from warp._src.ir.core import Function, Value
from warp._src.ir.ops import Invoke, Loop, ReverseLoop, ThreadIndex
from warp._src.types.arrays import ArrayType

# Kernels of at most this many operations, without loops, are emitted for packed arrays too.
_SPECIALISED_SIZE: Final = 64


def emit_kernel(function: Function, options: EmitOptions) -> str:
    """Give the C++ text of a kernel: one translation unit that exports the entry, `wp_bind` and `wp_abi`.

    The kernel's arguments are packed in a struct in the order of its parameters. Raises CompileError for a loop
    state that the arena cannot hold.
    """
    unit = Unit(function, options)
    run = _run_function(unit, function)
    arguments = arguments_struct(unit, function)
    code = "\n\n".join([*unit.structs.values(), *unit.definitions, arguments, run])
    text = f"namespace wp {{\n\n{code}\n\n}}  // namespace wp\n\n{_entry(unit, function)}"
    return restored_lines(f"{prelude(text, frozenset(unit.kinds), options.libm)}\n{text}")


def arguments_struct(unit: Unit, function: Function) -> str:
    """Define the struct that holds the arguments in the order of the parameters."""
    fields = [f"    {unit.type(param.type)} p{index};" for index, param in enumerate(function.params)]
    return "\n".join(["struct arguments {", *fields, "};"])


def _entry(unit: Unit, function: Function) -> str:
    head = (
        f"WP_EXPORT void {unit.options.entry}(wp_int64 begin, wp_int64 end, const wp_launch* launch, "
        "const void* args, const wp_worker* worker) {"
    )
    lines = [head, "    const wp::arguments& p = *(const wp::arguments*)args;"]
    call = f"(begin, end, launch, p, worker{_restricted_arguments(function, unit.options)});"
    if _is_specialised(function, unit.options):
        tests = [
            f"wp::is_packed(p.p{index}, {param.type.ndim - 1}, {_element_size(unit, param)})"
            for index, param in _array_parameters(function)
        ]
        lines.append(f"    if ({' && '.join(tests)})")
        lines.append(f"        wp::run<true>{call}")
        lines.append("    else")
        lines.append(f"        wp::run<false>{call}")
    else:
        lines.append(f"    wp::run{call}")
    return "\n".join([*lines, "}", "WP_EXPORT const int wp_abi = WP_ABI_VERSION;", ""])


def _array_parameters(function: Function) -> list[tuple[int, Value]]:
    return [(index, param) for index, param in enumerate(function.params) if isinstance(param.type, ArrayType)]


def _element_size(unit: Unit, param: Value) -> str:
    return f"sizeof({unit.type(param.type.dtype)})"


def _is_specialised(function: Function, options: EmitOptions) -> bool:
    if not options.specialise or options.debug or not _array_parameters(function):
        return False
    operations = list(function.walk())
    has_loops = any(isinstance(op, (Loop, ReverseLoop, Invoke)) for op in operations)
    return len(operations) <= _SPECIALISED_SIZE and not has_loops


def _restricted(function: Function, options: EmitOptions) -> list[tuple[int, Value]]:
    return [(index, param) for index, param in _array_parameters(function) if param.name in options.restrict]


def _restricted_arguments(function: Function, options: EmitOptions) -> str:
    return "".join(f", p.p{index}.data, p.p{index}.grad" for index, _ in _restricted(function, options))


def _run_function(unit: Unit, function: Function) -> str:
    """Emit the loop over the work items [begin, end) of the launch."""
    options = unit.options
    body = Body(unit, function, 1)
    restricted = _restricted(function, options)
    parameters = "".join(f", void* __restrict data{index}, void* __restrict grad{index}" for index, _ in restricted)
    is_specialised = _is_specialised(function, options)
    _emit_parameters(body, function, is_specialised)
    for index, param in restricted:
        body.line(f"{body.name(param)}.data = data{index};")
        body.line(f"{body.name(param)}.grad = grad{index};")
    hoist_gradient_tests(body)
    dimensions = dimensions_of(function)
    declare_missing_coordinates(body, dimensions)
    (_descending if options.descending else _ascending)(body, dimensions)
    head = (
        "WP_FN void run(wp_int64 begin, wp_int64 end, const wp_launch* launch, const arguments& p, "
        f"const wp_worker* worker{parameters}) {{"
    )
    template = ["template <bool is_packed_launch>"] if is_specialised else []
    return "\n".join([*template, head, *body.lines, "}"])


def dimensions_of(function: Function) -> int:
    """Give the number of coordinates that a kernel and what it calls ask for."""
    asked = (op for below in functions_below(function) for op in below.walk() if isinstance(op, ThreadIndex))
    return max((len(op.results) for op in asked), default=0)


def declare_missing_coordinates(body: Body, dimensions: int) -> None:
    """Declare the coordinates that nobody asks for but that every callee gets."""
    if any(isinstance(op, Invoke) for op in body.function.walk()):
        for axis in range(dimensions, 4):
            body.line(f"const wp::int32 tid{axis} = 0;")


def _emit_parameters(body: Body, function: Function, is_specialised: bool) -> None:
    """Copy the arguments into locals, which stores through pointers cannot change."""
    for index, (param, arg) in enumerate(zip(function.params, function.body.args, strict=True)):
        name = body.fresh(param.name)
        is_changed = isinstance(param.type, ArrayType)
        body.line(f"{'' if is_changed else 'const '}{body.unit.type(param.type)} {name} = p.p{index};")
        body.names[arg] = body.names[param] = name
        if is_specialised and is_changed:
            size = _element_size(body.unit, param)
            body.line(f"if (is_packed_launch) wp::assume_packed({name}, {param.type.ndim - 1}, {size});")


def _ascending(body: Body, dimensions: int) -> None:
    """Emit the items as runs along the last coordinate; coordinates are decomposed once."""
    if dimensions == 0:
        with body.block("for (wp_int64 item = begin; item < end; ++item)"):
            _emit_item(body, 0)
        return
    _decompose(body, dimensions, "begin")
    last = dimensions - 1
    with body.block("for (wp_int64 start = begin; start < end;)"):
        body.line(f"wp_int64 stop = inner == 1 ? start + (launch->dim[{last}] - x{last}) : start + 1;")
        body.line("if (stop > end) stop = end;")
        body.line(f"const wp_int64 offset = x{last} - start;")
        with body.block("for (wp_int64 item = start; item < stop; ++item)"):
            body.line(f"const wp::int32 tid{last} = (wp::int32)(item + offset);")
            _emit_item(body, dimensions, last)
        body.line("const wp_int64 length = stop - start;")
        body.line("start = stop;")
        body.line("if (inner != 1 && ++phase < inner) continue;")
        body.line("phase = 0;")
        body.line(f"x{last} += length;")
        for axis in range(last, 0, -1):
            body.line(f"if (x{axis} < launch->dim[{axis}]) continue;")
            body.line(f"x{axis} = 0;")
            body.line(f"++x{axis - 1};")


def _descending(body: Body, dimensions: int) -> None:
    """Emit the same items from the last to the first."""
    if dimensions == 0:
        with body.block("for (wp_int64 item = end - 1; item >= begin; --item)"):
            _emit_item(body, 0)
        return
    _decompose(body, dimensions, "end - 1")
    last = dimensions - 1
    with body.block("for (wp_int64 start = end - 1; start >= begin;)"):
        body.line(f"wp_int64 stop = inner == 1 ? start - x{last} : start;")
        body.line("if (stop < begin) stop = begin;")
        body.line(f"const wp_int64 offset = x{last} - start;")
        with body.block("for (wp_int64 item = start; item >= stop; --item)"):
            body.line(f"const wp::int32 tid{last} = (wp::int32)(item + offset);")
            _emit_item(body, dimensions, last)
        body.line("const wp_int64 length = start - stop + 1;")
        body.line("start = stop - 1;")
        body.line("if (inner != 1 && --phase >= 0) continue;")
        body.line("phase = inner - 1;")
        body.line(f"x{last} -= length;")
        for axis in range(last, 0, -1):
            body.line(f"if (x{axis} >= 0) continue;")
            body.line(f"x{axis} = launch->dim[{axis}] - 1;")
            body.line(f"--x{axis - 1};")


def _decompose(body: Body, dimensions: int, item: str) -> None:
    """Declare the coordinates of the first item. A launch of more dimensions repeats them `inner` times."""
    body.line("if (begin >= end) return;")
    inner = " * ".join(f"launch->dim[{axis}]" for axis in range(dimensions, 4)) or "1"
    body.line(f"const wp_int64 inner = {inner};")
    body.line(f"wp_int64 rest = ({item}) / inner;")
    body.line(f"wp_int64 phase = ({item}) % inner;")
    for axis in range(dimensions - 1, 0, -1):
        body.line(f"wp_int64 x{axis} = rest % launch->dim[{axis}];")
        body.line(f"rest /= launch->dim[{axis}];")
    body.line("wp_int64 x0 = rest;")


def _emit_item(body: Body, dimensions: int, last: int = -1) -> None:
    for axis in range(dimensions):
        if axis != last:
            body.line(f"const wp::int32 tid{axis} = (wp::int32)x{axis};")
    emit_record_begin(body, body.function)
    body.region(body.function.body)
