"""The arrays among the arguments of a launch, and whether their memory overlaps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from warp._src.array.array import array
from warp._src.array.indexed import indexedarray
from warp._src.types.signature import is_differentiable
from warp._src.types.struct_type import StructInstance

_FEW_PAIRS = 32


def arrays_in(value: Any) -> list[Any]:
    """The arrays of an argument: members of structs, and what an indexed array is made of."""
    if isinstance(value, array):
        return [value]
    if isinstance(value, indexedarray):
        return [value.data, *indices_in(value)]
    return targets_in(value)


def targets_in(value: Any) -> list[Any]:
    """The arrays of an argument that a kernel can write: the indices of an indexed array are not among them."""
    if isinstance(value, array):
        return [value]
    if isinstance(value, indexedarray):
        return [value.data]
    if isinstance(value, StructInstance):
        return [found for field in value._values.values() for found in arrays_in(field)]
    return []


def indices_in(value: Any) -> list[Any]:
    """The arrays of an argument that hold the indices of indexed arrays."""
    if value.__class__ is array:
        return []
    if isinstance(value, indexedarray):
        return [index for index in value.indices if index is not None]
    if isinstance(value, StructInstance):
        return [found for field in value._values.values() for found in indices_in(field)]
    return []


def find_arrays(
    roots: Iterable[Any], args: Sequence[Any], is_written: bool = False, behind: Sequence[Any] = ()
) -> list[Any]:
    """Find the arrays that access roots name; the unknown root stands for every array, those `behind` arrays too."""
    inside = targets_in if is_written else arrays_in
    found: dict[int, Any] = {}
    for root in roots:
        if root is None:
            found.update((id(a), a) for arg in args for a in inside(arg))
            found.update((id(a), a) for a in behind)
            continue
        value = args[root[0]]
        for name in root[1:]:
            value = getattr(value, str(name), None)
        found.update((id(a), a) for a in inside(value))
    return list(found.values())


def overlaps(args: Sequence[Any], written: Sequence[Any]) -> bool:
    """Tell whether an array that is written shares memory with another argument; the same object twice does."""
    if len(written) * len(args) <= _FEW_PAIRS:
        found = _overlaps_plainly(args, written)
        if found is not None:
            return found
    return any_overlap(written, [a for arg in args for a in arrays_in(arg)])


def _overlaps_plainly(args: Sequence[Any], written: Sequence[Any]) -> bool | None:
    """Compare pair by pair, which is faster for a few arguments; None if arrays may be inside of others."""
    arrays = []
    for arg in args:
        if arg.__class__ is array:
            arrays.append(arg)
        elif isinstance(arg, (indexedarray, StructInstance)):
            return None
        elif isinstance(arg, array):
            arrays.append(arg)
    for target in written:
        low, high = target.bounds
        is_met = False
        for arg in arrays:
            other_low, other_high = arg.bounds
            if low < other_high and other_low < high and low < high and other_low < other_high:
                if is_met or arg is not target:
                    return True
                is_met = True
    return False


def any_overlap(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Tell whether one of `some`, which are among `others`, overlaps another; the same object twice does."""
    wanted = {id(a) for a in some}
    reached = reached_by_wanted = 0
    for low, high, identity in sorted((*a.bounds, id(a)) for a in others):
        if low >= high:
            continue
        is_wanted = identity in wanted
        if low < reached_by_wanted or (is_wanted and low < reached):
            return True
        reached = max(reached, high)
        if is_wanted:
            reached_by_wanted = max(reached_by_wanted, high)
    return False


def memory_of(args: Sequence[Any]) -> list[Any]:
    """The arrays of arguments, and their gradients."""
    arrays = [found for arg in args for found in arrays_in(arg)]
    return [*arrays, *(found.grad for found in arrays if found.requires_grad)]


def coincide(args: Sequence[Any]) -> bool:
    """Tell whether any two arrays among arguments that overlap are views of exactly the same elements."""
    found = [a for arg in args for a in arrays_in(arg)]
    pairs = ((a, b) for a, b in itertools.combinations(found, 2) if _share_bytes(a, b))
    return all(a.layout() == b.layout() for a, b in pairs)


def _share_bytes(a: Any, b: Any) -> bool:
    return bool(max(a.bounds[0], b.bounds[0]) < min(a.bounds[1], b.bounds[1]))


def gradients_disagree(args: Sequence[Any], written: Sequence[Any]) -> bool:
    """Tell whether an array that is written shares memory with another that does not share its gradient likewise."""
    wanted = {id(a) for a in written}
    found = {id(a): a for arg in args for a in arrays_in(arg) if is_differentiable(a.dtype)}.values()
    pairs = itertools.combinations(found, 2)
    return any(_disagree(a, b) for a, b in pairs if id(a) in wanted or id(b) in wanted)


def _disagree(a: Any, b: Any) -> bool:
    (low, high), (other_low, other_high) = a.bounds, b.bounds
    if a.root() is b.root() or max(low, other_low) >= min(high, other_high):
        return False
    grad, other_grad = a.grad, b.grad
    if grad is None or other_grad is None:
        return grad is not other_grad
    return bool(grad.bounds[0] - low != other_grad.bounds[0] - other_low)
