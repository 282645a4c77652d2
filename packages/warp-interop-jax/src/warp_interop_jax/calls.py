"""The calls that a kernel gives: itself, its tangent, its adjoint, and the tangent of its adjoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import jax
import numpy as np

from warp.entries import ArgumentBlock, KernelEntries
from warp.errors import AutogradError
from warp_interop_jax.plan import Layout, Plan, PlanBuilder
from warp_interop_jax.platforms import handler
from warp_interop_jax.primitive import Derived, is_float
from warp_interop_jax.varying import type_like, types_of

# Derivatives are batched without copies of what is not batched, whatever the kernel's own method.
_DERIVATIVE_METHOD: Final = "expand_dims"


@dataclass(frozen=True)
class ArrayPlace:
    """An array parameter at a call."""

    number: int
    """Its number among all parameters."""
    layout: Layout
    is_output: bool
    is_changed: bool
    """Whether it is an input that is given back as it is after the launch."""

    @cached_property
    def type(self) -> Any:
        """Return shape and dtype in JAX."""
        return jax.ShapeDtypeStruct(self.layout.full, self.layout.dtype)

    @property
    def is_float(self) -> bool:
        """Tell whether the array has derivatives."""
        return is_float(self.type)


@dataclass(frozen=True)
class Site:
    """A call of a kernel: everything but the data."""

    entries: KernelEntries
    block: ArgumentBlock
    doubled: ArgumentBlock
    """The arguments of forward mode."""
    arrays: tuple[ArrayPlace, ...]
    dim: tuple[int, ...]
    vmap_method: str | None

    @cached_property
    def inputs(self) -> tuple[ArrayPlace, ...]:
        """Return the arrays that the caller passes."""
        return tuple(array for array in self.arrays if not array.is_output)

    @cached_property
    def results(self) -> tuple[ArrayPlace, ...]:
        """Return the arrays that the caller gets."""
        return tuple(array for array in self.arrays if array.is_output or array.is_changed)

    @cached_property
    def float_results(self) -> tuple[ArrayPlace, ...]:
        """Return the results that have derivatives."""
        return tuple(array for array in self.results if array.is_float)

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """Return the numbers of the results whose values the adjoint reads."""
        try:
            needed = self.entries.needed(self.dim)
        except AutogradError:
            return ()  # forward mode may be right all the same; the adjoint says what is wrong
        if self.entries.is_recorded(self.dim):
            return ()  # the adjoint runs the kernel again
        return tuple(number for number, array in enumerate(self.results) if array.number in needed)

    def builder(self, platform: str) -> PlanBuilder:
        """Return an empty plan."""
        return PlanBuilder(self.entries, handler(platform).compiled(self.entries))

    def run(self, platform: str, plan: Plan, operands: Sequence[Any], count: int, **options: Any) -> list[Any]:
        """Call the handler; return the first `count` results."""
        known = handler(platform)
        given = types_of(operands)
        types = [type_like(given, jax.ShapeDtypeStruct(layout.full, layout.dtype)) for layout in plan.results]
        call = jax.ffi.ffi_call(known.target(plan), types, **options)
        found = call(*operands, plan=np.int64(known.add(plan)))
        return list(found)[:count]


@dataclass(frozen=True)
class Forward:
    """The kernel. Operands are its inputs, results those that it changes and its outputs."""

    site: Site

    @property
    def results(self) -> tuple[Any, ...]:
        """Return shapes and dtypes of the results."""
        return tuple(array.type for array in self.site.results)

    @cached_property
    def changed(self) -> tuple[int, ...]:
        """Return the operands that share memory with results."""
        return tuple(number for number, array in enumerate(self.site.inputs) if array.is_changed)

    def plan(self, platform: str) -> Plan:
        """Return what the handler does."""
        site = self.site
        builder = site.builder(platform)
        inputs = {array.number: builder.add_input(array.layout) for array in site.inputs}
        results = {
            array.number: builder.add_result(array.layout, inputs.get(array.number, -1)) for array in site.results
        }
        values = inputs | results
        arrays = [(array.number, array.layout, values[array.number], None) for array in site.arrays]
        builder.launch(builder.compiled.forward(site.dim), site.dim, site.block, arrays)
        return builder.build()

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the results."""
        aliases = {number: place for place, number in enumerate(self.changed)}
        method = self.site.vmap_method
        count = len(self.site.results)
        return self.site.run(
            platform, self.plan(platform), operands, count, vmap_method=method, input_output_aliases=aliases
        )

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Return forward mode."""
        wanted = self.site.wanted
        given = tuple(range(len(self.site.float_results)))
        return Derived(Tangent(self.site, wanted, perturbed, given), tuple(range(len(self.site.inputs))), wanted)

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Raise AutogradError: a kernel is not known to be linear."""
        raise AutogradError(f"kernel '{self.site.entries.kernel.key}' is not linear and cannot be transposed")


@dataclass(frozen=True)
class _Derivative:
    """What is linear in the operands that follow the inputs and the results `wanted`."""

    site: Site
    wanted: tuple[int, ...]

    changed = ()

    @property
    def _first(self) -> int:
        """Return the number of the first operand that it is linear in."""
        return len(self.site.inputs) + len(self.wanted)


@dataclass(frozen=True)
class Tangent(_Derivative):
    """Forward mode. Operands are the inputs, the results `wanted` by the adjoint, and directions of `perturbed`.

    Results are the directions of the results of floating point whose numbers are `given`.
    """

    perturbed: tuple[int, ...]
    given: tuple[int, ...]

    @property
    def results(self) -> tuple[Any, ...]:
        """Return shapes and dtypes of the results."""
        return tuple(self.site.float_results[number].type for number in self.given)

    def plan(self, platform: str) -> Plan:
        """Return what the handler does. Raises AutogradError, which names the lines, where there is no forward mode."""
        site = self.site
        builder = site.builder(platform)
        values = {array.number: builder.add_input(array.layout) for array in site.inputs}
        moved = [site.inputs[number] for number in self.perturbed]
        directions = {array.number: builder.add_input(array.layout) for array in moved}
        first = [site.float_results[number] for number in self.given]
        for array in [*first, *(array for array in site.float_results if array not in first)]:
            directions[array.number] = builder.add_result(array.layout, directions.get(array.number, -1))
        for array in site.results:
            values[array.number] = builder.add_result(array.layout, values.get(array.number, -1))
        arrays: list[Any] = [(array.number, array.layout, values[array.number], None) for array in site.arrays]
        shift = len(site.entries.types)
        arrays += [(array.number + shift, array.layout, directions.get(array.number), None) for array in site.arrays]
        builder.launch(builder.compiled.tangent(site.dim), site.dim, site.doubled, arrays, "tangent of ")
        return builder.build()

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the directions of the results of floating point."""
        used = (*operands[: len(self.site.inputs)], *operands[self._first :])
        return self.site.run(platform, self.plan(platform), used, len(self.results), vmap_method=_DERIVATIVE_METHOD)

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Return this call, which is linear in directions. AutogradError if something else is perturbed."""
        if any(number < self._first for number in perturbed):
            raise AutogradError(
                f"kernel '{self.site.entries.kernel.key}': forward mode of forward mode is not possible; take jax.jvp "
                "of jax.grad, as jax.hessian does"
            )
        kept = tuple(self.perturbed[number - self._first] for number in perturbed)
        return Derived(replace(self, perturbed=kept), tuple(range(self._first)))

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Return the adjoint for the inputs whose directions these are. AutogradError for other operands."""
        if any(number < self._first for number in linear):
            raise AutogradError(f"kernel '{self.site.entries.kernel.key}': only directions can be transposed")
        sought = tuple(self.perturbed[number - self._first] for number in linear)
        return Derived(Adjoint(self.site, self.wanted, sought, self.given), tuple(range(self._first)))


@dataclass(frozen=True)
class Adjoint(_Derivative):
    """The adjoint. Operands are the inputs, the results `wanted`, and the cotangents of the results `given`.

    Those are numbers among the results of floating point. Results are the cotangents of the inputs `sought`.
    """

    sought: tuple[int, ...]
    given: tuple[int, ...]

    @property
    def results(self) -> tuple[Any, ...]:
        """Return shapes and dtypes of the results."""
        return tuple(self.site.inputs[number].type for number in self.sought)

    def plan(self, platform: str) -> Plan:
        """Return what the handler does. Raises AutogradError, which names the lines, where there is no adjoint."""
        site = self.site
        builder = site.builder(platform)
        values = {array.number: builder.add_input(array.layout) for array in site.inputs}
        values.update({site.results[n].number: builder.add_input(site.results[n].layout) for n in self.wanted})
        seeded = [site.float_results[n] for n in self.given]
        given = {array.number: builder.add_input(array.layout) for array in seeded}
        gradients = {
            site.inputs[n].number: builder.add_result(site.inputs[n].layout, given.get(site.inputs[n].number, -1))
            for n in self.sought
        }
        for array in site.float_results:
            if array.number not in gradients:
                gradients[array.number] = builder.add_result(array.layout, given.get(array.number, -1))
        backward = builder.compiled.backward(site.dim)
        self._run_again(platform, builder, values)
        arrays = [
            (array.number, array.layout, values.get(array.number), gradients.get(array.number)) for array in site.arrays
        ]
        builder.launch(backward, site.dim, site.block, arrays, "adjoint of ")
        return builder.build()

    def _run_again(self, platform: str, builder: PlanBuilder, values: dict[int, int]) -> None:
        """Run the kernel, where its adjoint needs what it overwrites, on copies, which take the place of `values`."""
        site = self.site
        recording = builder.compiled.recording(site.dim)
        if recording is None:
            return
        for array in site.results:
            values[array.number] = builder.add_result(array.layout, values.get(array.number, -1))
        handler(platform).add_record(builder, recording, int(np.prod(site.dim, dtype=np.int64)))
        arrays = [(array.number, array.layout, values[array.number], None) for array in site.arrays]
        builder.launch(recording.entry, site.dim, site.block, arrays)

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the cotangents of the inputs sought."""
        return self.site.run(platform, self.plan(platform), operands, len(self.sought), vmap_method=_DERIVATIVE_METHOD)

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Return how the cotangents change: this call again where only cotangents change."""
        if all(number >= self._first for number in perturbed):
            kept = tuple(self.given[number - self._first] for number in perturbed)
            return Derived(replace(self, given=kept), tuple(range(self._first)))
        made = AdjointTangent(self.site, self.wanted, self.sought, self.given, perturbed)
        return Derived(made, tuple(range(self._first + len(self.given))))

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Return forward mode, whose directions are those of the inputs sought. AutogradError for other operands."""
        if any(number < self._first for number in linear):
            raise AutogradError(f"kernel '{self.site.entries.kernel.key}': only cotangents can be transposed")
        kept = tuple(self.given[number - self._first] for number in linear)
        return Derived(Tangent(self.site, self.wanted, self.sought, kept), tuple(range(self._first)))


@dataclass(frozen=True)
class AdjointTangent:
    """Forward mode of the adjoint. Operands are those of the adjoint, and directions of those `perturbed`."""

    site: Site
    wanted: tuple[int, ...]
    sought: tuple[int, ...]
    given: tuple[int, ...]
    perturbed: tuple[int, ...]

    changed = ()

    @property
    def results(self) -> tuple[Any, ...]:
        """Return shapes and dtypes of the results."""
        return tuple(self.site.inputs[number].type for number in self.sought)

    def plan(self, platform: str) -> Plan:
        """Return what the handler does. Raises AutogradError, which names the lines, where there is no derivative."""
        site = self.site
        if site.entries.is_recorded(site.dim):
            raise AutogradError(
                f"kernel '{site.entries.kernel.key}' overwrites what it reads: it has no second derivative"
            )
        builder = site.builder(platform)
        operands = [
            *site.inputs,
            *(site.results[number] for number in self.wanted),
            *(site.float_results[number] for number in self.given),
        ]
        first = len(site.inputs) + len(self.wanted)
        buffers = [builder.add_input(array.layout) for array in operands]
        moved = {number: builder.add_input(operands[number].layout) for number in self.perturbed}
        values = {operands[n].number: buffers[n] for n in range(first)}
        # A changed input is first among the operands as it was, then as it is after the launch.
        value_moves = {operands[n].number: moved.get(n) for n in range(first)}
        seeds = {operands[n].number: buffers[n] for n in range(first, len(operands))}
        seed_moves = {operands[n].number: moved[n] for n in range(first, len(operands)) if n in moved}
        sought = [site.inputs[number] for number in self.sought]
        gradient_moves = {
            array.number: builder.add_result(array.layout, seed_moves.get(array.number, -1)) for array in sought
        }
        rest = [array for array in site.float_results if array.number not in gradient_moves]
        gradient_moves |= {
            array.number: builder.add_result(array.layout, seed_moves.get(array.number, -1)) for array in rest
        }
        gradients = {
            array.number: builder.add_result(array.layout, seeds.get(array.number, -1)) for array in [*sought, *rest]
        }
        entry = builder.compiled.adjoint_tangent(site.dim)
        shift = len(site.entries.types)
        arrays: list[Any] = [
            (array.number, array.layout, values.get(array.number), gradients.get(array.number)) for array in site.arrays
        ]
        arrays += [
            (array.number + shift, array.layout, value_moves.get(array.number), gradient_moves.get(array.number))
            for array in site.arrays
        ]
        builder.launch(entry, site.dim, site.doubled, arrays, "tangent of the adjoint of ")
        return builder.build()

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the directions of the cotangents of the inputs sought."""
        return self.site.run(platform, self.plan(platform), operands, len(self.sought), vmap_method=_DERIVATIVE_METHOD)

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Raise AutogradError: there are no third derivatives."""
        raise AutogradError(f"kernel '{self.site.entries.kernel.key}': third derivatives are not possible")

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Raise AutogradError: there is no reverse mode of reverse mode."""
        raise AutogradError(
            f"kernel '{self.site.entries.kernel.key}': reverse mode of reverse mode is not possible; take forward mode "
            "of reverse mode, as jax.hessian does: jax.jvp of jax.grad"
        )
