"""Functions that are no plain builtins: what they depend on is only known to the front end."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Value
from warp._src.lang.addresses import array_at_address
from warp._src.lang.arguments import Arguments, known_dtype, known_int, known_shape
from warp._src.lang.capture import captured
from warp._src.lang.construct import tensor
from warp._src.lang.gradients import gradient_of
from warp._src.lang.library_calls import LIBRARY
from warp._src.lang.local_arrays import filled
from warp._src.lang.memory import ATOMICS
from warp._src.lang.operands import Known, Operand, Unsettled, spelled, type_of
from warp._src.lang.printing import print_values, printf
from warp._src.types.local_arrays import LocalArrayType
from warp._src.types.signature import canonical, is_array, is_tensor
from warp._src.types.tensors import matrix, quaternion, transformation, vector
from warp.errors import CompileError, KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context

Handler = Callable[["Context", Arguments], Operand]

_EVALUATION_ERRORS = (ArithmeticError, AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError)


def _tid(context: Context, arguments: Arguments) -> Operand:
    if arguments.args or arguments.keywords:
        raise context.error(KernelTypeError, "wp.tid() takes no arguments", arguments.node)
    if arguments.unpack_count > 4:
        raise context.error(KernelTypeError, "a launch has 4 dimensions at most", arguments.node)
    results = context.builder.thread_index(arguments.unpack_count)
    return results[0] if len(results) == 1 else results


def _static(context: Context, node: ast.Call) -> Operand:
    """Evaluate a Python expression while compiling, with the names around the kernel and what is known in it."""
    if len(node.args) != 1 or node.keywords:
        raise context.error(KernelTypeError, "wp.static() takes one expression", node)
    names = context.names.namespace()
    for name, operand in context.scope.names.items():
        if isinstance(operand, Literal) and not isinstance(operand, Unsettled):
            names[name] = operand.value
        elif isinstance(operand, Known) and not name.startswith("$"):
            names[name] = operand.object
    expression = ast.Expression(node.args[0])
    try:
        thing = eval(compile(expression, context.text.file, "eval"), names)
    except _EVALUATION_ERRORS as error:
        raise context.error(
            CompileError,
            f"wp.static({ast.unparse(node.args[0])}) failed: {type(error).__name__}: {error}",
            node,
            _static_hint(context, error),
        ) from error
    return captured(context, thing, node)


def _static_hint(context: Context, error: Exception) -> str:
    name = getattr(error, "name", None) if isinstance(error, NameError) else None
    if name in context.scope.names:
        return f"'{name}' is only known when the kernel runs; wp.static() sees what is known before the launch"
    return "only what is known before the launch can be used in wp.static()"


def _constant(context: Context, arguments: Arguments) -> Operand:
    bound = arguments.bind(context, "constant", "x")
    if "x" not in bound:
        raise context.error(KernelTypeError, "wp.constant() takes one value", arguments.node)
    return bound["x"]


def _len(context: Context, arguments: Arguments) -> Operand:
    (operand,) = _exactly(context, arguments, "len", 1)
    if isinstance(operand, tuple):
        return Literal(len(operand))
    if isinstance(operand, Value) and (is_tensor(operand.type) or isinstance(operand.type, LocalArrayType)):
        return Literal(operand.type.shape[0])
    if isinstance(operand, Value) and is_array(operand.type):
        return context.call("array_shape", [operand, Literal(0)], arguments.node)
    raise context.error(KernelTypeError, f"{spelled(operand)} has no length", arguments.node)


def _type(context: Context, arguments: Arguments) -> Operand:
    (operand,) = _exactly(context, arguments, "type", 1)
    found = type_of(operand)
    if found is None:
        raise context.error(KernelTypeError, f"{spelled(operand)} has no type in kernels", arguments.node)
    return Known(found)


def _isinstance(context: Context, arguments: Arguments) -> Operand:
    operand, wanted = _exactly(context, arguments, "isinstance", 2)
    found = type_of(operand)
    choices = wanted if isinstance(wanted, tuple) else (wanted,)
    return Known(any(isinstance(choice, Known) and canonical(choice.object) == found for choice in choices))


def _exactly(context: Context, arguments: Arguments, name: str, count: int) -> tuple[Operand, ...]:
    if len(arguments.args) != count or arguments.keywords:
        raise context.error(KernelTypeError, f"{name}() takes {count} arguments", arguments.node)
    return arguments.args


# -- values of a shape and type that arguments name ----------------------------------------------------


def _filled(name: str, number: int | None) -> Handler:
    """Make the handler of `zeros`, `ones`, `full`: a local array."""

    def handler(context: Context, arguments: Arguments) -> Operand:
        parameters = ("shape", "dtype") if number is not None else ("shape", "value", "dtype")
        bound = arguments.bind(context, name, *parameters)
        shape = known_shape(context, bound.get("shape"), arguments.node)
        dtype = known_dtype(context, bound.get("dtype"), arguments.node)
        fill = bound.get("value", Literal(number if number is not None else 0))
        return filled(context, shape, dtype, fill, arguments.node)

    return handler


def _checked(context: Context, node: ast.AST, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise context.error(KernelTypeError, str(error), node) from error


def _scalar_of_first(context: Context, arguments: Arguments) -> Any:
    """Find the scalar type for components when no dtype is given: that of the first typed argument."""
    for operand in arguments.args:
        found: Any = type_of(operand) if isinstance(operand, Value) else None
        if found is not None:
            return found.scalar if is_tensor(found) else found
    for operand in arguments.args:
        if isinstance(operand, Literal):
            return operand.default
    return known_dtype(context, None, arguments.node)


def _options(arguments: Arguments, context: Context, name: str, *allowed: str) -> Mapping[str, Operand]:
    for keyword in arguments.keywords:
        if keyword not in allowed:
            raise context.error(KernelTypeError, f"'{name}' cannot take argument '{keyword}'", arguments.node)
    return arguments.keywords


def _component_type(context: Context, arguments: Arguments, options: Mapping[str, Operand]) -> Any:
    if "dtype" in options:
        return known_dtype(context, options["dtype"], arguments.node)
    return _scalar_of_first(context, arguments)


def _vector(context: Context, arguments: Arguments) -> Operand:
    options = _options(arguments, context, "vector", "length", "dtype")
    node, args = arguments.node, arguments.args
    dtype = _component_type(context, arguments, options)
    if "length" in options:
        length = known_int(context, options["length"], "length", node)
    elif len(args) == 1 and isinstance(args[0], Value) and is_tensor(args[0].type):
        length = args[0].type.length
    else:
        length = len(args)
    made = _checked(context, node, lambda: vector(length, dtype))
    return tensor(context, made, args, {}, node) if args else context.builder.zero(made)


def _matrix(context: Context, arguments: Arguments) -> Operand:
    options = _options(arguments, context, "matrix", "shape", "dtype")
    dtype = _component_type(context, arguments, options)
    shape = known_shape(context, options.get("shape"), arguments.node)
    if len(shape) != 2:
        raise context.error(KernelTypeError, f"a matrix has 2 dimensions, got shape {shape}", arguments.node)
    made = _checked(context, arguments.node, lambda: matrix((shape[0], shape[1]), dtype))
    return tensor(context, made, arguments.args, {}, arguments.node) if arguments.args else context.builder.zero(made)


def _quaternion(context: Context, arguments: Arguments) -> Operand:
    options = _options(arguments, context, "quaternion", "dtype")
    made = _checked(context, arguments.node, lambda: quaternion(_component_type(context, arguments, options)))
    return tensor(context, made, arguments.args, {}, arguments.node) if arguments.args else context.builder.zero(made)


def _transformation(context: Context, arguments: Arguments) -> Operand:
    options = _options(arguments, context, "transformation", "p", "q", "dtype")
    parts = {name: operand for name, operand in options.items() if name != "dtype"}
    every = Arguments(arguments.node, (*arguments.args, *parts.values()), {})
    made = _checked(context, arguments.node, lambda: transformation(_component_type(context, every, options)))
    return tensor(context, made, arguments.args, parts, arguments.node)


def _identity(context: Context, arguments: Arguments) -> Operand:
    bound = arguments.bind(context, "identity", "n", "dtype")
    n = known_int(context, bound.get("n"), "n", arguments.node)
    dtype = known_dtype(context, bound.get("dtype"), arguments.node)
    made = _checked(context, arguments.node, lambda: matrix((n, n), dtype))
    one, zero = context.builder.const(dtype, 1), context.builder.const(dtype, 0)
    return context.builder.construct(made, [one if row == column else zero for row in range(n) for column in range(n)])


def _quat_identity(context: Context, arguments: Arguments) -> Operand:
    bound = arguments.bind(context, "quat_identity", "dtype")
    return _unit(context, quaternion(known_dtype(context, bound.get("dtype"), arguments.node)))


def _transform_identity(context: Context, arguments: Arguments) -> Operand:
    bound = arguments.bind(context, "transform_identity", "dtype")
    return _unit(context, transformation(known_dtype(context, bound.get("dtype"), arguments.node)))


def _unit(context: Context, type: Any) -> Value:
    numbers = [0.0] * (type.length - 1) + [1.0]
    return context.builder.construct(type, [context.builder.const(type.scalar, number) for number in numbers])


def _from_vectors(name: str, is_by_row: bool) -> Handler:
    def handler(context: Context, arguments: Arguments) -> Operand:
        vectors = (
            arguments.args[0] if len(arguments.args) == 1 and isinstance(arguments.args[0], tuple) else arguments.args
        )
        first: Any = type_of(vectors[0]) if vectors else None
        for operand in vectors:
            if not (isinstance(operand, Value) and is_tensor(operand.type) and operand.type == first):
                raise context.error(
                    KernelTypeError,
                    f"'{name}' takes vectors of one type, got {', '.join(map(spelled, vectors))}",
                    arguments.node,
                )
        if first is None or first.category != "vector":
            raise context.error(KernelTypeError, f"'{name}' takes vectors", arguments.node)
        return _stacked(context, [v for v in vectors if isinstance(v, Value)], is_by_row)

    return handler


def _stacked(context: Context, vectors: list[Value], is_by_row: bool) -> Value:
    length, scalar = vectors[0].type.length, vectors[0].type.scalar
    parts = [[context.builder.extract(v, (index,)) for index in range(length)] for v in vectors]
    if not is_by_row:
        parts = [list(row) for row in zip(*parts, strict=True)]
    made = matrix((len(parts), len(parts[0])), scalar)
    return context.builder.construct(made, [part for row in parts for part in row])


HANDLERS: dict[str, Handler] = {
    "tid": _tid,
    "grad": gradient_of,
    "constant": _constant,
    "len": _len,
    "type": _type,
    "isinstance": _isinstance,
    "printf": printf,
    "print": print_values,
    "zeros": _filled("zeros", 0),
    "empty": _filled("empty", 0),
    "ones": _filled("ones", 1),
    "full": _filled("full", None),
    "vector": _vector,
    "matrix": _matrix,
    "quaternion": _quaternion,
    "transformation": _transformation,
    "identity": _identity,
    "quat_identity": _quat_identity,
    "transform_identity": _transform_identity,
    "matrix_from_rows": _from_vectors("matrix_from_rows", True),
    "matrix_from_cols": _from_vectors("matrix_from_cols", False),
    **{name: array_at_address(name) for name in ("array", "array1d", "array2d", "array3d", "array4d")},
    **LIBRARY,
}
"""Handlers that take evaluated arguments, by public name."""

RAW_HANDLERS: dict[str, Callable[[Context, ast.Call], Operand]] = {"static": _static, **ATOMICS}
"""Handlers that take the call as it is written, by public name."""
