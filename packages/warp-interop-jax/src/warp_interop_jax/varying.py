"""Along which axes of a mesh arrays vary inside `jax.shard_map`, where this version of JAX keeps account of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec


def type_like(operands: Sequence[Any], result: Any) -> Any:
    """Return the type of a result that varies as the operands do, which are all alike, given their types."""
    for type in operands:
        if axes_of(type):
            name = "manual_axis_type" if hasattr(type, "manual_axis_type") else "vma"
            sharding = jax.sharding.NamedSharding(type.sharding.mesh, PartitionSpec(*(None,) * len(result.shape)))
            options = {name: getattr(type, name), "sharding": sharding}
            return jax.core.ShapedArray(result.shape, result.dtype, **options)
    return jax.core.ShapedArray(result.shape, result.dtype)


def vary_alike(operands: Sequence[Any]) -> Sequence[Any]:
    """Let all operands vary along the same axes, so that the cotangents of the others are summed over the devices."""
    if not hasattr(jax, "typeof"):
        return operands
    found = [axes_of(jax.typeof(operand)) for operand in operands]
    axes = frozenset[Any]().union(*found)
    if not axes:
        return operands
    return [
        operand if known == axes else _vary(operand, tuple(sorted(axes - known)))
        for operand, known in zip(operands, found, strict=True)
    ]


def types_of(operands: Sequence[Any]) -> list[Any]:
    """Return the types of operands, where JAX can tell them."""
    return [jax.typeof(operand) for operand in operands] if hasattr(jax, "typeof") else []


def axes_of(type: Any) -> frozenset[Any]:
    """Return the axes that arrays of a type vary along."""
    manual = getattr(type, "manual_axis_type", None)
    axes: frozenset[Any] = getattr(type, "vma", frozenset()) if manual is None else manual.varying
    return axes


def _vary(operand: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(operand, axes, to="varying")
    return jax.lax.pvary(operand, axes)
