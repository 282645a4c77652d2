"""Local arrays: making them, and their elements, rows and slices as places."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from warp._src.builtins.declare import Literal, resolve
from warp._src.ir.core import Type, Value
from warp._src.lang.operands import Operand
from warp._src.lang.place import Place, index_operands, known_index
from warp._src.lang.slices import selected
from warp._src.types.local_arrays import LocalArrayType, leaf_key, local_array
from warp._src.types.scalars import int32, is_scalar
from warp._src.types.signature import component_type, is_tensor
from warp._src.types.structs import StructType
from warp.errors import KernelTypeError

if TYPE_CHECKING:
    from warp._src.lang.context import Context


_ZERO = Literal(0)


@dataclass(frozen=True, eq=False)
class LocalPlace(Place):
    """An element of a local array or, as long as `shape` is not empty, a block of them; `path` leads into an element.

    `offset` is the number of the first element in row-major order.
    """

    shape: tuple[int, ...] = ()
    offset: Operand = _ZERO

    @property
    def type(self) -> Type:
        dtype = self.root.type.dtype
        return local_array(self.shape, dtype) if self.shape else component_type(dtype, self.path)

    def read(self, context: Context) -> Value:
        if isinstance(self.root.type, LocalArrayType) and self.shape == self.root.type.shape:
            return self.root
        type: Any = self.type
        builder = context.builder
        if isinstance(type, LocalArrayType):
            return builder.construct(type, [self._run(context, key, part) for key, part in type.vectors.items()])
        if isinstance(type, StructType):
            return builder.construct(type, [self.step(field).read(context) for field in type.fields])
        key, start = self._located(context)
        if is_scalar(type):
            return self._extract(context, key, start)
        parts = [self._extract(context, key, _add(context, start, Literal(k))) for k in range(type.length)]
        return builder.construct(type, parts)

    def write(self, context: Context, value: Value, node: ast.AST) -> None:
        if self.name is None:
            raise context.unsupported("a temporary value cannot be assigned to", node, "give it a name first")
        type: Any = self.type
        builder = context.builder
        if isinstance(type, LocalArrayType):
            for key, part in type.vectors.items():
                start = self._start(context, part)
                for k in range(part.length):
                    self._insert(context, key, _add(context, start, Literal(k)), builder.extract(value, (key, k)))
        elif isinstance(type, StructType):
            for field in type.fields:
                self.step(field).write(context, builder.extract(value, (field,)), node)
        else:
            key, start = self._located(context)
            for k, path in enumerate(itertools.product(*map(range, () if is_scalar(type) else type.shape))):
                self._insert(context, key, _add(context, start, Literal(k)), builder.extract(value, path))

    def at(self, context: Context, operands: Sequence[Operand], nodes: Sequence[ast.expr]) -> LocalPlace:
        """Give the element or block that leading indices select."""
        offset = self.offset
        for position, (operand, node) in enumerate(zip(operands, nodes, strict=True)):
            stride = math.prod(self.shape[position + 1 :])
            index = _index(context, operand, self.shape[position], node)
            offset = _add(context, offset, _multiply(context, index, stride))
        return replace(self, shape=self.shape[len(operands) :], offset=offset)

    # -- the vectors that hold the numbers -------------------------------------------------------------

    def _run(self, context: Context, key: str, part: Any) -> Value:
        start = self._start(context, part)
        scalars = [self._extract(context, key, _add(context, start, Literal(k))) for k in range(part.length)]
        return context.builder.construct(part, scalars)

    def _start(self, context: Context, part: Any) -> Operand:
        return _multiply(context, self.offset, part.length // math.prod(self.shape))

    def _located(self, context: Context) -> tuple[str, Operand]:
        """Give the vector that holds what `path` leads to, and the place of its first number."""
        type: Any = self.root.type.dtype
        fields: list[str] = []
        within: Operand = Literal(0)
        dynamic = iter(self.path_indices)
        for step in self.path:
            if isinstance(type, StructType):
                fields.append(str(step))
            elif isinstance(step, str):  # the position or rotation of a transform
                within = Literal(0 if step == "p" else 3)
            else:
                index: Operand = next(dynamic) if step is None else Literal(step)
                within = _add(context, within, _multiply(context, index, type.length // type.shape[0]))
            type = component_type(type, (0 if step is None else step,))
        whole: Any = component_type(self.root.type.dtype, fields)
        length = whole.length if is_tensor(whole) else 1
        return leaf_key(tuple(fields)), _add(context, _multiply(context, self.offset, length), within)

    def _extract(self, context: Context, key: str, position: Operand) -> Value:
        step, indices = _step(position)
        return context.builder.extract(self.root, (key, step), indices)

    def _insert(self, context: Context, key: str, position: Operand, part: Value) -> None:
        step, indices = _step(position)
        root = context.scope.names[self.name or ""]
        assert isinstance(root, Value)
        context.scope.names[self.name or ""] = context.builder.insert(root, part, (key, step), indices)


def is_local(place: object) -> TypeGuard[Place]:
    """Tell whether a place holds a local array."""
    return isinstance(place, Place) and isinstance(place.type, LocalArrayType)


def as_local(place: Place) -> LocalPlace:
    """Turn the place of a local array into one that takes indices."""
    if isinstance(place, LocalPlace):
        return place
    type: Any = place.type
    return LocalPlace(place.root, place.name, shape=type.shape)


def sliced_local(context: Context, base: Place, nodes: Sequence[ast.expr], node: ast.AST) -> Value:
    """Give the local array that a slice with constant bounds selects."""
    local = as_local(base)
    if len(nodes) > len(local.shape):
        raise context.error(KernelTypeError, f"too many indices for a {local.type.name}", node)
    choices = [selected(context, part, extent) for part, extent in zip(nodes, local.shape, strict=False)]
    choices += [range(extent) for extent in local.shape[len(nodes) :]]
    kept = tuple(len(choice) for choice in choices if isinstance(choice, range))
    if 0 in kept:
        raise context.error(KernelTypeError, "the slice is empty", node)
    result = local_array(kept, local.root.type.dtype)
    indices = list(itertools.product(*(choice if isinstance(choice, range) else (choice,) for choice in choices)))
    elements = [replace(local, shape=(), offset=_flat(context, local, index)) for index in indices]
    parts = []
    for key, part in result.vectors.items():
        length = part.length // len(elements)
        starts = [_multiply(context, element.offset, length) for element in elements]
        places = [_add(context, start, Literal(k)) for start in starts for k in range(length)]
        parts.append(context.builder.construct(part, [local._extract(context, key, place) for place in places]))
    return context.builder.construct(result, parts)


def _flat(context: Context, local: LocalPlace, indices: Sequence[int]) -> Operand:
    offset = local.offset
    for position, index in enumerate(indices):
        offset = _add(context, offset, Literal(index * math.prod(local.shape[position + 1 :])))
    return offset


def filled(context: Context, shape: tuple[int, ...], dtype: Any, fill: Operand, node: ast.Call) -> Value:
    """Make a local array whose elements have one value; a number fills all components."""
    type = _made(context, shape, dtype, node)
    if isinstance(fill, Literal) and fill.value == 0:
        return context.builder.zero(type)
    if is_tensor(dtype) and isinstance(fill, Literal):
        fill = context.builder.construct(dtype, [_converted_fill(context, fill, dtype.scalar, node)] * dtype.length)
    element = _converted_fill(context, fill, dtype, node)
    count = math.prod(shape)
    parts = []
    for key, part in type.vectors.items():
        fields = () if key == "values" and not isinstance(dtype, StructType) else tuple(key.split("."))
        leaf = context.builder.extract(element, fields)
        extents = leaf.type.shape if is_tensor(leaf.type) else ()
        scalars = [context.builder.extract(leaf, path) for path in itertools.product(*map(range, extents))]
        parts.append(context.builder.construct(part, scalars * count))
    return context.builder.construct(type, parts)


def _converted_fill(context: Context, fill: Operand, dtype: Any, node: ast.Call) -> Value:
    if isinstance(fill, Literal) and is_scalar(dtype) and fill.kind == "i":
        return context.builder.const(dtype, fill.value)
    return context.converted(fill, dtype, node, "the value of a local array")


def _made(context: Context, shape: tuple[int, ...], dtype: Any, node: ast.Call) -> LocalArrayType:
    if len(shape) > 4:
        raise context.error(KernelTypeError, f"a local array has 4 dimensions at most, got shape {shape}", node)
    try:
        return local_array(shape, dtype)
    except (KernelTypeError, ValueError) as error:
        raise context.error(KernelTypeError, str(error), node) from error


def _index(context: Context, operand: Operand, extent: int, node: ast.expr) -> Operand:
    known = known_index(operand)
    if known is not None:
        if not -extent <= known < extent:
            raise context.error(
                KernelTypeError, f"index {known} is out of range for an extent of {extent} of a local array", node
            )
        return Literal(known % extent)
    (value,) = index_operands(context, [operand], [node])
    return value if value.type is int32 else context.builder.cast(int32, value)


def _step(position: Operand) -> tuple[int | None, tuple[Value, ...]]:
    if isinstance(position, Value):
        return None, (position,)
    assert isinstance(position, Literal)
    return int(position.value), ()


def _add(context: Context, left: Operand, right: Operand) -> Operand:
    for first, second in ((left, right), (right, left)):
        if known_index(first) == 0:
            return second
    return _computed(context, "add", left, right)


def _multiply(context: Context, index: Operand, factor: int) -> Operand:
    return index if factor == 1 else _computed(context, "mul", index, Literal(factor))


def _computed(context: Context, name: str, left: Operand, right: Operand) -> Operand:
    """Compute with indices, at the place of the operation that is being built."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(left.value + right.value if name == "add" else left.value * right.value)
    builder = context.builder
    values = [part if isinstance(part, Value) else builder.const(int32, part.value) for part in (left, right)]  # type: ignore[union-attr]  # indices are values or literals
    return builder.call(resolve(name, [int32, int32]), values)[0]


__all__ = ["LocalPlace", "as_local", "filled", "is_local", "sliced_local"]
