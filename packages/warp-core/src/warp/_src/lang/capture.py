"""Turns Python objects that a kernel refers to into operands."""

from __future__ import annotations

import ast
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang.operands import Known, Operand
from warp._src.types.scalars import Scalar
from warp._src.types.signature import is_array
from warp._src.types.structs import StructInstance
from warp._src.types.tensors import Tensor
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


def captured(context: Context, thing: Any, node: ast.AST) -> Operand:
    """Give the operand for an object from outside the kernel.

    Numbers of Python and NumPy are untyped literals; scalars, tensors and structs of Warp keep their type.
    """
    if isinstance(thing, (bool, np.bool_)):
        return Known(bool(thing))
    if isinstance(thing, numbers.Integral):
        return Literal(int(thing))
    if isinstance(thing, numbers.Real):
        return Literal(float(thing))
    if isinstance(thing, (Scalar, Tensor, StructInstance)):
        with context.at(node):
            return _constant(context, thing, node)
    if isinstance(thing, (tuple, list)):
        return tuple(captured(context, element, node) for element in thing)
    if isinstance(thing, np.ndarray) or (not isinstance(thing, type) and hasattr(thing, "__array_interface__")):
        raise context.error(
            KernelTypeError,
            "an array from outside cannot be used in a kernel",
            node,
            "add a parameter such as x: wp.array(dtype=float) and pass the array at the launch",
        )
    return Known(thing)


def _constant(context: Context, thing: Any, node: ast.AST) -> Value:
    builder = context.builder
    if isinstance(thing, Scalar):
        return builder.const(type(thing), thing.value)
    if isinstance(thing, Tensor):
        return builder.construct(type(thing), [builder.const(thing.scalar, value) for value in thing.values])
    struct = thing._struct_type
    if any(is_array(t) for t in struct.fields.values()):
        raise context.error(
            KernelTypeError,
            f"an instance of struct '{struct.name}', which holds arrays, cannot be captured",
            node,
            "pass it as a parameter",
        )
    parts = []
    for name, t in struct.fields.items():
        value = getattr(thing, name)
        part = _constant(context, value if isinstance(value, (Tensor, StructInstance)) else _typed(t, value), node)
        parts.append(part)
    return builder.construct(struct, parts)


def _typed(t: Any, value: Any) -> Any:
    return value if isinstance(value, Scalar) else t(value)
