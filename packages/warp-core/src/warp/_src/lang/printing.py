"""printf and print: formats are checked against the types of the values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang.arguments import Arguments
from warp._src.lang.local_arrays import as_local
from warp._src.lang.operands import Known, Operand, is_truth, spelled
from warp._src.lang.place import Place
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.scalars import bfloat16, bool_, float16, float32, int32, is_scalar
from warp._src.types.signature import is_array, is_tensor
from warp._src.types.structs import StructType
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context

_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*\d*(?:\.\d+)?)(?:hh|h|ll|l|z|j|t)?(?P<kind>[diouxXeEfFgGaAcsp%])")
_INTEGER_KINDS = "diouxXc"


def printf(context: Context, arguments: Arguments) -> Operand:
    """Print values in the format of C's printf."""
    node = arguments.node
    text = arguments.args[0].object if arguments.args and isinstance(arguments.args[0], Known) else None
    if not isinstance(text, str) or arguments.keywords:
        raise context.error(KernelTypeError, "wp.printf() takes a format that is a string constant first", node)
    operands = list(arguments.args[1:])
    values: list[Value] = []

    def fitted(found: re.Match[str]) -> str:
        kind = found["kind"]
        if kind == "%":
            return found[0]
        if not operands:
            raise context.error(KernelTypeError, f"the format {text!r} needs more values", node)
        return _converted(context, arguments, found, operands.pop(0), values)

    fixed = _CONVERSION.sub(fitted, text)
    if operands:
        raise context.error(KernelTypeError, f"the format {text!r} needs {len(values)} values, got more", node)
    return _emit(context, fixed, values, arguments)


def _converted(
    context: Context, arguments: Arguments, found: re.Match[str], operand: Operand, values: list[Value]
) -> str:
    kind = found["kind"]
    if kind == "s" and isinstance(operand, Known) and isinstance(operand.object, (str, bool)):
        return str(operand.object).replace("%", "%%")
    value = _printable(context, operand, arguments)
    is_integer = value.type.kind in "iub"
    if is_integer is not (kind in _INTEGER_KINDS):
        raise context.error(KernelTypeError, f"the format {found[0]!r} does not fit {spelled(operand)}", arguments.node)
    values.append(value)
    return f"%{found['flags']}{_length(value.type) if kind != 'c' else ''}{kind}"


def _printable(context: Context, operand: Operand, arguments: Arguments) -> Value:
    value = context.value(operand, arguments.node)
    if not is_scalar(value.type):
        raise context.error(
            KernelTypeError,
            f"{spelled(operand)} cannot be printed like this",
            arguments.node,
            "print its elements" if is_array(value.type) else "use print()",
        )
    widened = {bool_: int32, float16: float32, bfloat16: float32}.get(value.type)
    return context.builder.cast(widened, value) if widened is not None else value


def _length(type: Any) -> str:
    return "ll" if type.kind in "iu" and type.size == 8 else ""


def print_values(context: Context, arguments: Arguments) -> Operand:
    """Print values of any type, separated by spaces, and end the line."""
    if arguments.keywords:
        raise context.error(KernelTypeError, "print() takes no named arguments in kernels", arguments.node)
    values: list[Value] = []
    texts = [_shown(context, operand, arguments, values) for operand in arguments.args]
    return _emit(context, " ".join(texts) + "\n", values, arguments)


def _shown(context: Context, operand: Operand, arguments: Arguments, values: list[Value]) -> str:
    if isinstance(operand, Known) and not is_truth(operand):
        return str(operand.object).replace("%", "%%")
    if isinstance(operand, tuple):
        return f"({', '.join(_shown(context, part, arguments, values) for part in operand)})"
    if isinstance(operand, Literal):
        return str(operand.value)
    value = context.value(operand, arguments.node)
    type: Any = value.type
    if is_tensor(type):
        return _listed(context, [context.builder.extract(value, (k,)) for k in range(type.shape[0])], arguments, values)
    if isinstance(type, LocalArrayType):
        local, node = as_local(Place(value)), arguments.node
        elements = [local.at(context, [Literal(k)], [node]).read(context) for k in range(type.shape[0])]
        return _listed(context, elements, arguments, values)
    if isinstance(type, StructType):
        fields = {name: context.builder.extract(value, (name,)) for name in type.fields}
        parts = [f"{name}={_shown(context, part, arguments, values)}" for name, part in fields.items()]
        return f"{type.name}({', '.join(parts)})"
    values.append(_printable(context, value, arguments))
    last: Any = values[-1].type
    return "%g" if last.kind == "f" else f"%{_length(last)}{'u' if last.kind == 'u' else 'd'}"


def _listed(context: Context, parts: Sequence[Value], arguments: Arguments, values: list[Value]) -> str:
    return f"[{', '.join(_shown(context, part, arguments, values) for part in parts)}]"


def _emit(context: Context, text: str, values: Sequence[Value], arguments: Arguments) -> Operand:
    """Call the builtin; the format is its attribute."""
    context.call("printf", values, arguments.node, (text,))
    return Known(None)
