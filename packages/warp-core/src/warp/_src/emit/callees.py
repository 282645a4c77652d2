"""Calls of user functions and of C++ snippets, and the definitions of what they call."""

from __future__ import annotations

import re
import textwrap
from typing import Final

from warp._src.emit.cstyle import Body, emitter
from warp._src.emit.names import cpp_type, is_array, is_struct, is_tensor, plain_name
from warp._src.emit.unit import Unit
from warp._src.ir.core import Function, Type, Value
from warp._src.ir.ops import Invoke, Load, Native, Space, Store
from warp._src.types.arrays import IndexedArrayType
from warp.errors import KernelTypeError, UnsupportedSyntaxError

LINE_OF_UNIT: Final = "#line unit"
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_CUDA_ONLY: Final = re.compile(
    r"\b(?:__shared__|__syncthreads\w*|__syncwarp|__shfl\w*|__ballot\w*|__activemask|__constant__|threadIdx|blockIdx"
    r"|blockDim|gridDim|warpSize|__ldg)\b"
)
# Headers that a snippet needs for the types that it names itself.
_SNIPPET_KINDS: Final = {
    "tensor": re.compile(r"\bwp::(?:vec|mat|quat|transform|spatial)"),
    "rotation": re.compile(r"\bwp::(?:quat|transform|spatial)"),
    "half": re.compile(r"\bwp::(?:half|float16)\b"),
}
# What every function gets besides its own parameters.
CONTEXT_PARAMETERS = (
    "const wp_launch* launch, const wp_worker* worker, const wp_int64 item, "
    "const wp::int32 tid0, const wp::int32 tid1, const wp::int32 tid2, const wp::int32 tid3"
)
CONTEXT_ARGUMENTS = "launch, worker, item, tid0, tid1, tid2, tid3"


@emitter(Invoke)
def _invoke(body: Body, op: Invoke) -> None:
    name = define_function(body.unit, op.function)
    outputs = [body.declare(result) for result in op.results]
    arguments = ", ".join([CONTEXT_ARGUMENTS, *body.named(op.operands), *outputs])
    body.line(f"{name}({arguments});")


def define_function(unit: Unit, function: Function) -> str:
    """Define a callee once; gives its name. Results are reference parameters after the others."""
    if function in unit.functions:
        return unit.functions[function]
    name = f"wp::function{len(unit.functions)}_{plain_name(function.name)}"
    unit.functions[function] = name
    body = Body(unit, function, 1)
    parameters = [CONTEXT_PARAMETERS]
    for arg in function.body.args:
        body.names[arg] = body.fresh(arg.name)
        parameters.append(f"{_parameter_type(unit, arg.type)} {body.names[arg]}")
    parameters.extend(f"{unit.type(type)}& ret{index}" for index, type in enumerate(function.result_types))
    hoist_gradient_tests(body)
    for index, value in enumerate(body.region(function.body)):
        body.line(f"ret{index} = {body.name(value)};")
    plain = name.removeprefix("wp::")
    unit.definitions.append("\n".join([f"WP_FN void {plain}({', '.join(parameters)}) {{", *body.text(), "}"]))
    return name


def _parameter_type(unit: Unit, type: Type) -> str:
    is_large = is_tensor(type) or is_struct(type) or is_array(type)
    return f"const {unit.type(type)}{'&' if is_large else ''}"


def hoist_gradient_tests(body: Body) -> None:
    """Test once per array parameter whether it has a gradient, before anything else."""
    used = {op.array for op in body.function.walk() if isinstance(op, (Load, Store)) and op.space is Space.GRADIENT}
    for arg in body.function.body.args:
        if arg in used:
            test = f"has_grad_{body.names[arg]}"
            body.line(f"const bool {test} = wp::has_grad({body.names[arg]});")
            body.hoisted[arg] = test


@emitter(Native)
def _native(body: Body, op: Native) -> None:
    name = define_native(body.unit, op)
    if op.results and not op.result_names:
        body.define(op.result, f"{name}({', '.join(body.named(op.operands))})")
        return
    outputs = [body.declare(result, "{}") for result in op.results]
    body.line(f"{name}({', '.join([*body.named(op.operands), *outputs])});")


def define_native(unit: Unit, op: Native) -> str:
    """Define the function around a snippet once; gives its name."""
    types = tuple(value.type for value in op.operands)
    results = tuple(value.type for value in op.results)
    key = (op.snippet, op.names, op.result_names, types, results)
    if key in unit.natives:
        return unit.natives[key]
    unit.kinds.add("snippet")
    plain = f"native{len(unit.natives)}_{plain_name(op.name)}".rstrip("_")
    unit.natives[key] = f"wp::native::{plain}"
    parameters = [
        f"{_snippet_type(unit, op, name, value)} {name}" for name, value in zip(op.names, op.operands, strict=True)
    ]
    parameters.extend(f"{unit.type(type)}& {name}" for name, type in zip(op.result_names, results, strict=False))
    returned = unit.type(results[0]) if results and not op.result_names else "void"
    _check_target(unit, op)
    text = textwrap.dedent(op.snippet.strip("\n"))
    for kind, names in _SNIPPET_KINDS.items():
        if names.search(text):
            unit.kinds.add(kind)
    # The compiler's messages count the lines of the snippet, and go back to those of the unit after it.
    lines = [f'#line 1 "native function {op.name}"', *map(str.rstrip, text.splitlines()), LINE_OF_UNIT]
    definition = "\n".join([f"WP_FN {returned} {plain}({', '.join(parameters)}) {{", *lines, "}"])
    unit.definitions.append(f"namespace native {{\n{definition}\n}}")
    return unit.natives[key]


def _check_target(unit: Unit, op: Native) -> None:
    """Refuse what only a GPU can do before a C++ compiler sees it."""
    if unit.options.target == "cuda":
        return
    found = _CUDA_ONLY.search(_COMMENT.sub(" ", op.snippet))
    if found:
        raise UnsupportedSyntaxError(
            f"{op.loc}: the snippet of native function '{op.name}' uses {found[0]}, which only CUDA has; kernels that "
            "call it can be launched on a CUDA device only"
        )


def restored_lines(text: str) -> str:
    """Fill in the line numbers that the compiler is told after each snippet."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 2):
        if line == LINE_OF_UNIT:
            lines[number - 2] = f'#line {number} "unit.cpp"'
    return "\n".join(lines)


def _snippet_type(unit: Unit, op: Native, name: str, value: Value) -> str:
    if isinstance(value.type, IndexedArrayType):
        raise KernelTypeError(f"{op.loc}: parameter '{name}' of a native function cannot be an indexed array")
    if not is_array(value.type):
        return unit.type(value.type)
    unit.type(value.type)
    is_gradient = binds_gradient(op, name, value)
    accessor = "gradient_accessor" if is_gradient else "accessor"
    return f"{accessor}<{cpp_type(value.type.dtype)}, {value.type.ndim}>"


def binds_gradient(op: Native, name: str, value: Value) -> bool:
    """Tell whether a snippet's array `name` is the gradient of another of its operands (see `ops.Native`)."""
    primal = name.removeprefix("adj_")
    return primal != name and any(
        other == primal and operand is value for other, operand in zip(op.names, op.operands, strict=True)
    )
