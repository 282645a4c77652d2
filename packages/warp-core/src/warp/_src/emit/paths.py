"""C++ lvalues of components: vector components, matrix rows, struct fields, parts of a transform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from warp._src.emit.names import cpp_type, field_name, is_struct, tensor_name
from warp._src.ir.core import Type
from warp._src.ir.ops import Path
from warp._src.types.signature import component_type
from warp.errors import InternalCompilerError

_TRANSFORM_PARTS = {"p": (0, "vector", (3,)), "q": (3, "quaternion", (4,))}


def component(base: str, type: Type, path: Path, indices: Sequence[str]) -> str:
    """Spell the component of `base` that `path` names; `indices` are the texts of its dynamic steps."""
    remaining = iter(indices)
    steps = list(path)
    while steps:
        step = steps.pop(0)
        if is_struct(type):
            base, type = f"{base}.{field_name(str(step))}", type.fields[step]
            continue
        return _tensor_component(base, type, [step, *steps], remaining)
    return base


def dynamic_sizes(type: Type, path: Path) -> list[int]:
    """Give the number of components that each dynamic step of a path chooses from."""
    sizes = []
    for number, step in enumerate(path):
        if step is None:
            owner: Any = component_type(type, path[:number])
            sizes.append(int(owner.shape[0]))
    return sizes


def _tensor_component(base: str, type: Type, steps: list[int | str | None], indices: Iterator[str]) -> str:
    scalar = cpp_type(type.scalar)
    if isinstance(steps[0], str):
        offset, category, shape = _TRANSFORM_PARTS[steps[0]]
        if len(steps) == 1:
            return f"wp::part<{tensor_name(category, shape, type.scalar)}>({base}.c, {offset})"
        return f"{base}.c[{_sum(str(offset), _position(steps[1], shape[0], indices))}]"
    first = _position(steps[0], type.shape[0] if type.category in ("vector", "matrix") else type.length, indices)
    if type.category != "matrix":
        if len(steps) > 1:
            raise InternalCompilerError(f"path {steps} is too long for {type.name}")
        return f"{base}.c[{first}]"
    rows = _product(first, type.shape[1])
    if len(steps) == 1:
        return f"wp::part<wp::vec<{type.shape[1]}, {scalar}>>({base}.c, {rows})"
    return f"{base}.c[{_sum(rows, _position(steps[1], type.shape[1], indices))}]"


def _position(step: int | str | None, length: int, indices: Iterator[str]) -> str:
    if step is None:
        return next(indices)
    if not isinstance(step, int):
        raise InternalCompilerError(f"step {step!r} is not an index")
    return str(step + length if step < 0 else step)


def _product(left: str, factor: int) -> str:
    return str(int(left) * factor) if left.isdigit() else f"(wp::int64){left} * {factor}"


def _sum(left: str, right: str) -> str:
    if left == "0":
        return right
    return str(int(left) + int(right)) if left.isdigit() and right.isdigit() else f"{left} + {right}"
