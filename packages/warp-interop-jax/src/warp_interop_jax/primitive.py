"""One primitive of JAX for every call of a kernel, with the rules for jvp, transposition and vmap."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, Protocol

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from warp_interop_jax.platforms import PLATFORMS
from warp_interop_jax.varying import type_like, vary_alike

_COMPILED_CALLS: Final = 4096


class Call(Hashable, Protocol):
    """What an equation of the primitive does. Calls are hashable: JAX compiles equal ones once."""

    @property
    def results(self) -> tuple[Any, ...]:
        """Return shapes and dtypes of the results, as `jax.ShapeDtypeStruct`."""

    @property
    def changed(self) -> tuple[int, ...]:
        """Return the numbers of the operands that share memory with results."""

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the results, by operations of JAX, for one of `PLATFORMS`."""

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Return the call for the directions of those results that are of floating point.

        After what `Derived` names it takes the directions of the operands `perturbed`, in which it is linear.
        """

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Return the call for the cotangents of the operands `linear`.

        After what `Derived` names it takes the cotangents of the results.
        """


@dataclass(frozen=True)
class Derived:
    """A call that is made of another, and which of the other's operands and results it takes first."""

    call: Call
    operands: tuple[int, ...]
    results: tuple[int, ...] = ()


call_p: Final = Primitive("warp_call")
call_p.multiple_results = True


def bind(call: Call, operands: Sequence[Any]) -> list[Any]:
    """Apply a call to operands, which may be traced."""
    found: list[Any] = call_p.bind(*vary_alike(operands), call=call)
    return found


def is_float(value: Any) -> bool:
    """Tell whether an array or its shape and dtype has derivatives."""
    return bool(jnp.issubdtype(value.dtype, jnp.floating))


@lru_cache(_COMPILED_CALLS)
def _compiled(call: Call) -> Any:
    return jax.jit(lambda *operands: call_p.bind(*operands, call=call))


def _run(*operands: Any, call: Call) -> Any:
    return _compiled(call)(*operands)


def _result_types(*operands: Any, call: Call) -> list[Any]:
    return [type_like(operands, result) for result in call.results]


def _lowered(*operands: Any, call: Call, platform: str) -> list[Any]:
    return call.apply(*operands, platform=platform)


# ---------------------------------------------------------------------------------------------------- derivatives


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call) -> tuple[Any, Any]:
    results = bind(call, primals)
    perturbed = tuple(
        number
        for number, tangent in enumerate(tangents)
        if not isinstance(tangent, ad.Zero) and is_float(primals[number])
    )
    if not perturbed:
        return results, [_no_direction(result) for result in results]
    made = call.tangent(perturbed)
    operands = [primals[number] for number in made.operands]
    operands += [results[number] for number in made.results]
    directions = iter(bind(made.call, [*operands, *(tangents[number] for number in perturbed)]))
    return results, [next(directions) if is_float(result) else _no_direction(result) for result in results]


def _no_direction(result: Any) -> Any:
    kind = jax.typeof(result) if hasattr(jax, "typeof") else jax.core.get_aval(result)
    return ad.Zero(kind.to_tangent_aval())


def _transpose(cotangents: Sequence[Any], *operands: Any, call: Call) -> list[Any]:
    linear = tuple(number for number, operand in enumerate(operands) if ad.is_undefined_primal(operand))
    made = call.transposed(linear)
    known = [operands[number] for number in made.operands]
    given = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    found = dict(zip(linear, bind(made.call, [*known, *given]), strict=True))
    return [found.get(number) for number in range(len(operands))]


# ---------------------------------------------------------------------------------------------------- vmap


@dataclass(frozen=True)
class Batched:
    """A call for every element of a batch. Operands have the batch along an axis, or None; results along the first."""

    call: Call
    axes: tuple[int | None, ...]
    size: int

    @property
    def results(self) -> tuple[Any, ...]:
        """Return shapes and dtypes of the results."""
        return tuple(jax.ShapeDtypeStruct((self.size, *result.shape), result.dtype) for result in self.call.results)

    @property
    def changed(self) -> tuple[int, ...]:
        """Return the operands that share memory with results."""
        return self.call.changed

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the results."""
        apply = partial(self.call.apply, platform=platform)
        found: list[Any] = jax.vmap(apply, in_axes=self.axes, axis_size=self.size)(*operands)
        return found

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Return the call for directions, batched as what they are directions of."""
        made = self.call.tangent(perturbed)
        axes = (*self._axes_of(made.operands), *(0 for _ in made.results), *self._axes_of(perturbed))
        return replace(made, call=Batched(made.call, axes, self.size))

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Return the call for cotangents; those of an operand that is not batched are summed."""
        made = self.call.transposed(linear)
        axes = (*self._axes_of(made.operands), *(0 for _ in self.call.results))
        return replace(made, call=_BatchedTransposed(made.call, axes, self.size, self._axes_of(linear)))

    def _axes_of(self, operands: tuple[int, ...]) -> tuple[int | None, ...]:
        return tuple(self.axes[number] for number in operands)


@dataclass(frozen=True)
class _BatchedTransposed(Batched):
    """A batched call whose results are where the operands were that they are cotangents of."""

    places: tuple[int | None, ...]

    @property
    def results(self) -> tuple[Any, ...]:
        return tuple(
            jax.ShapeDtypeStruct(_with_axis(result.shape, place, self.size), result.dtype)
            for result, place in zip(self.call.results, self.places, strict=True)
        )

    @property
    def changed(self) -> tuple[int, ...]:
        return ()

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        found = super().apply(*operands, platform=platform)
        return [
            result.sum(0) if place is None else jnp.moveaxis(result, 0, place)
            for result, place in zip(found, self.places, strict=True)
        ]

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        # No call for cotangents wants to know its results.
        made = self.call.tangent(perturbed)
        axes = (*self._axes_of(made.operands), *self._axes_of(perturbed))
        return replace(made, call=_BatchedTransposed(made.call, axes, self.size, self.places))

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        # A sum over the batch is transposed by giving its cotangent to every element.
        made = self.call.transposed(linear)
        axes = (*self._axes_of(made.operands), *self.places)
        return replace(made, call=_BatchedTransposed(made.call, axes, self.size, self._axes_of(linear)))


def _with_axis(shape: tuple[int, ...], axis: int | None, size: int) -> tuple[int, ...]:
    return shape if axis is None else (*shape[:axis], size, *shape[axis:])


def _batch(operands: Sequence[Any], axes: Sequence[Any], *, call: Call) -> tuple[list[Any], list[int]]:
    size = next(operand.shape[axis] for operand, axis in zip(operands, axes, strict=True) if axis is not None)
    given, places = list(operands), list(axes)
    for number in call.changed:
        if places[number] is None:
            # Each element of the batch overwrites its own.
            given[number] = jnp.broadcast_to(given[number], (size, *given[number].shape))
            places[number] = 0
    found = bind(Batched(call, tuple(places), size), given)
    return found, [0] * len(found)


call_p.def_impl(_run)
call_p.def_abstract_eval(_result_types)
ad.primitive_jvps[call_p] = _jvp
ad.primitive_transposes[call_p] = _transpose
batching.primitive_batchers[call_p] = _batch
for _platform in PLATFORMS:
    _rule = mlir.lower_fun(partial(_lowered, platform=_platform), multiple_results=True)
    mlir.register_lowering(call_p, _rule, platform=_platform)
