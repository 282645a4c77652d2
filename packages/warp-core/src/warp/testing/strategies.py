"""Hypothesis strategies for shapes, types, arrays and the arguments of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import warp as wp
from warp.codegen import Struct
from warp.errors import ArgumentError
from warp.testing.numbers import Domain, numbers, require_hypothesis
from warp.types import ArrayType, IndexedArrayType, type_name

_FLOATS = (wp.float16, wp.float32, wp.float64)
_SIGNED = (wp.int8, wp.int16, wp.int32, wp.int64)
_UNSIGNED = (wp.uint8, wp.uint16, wp.uint32, wp.uint64)
_MAX_DIMENSIONS = 4


def shapes(min_dims: int = 1, max_dims: int = 2, min_side: int = 1, max_side: int = 4) -> Any:
    """Return a strategy for shapes of arrays, which have at most four dimensions."""
    st = require_hypothesis()
    if not 0 <= min_dims <= max_dims <= _MAX_DIMENSIONS:
        raise ArgumentError(f"shapes: need 0 <= min_dims <= max_dims <= {_MAX_DIMENSIONS}, got {min_dims}, {max_dims}")
    return st.lists(st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


def dtypes(kinds: str = "f", tensors: bool = False) -> Any:
    """Return a strategy for types of elements.

    `kinds` holds "f" for floats, "i" and "u" for signed and unsigned integers, "b" for booleans; `tensors` adds
    vectors and matrices of them, and quaternions of floats.
    """
    st = require_hypothesis()
    scalars: list[Any] = []
    for kind, members in (("f", _FLOATS), ("i", _SIGNED), ("u", _UNSIGNED), ("b", (wp.bool,))):
        scalars.extend(members if kind in kinds else ())
    if not scalars:
        raise ArgumentError(f"dtypes: kinds must hold some of f, i, u, b, got {kinds!r}")
    found = list(scalars)
    for scalar in scalars if tensors else ():
        if scalar is not wp.bool:
            found += [wp.types.vector(length, scalar) for length in (2, 3, 4)]
            found += [wp.types.matrix((size, size), scalar) for size in (2, 3)]
        if scalar in _FLOATS:
            found.append(wp.types.quaternion(scalar))
    return st.sampled_from(found)


def arrays(
    dtype: Any = float,
    shape: Any = None,
    domain: Domain | None = None,
    requires_grad: bool = True,
    device: Any = None,
) -> Any:
    """Return a strategy for arrays.

    Args:
        dtype: Type of the elements, or a strategy for it.
        shape: An int, a shape, or a strategy for one; `shapes()` by default.
        domain: The interval that numbers come from, or several; -2 to 2 for floats and 0 to 3 for integers by default.
        requires_grad: Whether arrays of floats have a gradient.
        device: Where the arrays are.
    """
    st = require_hypothesis()
    shapes_of = shapes() if shape is None else shape if hasattr(shape, "example") else st.just(shape)
    dtypes_of = dtype if hasattr(dtype, "example") else st.just(dtype)

    def of_type(chosen: Any) -> Any:
        layout = wp.empty((0,), dtype=chosen)
        inner = layout.numpy().shape[1:]
        return shapes_of.flatmap(lambda extents: _filled(chosen, extents, inner, domain, requires_grad, device))

    return dtypes_of.flatmap(of_type)


def values(dtype: Any, domain: Domain | None = None) -> Any:
    """Return a strategy for host values of a scalar, vector, matrix, quaternion, transform or struct type.

    Arrays in structs are left null; give them with `arguments(..., strategies={"struct.field": ...})`.
    """
    st = require_hypothesis()
    if isinstance(dtype, Struct):
        fields = {name: values(kind, domain) for name, kind in dtype.fields.items() if not _is_array(kind)}
        return st.fixed_dictionaries(fields).map(lambda chosen: dtype(**chosen))
    shape = getattr(dtype, "shape", ())
    if not shape:
        return numbers(dtype, domain)
    count = int(np.prod(shape))
    components = st.lists(numbers(dtype.scalar, domain), min_size=count, max_size=count)
    return components.map(lambda chosen: dtype(*chosen))


@dataclass(repr=False)
class KernelArguments:
    """What a kernel can be launched with."""

    dim: tuple[int, ...]
    values: dict[str, Any]
    """By parameter."""

    def describe(self) -> str:
        """Return dimensions and arguments as lines, the elements of arrays included."""
        lines = [f"dim = {self.dim}"]
        for name, value in self.values.items():
            lines.extend(_described(name, value))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"KernelArguments({'; '.join(self.describe().splitlines())})"


def arguments(
    kernel: Any,
    dim: int | Sequence[int] | Callable[[dict[str, Any]], Any] | None = None,
    domains: Mapping[str, Domain] | None = None,
    strategies: Mapping[str, Any] | None = None,
    dtype: Any = wp.float64,
    max_side: int = 4,
    device: Any = None,
) -> Any:
    """Return a strategy for `KernelArguments` that fit the parameters of a kernel.

    Sides are drawn once, up to `max_side`: arrays of rank k have the first k of them as their shape.

    Args:
        kernel: The kernel.
        dim: Threads, or a function of the arguments that returns them. By default the sides, as many as the array of
            the highest rank has.
        domains: Intervals for the numbers of some parameters, or fields as "struct.field". Else floats are within
            -2 and 2, integers by value between 0 and the first side, both included, and those in arrays are
            positions on it.
        strategies: Strategies for some parameters or fields, which replace all this.
        dtype: What generic parameters become.
        max_side: The largest side.
        device: Where the arrays are.

    Raises:
        ArgumentError: A name in `domains` or `strategies` is no parameter, or a parameter has a type for which a
            strategy must be given.
    """
    st = require_hypothesis()
    given = dict(strategies or {})
    intervals = dict(domains or {})
    parameters = [(name, _concrete(name, kind, dtype, given)) for name, kind in kernel.parameters]
    _require_known(kernel, parameters, {*given, *intervals})
    highest = max((kind.ndim for kind in _all_types(parameters) if _is_array(kind)), default=1)

    @st.composite  # type: ignore[untyped-decorator]  # hypothesis is optional
    def drawn_arguments(draw: Any) -> KernelArguments:
        sides = draw(st.lists(st.integers(1, max_side), min_size=highest, max_size=highest))
        chosen = {name: draw(_argument(name, kind, sides, intervals, given, device)) for name, kind in parameters}
        return KernelArguments(_dim(dim, sides, chosen), chosen)

    return drawn_arguments()


def _filled(dtype: Any, shape: Any, inner: Any, domain: Any, requires_grad: bool, device: Any) -> Any:
    st = require_hypothesis()
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    count = int(np.prod((*extents, *inner), dtype=int))
    scalar = getattr(dtype, "scalar", dtype)
    kind = wp.empty((0,), dtype=scalar).numpy().dtype

    def make(flat: list[Any]) -> Any:
        filled = np.array(flat, dtype=kind).reshape((*extents, *inner))
        has_gradient = requires_grad and kind.kind == "f"
        return wp.array(filled, dtype=dtype, shape=extents, device=device, requires_grad=has_gradient)

    return st.lists(numbers(scalar, domain), min_size=count, max_size=count).map(make)


def _argument(name: str, kind: Any, sides: list[int], domains: Any, given: Any, device: Any) -> Any:
    st = require_hypothesis()
    if name in given:
        return given[name]
    if isinstance(kind, Struct):
        fields = {
            field: _argument(f"{name}.{field}", inner, sides, domains, given, device)
            for field, inner in kind.fields.items()
        }
        return st.fixed_dictionaries(fields).map(lambda chosen: kind(**chosen))
    domain = domains.get(name)
    scalar = wp.empty((0,), dtype=kind.dtype if _is_array(kind) else kind).numpy().dtype
    if domain is None and scalar.kind in "iu":
        domain = (0, sides[0] - 1 if _is_array(kind) else sides[0])
    if _is_array(kind):
        return arrays(kind.dtype, tuple(sides[: kind.ndim]), domain, device=device)
    return values(kind, domain)


def _concrete(name: str, kind: Any, dtype: Any, given: Mapping[str, Any]) -> Any:
    """Replace a generic type."""
    if name in given:
        return kind
    if kind is Any or isinstance(kind, TypeVar):
        return dtype
    if isinstance(kind, ArrayType) and (kind.dtype is Any or isinstance(kind.dtype, TypeVar)):
        return ArrayType(dtype, kind.ndim)
    inner = kind.dtype if isinstance(kind, ArrayType) else kind
    if isinstance(kind, IndexedArrayType) or getattr(inner, "generic", False):
        raise ArgumentError(f"arguments: give a strategy for parameter '{name}', which is {type_name(kind)}")
    return kind


def _require_known(kernel: Any, parameters: Sequence[tuple[str, Any]], names: set[str]) -> None:
    known = set()
    for name, kind in parameters:
        known.add(name)
        if isinstance(kind, Struct):
            known.update(f"{name}.{field}" for field in kind.fields)
    for name in sorted(names - known):
        raise ArgumentError(f"kernel '{kernel.key}' has no parameter '{name}'; there are {', '.join(sorted(known))}")


def _all_types(parameters: Sequence[tuple[str, Any]]) -> list[Any]:
    found: list[Any] = []
    for _, kind in parameters:
        found.extend(kind.fields.values() if isinstance(kind, Struct) else [kind])
    return found


def _dim(dim: Any, sides: list[int], drawn: dict[str, Any]) -> tuple[int, ...]:
    chosen = dim(drawn) if callable(dim) else dim
    if chosen is None:
        return tuple(sides)
    return (chosen,) if isinstance(chosen, int) else tuple(chosen)


def _is_array(kind: Any) -> bool:
    return isinstance(kind, (ArrayType, IndexedArrayType))


def _described(name: str, value: Any) -> list[str]:
    if isinstance(value, wp.codegen.StructInstance):
        return [line for field in dir(value) for line in _described(f"{name}.{field}", getattr(value, field))]
    if isinstance(value, (wp.array, wp.indexedarray)):
        return [f"{name} = {value.numpy().tolist()} ({type_name(value.dtype)})"]
    return [f"{name} = {value}"]
