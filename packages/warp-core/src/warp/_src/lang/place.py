"""Places that can be read and assigned: variables, array elements, and components of both."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from warp._src.builtins.declare import Literal
from warp._src.ir.core import Type, Value
from warp._src.ir.ops import Path, Space
from warp._src.lang.operands import Operand, Unsettled, spelled
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import is_int
from warp._src.types.signature import component_type, is_array, is_tensor, type_name
from warp._src.types.structs import StructType
from warp.errors import KernelTypeError, UnknownNameError

if TYPE_CHECKING:
    from warp._src.lang.context import Context

_AXES = {"x": 0, "y": 1, "z": 2, "w": 3}


@dataclass(frozen=True, eq=False)
class Place:
    """A part of a variable (`name`), of an array element (`indices` is not None), or of a temporary value."""

    root: Value
    name: str | None = None
    indices: tuple[Value, ...] | None = None
    path: Path = ()
    path_indices: tuple[Value, ...] = ()
    space: Space = Space.PRIMAL

    @property
    def is_element(self) -> bool:
        """Whether this is an array element or a part of one, all its indices given."""
        return self.indices is not None and len(self.indices) == self.root.type.ndim

    @property
    def type(self) -> Type:
        if self.indices is None:
            return component_type(self.root.type, self.path)
        if not self.is_element:
            return ArrayType(self.root.type.dtype, self.root.type.ndim - len(self.indices))
        return component_type(self.root.type.dtype, self.path)

    def step(self, *path: int | str | None, indices: Sequence[Value] = ()) -> Place:
        """Give a component of this place."""
        return replace(self, path=(*self.path, *path), path_indices=(*self.path_indices, *indices))

    def read(self, context: Context) -> Value:
        """Read the current value."""
        builder = context.builder
        if self.indices is None:
            return builder.extract(self.root, self.path, self.path_indices)
        if self.is_element:
            return builder.load(self.root, self.indices, self.path, self.path_indices, self.space)
        if self.space is Space.GRADIENT:
            raise KernelTypeError(
                "the gradient of an array can only be used element by element, as in wp.adjoint[x][i]\n"
                + context.text.excerpt(builder.loc)
            )
        return builder.view(self.root, self.indices) if self.indices else self.root

    def write(self, context: Context, value: Value, node: ast.AST) -> None:
        """Assign; the value must have the place's type."""
        builder = context.builder
        if self.is_element and self.indices is not None:
            builder.store(self.root, value, self.indices, self.path, self.path_indices, self.space)
        elif self.indices is not None:
            raise context.unsupported(
                f"{self.root.type.ndim} indices are needed to assign to an element of the array, "
                f"got {len(self.indices)}",
                node,
                "assign the elements of a row in a loop",
            )
        elif self.name is None:
            raise context.unsupported("a temporary value cannot be assigned to", node, "give it a name first")
        else:
            changed = builder.insert(self.root, value, self.path, self.path_indices)
            context.scope.names[self.name] = changed


def as_array_place(context: Context, place: Place) -> Place:
    """Turn a place whose value is an array into one that takes indices."""
    if place.indices is not None and not place.is_element:
        return place
    return Place(place.read(context), indices=(), space=place.space)


def _is_known_integer(operand: Operand) -> TypeGuard[Literal]:
    """Tell a number that is written in the kernel from one that a loop is still being tried with."""
    return isinstance(operand, Literal) and not isinstance(operand, Unsettled) and operand.kind == "i"


def known_index(operand: Operand) -> int | None:
    """Give an integer that is known while compiling, else None."""
    if isinstance(operand, Literal) and not isinstance(operand, Unsettled) and isinstance(operand.value, int):
        return operand.value
    return None


def index_operands(context: Context, operands: Sequence[Operand], nodes: Sequence[ast.expr]) -> tuple[Value, ...]:
    """Check array indices and give them as integer values."""
    values = []
    for operand, node in zip(operands, nodes, strict=True):
        value = None if isinstance(operand, tuple) else context.value(operand, node)
        if value is None or not is_int(value.type):
            hint = f"convert it: int({ast.unparse(node)})" if value is not None else ""
            raise context.error(
                KernelTypeError, f"an array index must be an integer, got {spelled(operand)}", node, hint
            )
        values.append(value)
    return tuple(values)


def indexed(context: Context, place: Place, operands: Sequence[Operand], nodes: Sequence[ast.expr]) -> Place:
    """Give the place that a subscript leads to."""
    if is_array(place.type):
        return _array_indexed(context, as_array_place(context, place), operands, nodes)
    if not is_tensor(place.type):
        raise context.error(KernelTypeError, f"a value of type {type_name(place.type)} cannot be indexed", nodes[0])
    for operand, node in zip(operands, nodes, strict=True):
        place = _component(context, place, operand, node)
    return place


def _array_indexed(context: Context, place: Place, operands: Sequence[Operand], nodes: Sequence[ast.expr]) -> Place:
    given = place.indices or ()
    ndim = place.root.type.ndim
    if len(given) + len(operands) > ndim:
        if given:  # a row and components of its elements in one chain: x[i][j] with too many in the last bracket
            place = Place(place.read(context), indices=(), space=place.space)
            return _array_indexed(context, place, operands, nodes)
        raise context.error(
            KernelTypeError,
            f"{len(operands)} indices into an array of {ndim} dimension{'s' if ndim > 1 else ''}",
            nodes[-1],
            "index the components of an element in a bracket of their own: x[i][0]",
        )
    first = len(given)
    counted = [from_start(context, place.root, first + n, operand, nodes[n]) for n, operand in enumerate(operands)]
    return replace(place, indices=(*given, *index_operands(context, counted, nodes)))


def from_start(context: Context, array: Value, axis: int, operand: Operand, node: ast.expr) -> Operand:
    """Turn a negative number that is written as an index, and counts from the end of an axis, into an index."""
    if not (_is_known_integer(operand) and operand.value < 0):
        return operand
    extent = context.call("array_shape", [array, Literal(axis)], node)
    return context.call("add", [extent, operand], node)


def _component(context: Context, place: Place, operand: Operand, node: ast.expr) -> Place:
    current: Any = place.type
    if not is_tensor(current):
        raise context.error(KernelTypeError, f"too many indices: {type_name(current)} has no components", node)
    size = current.shape[0]
    if _is_known_integer(operand):
        index = int(operand.value)
        if not -size <= index < size:
            raise context.error(
                KernelTypeError, f"component {index} is out of range for {type_name(current)} of length {size}", node
            )
        return place.step(index % size)
    (value,) = index_operands(context, [operand], [node])
    return place.step(None, indices=[value])


def attribute(context: Context, place: Place, name: str, node: ast.expr) -> Place:
    """Give the place that an attribute leads to: a component, a part of a transform or a struct field."""
    current: Any = place.type
    if isinstance(current, StructType):
        if name in current.fields:
            return place.step(name)
        raise context.error(
            UnknownNameError,
            f"struct '{current.name}' has no field '{name}'",
            node,
            f"its fields are {', '.join(current.fields)}",
        )
    if is_tensor(current):
        if current.category == "transform" and name in ("p", "q"):
            return place.step(name)
        if current.category in ("vector", "quaternion") and _AXES.get(name, 4) < current.length:
            return place.step(_AXES[name])
    hint = ""
    if is_tensor(current):
        names = ["p", "q"] if current.category == "transform" else list(_AXES)[: current.length]
        hint = f"there are {', '.join(names)}" if current.category != "matrix" else "index it: m[i, j]"
    raise context.error(UnknownNameError, f"a value of type {type_name(current)} has no attribute '{name}'", node, hint)
