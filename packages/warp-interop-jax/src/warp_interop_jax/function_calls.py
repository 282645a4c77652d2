"""The calls that a Python function of launches gives: itself, its tangent and its adjoint."""

from __future__ import annotations

import hashlib
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Final

import jax
import numpy as np

import warp as wp
from warp.errors import AutogradError
from warp.operators import Computation
from warp_interop_jax.batches import each
from warp_interop_jax.callback import Buffer, CallContext, array_of, register_callback
from warp_interop_jax.plan import Layout
from warp_interop_jax.primitive import Derived, is_float
from warp_interop_jax.varying import type_like, types_of

_TARGETS: Final = {True: "warp_function", False: "warp_function_without_graph"}
_lock: Final = threading.Lock()
_calls: Final[dict[int, _FunctionCall]] = {}
"""Calls by the key that they carry."""
_keys: Final[dict[_FunctionCall, int]] = {}
_graphs: Final[list[Any]] = []
"""What graphs that XLA has captured use; XLA does not tell when one is gone."""


@dataclass(frozen=True)
class FunctionSite:
    """A call of a function: everything but the data. Parameters are numbered, inputs first."""

    computation: Computation = field(repr=False)
    name: str
    layouts: tuple[Layout | None, ...]
    """Those of arrays; None for values."""
    types: tuple[Any, ...]
    """Types of the elements of arrays."""
    values: tuple[Any, ...] = field(compare=False, repr=False)
    """Those of inputs; None for arrays."""
    text_of_values: str
    is_graph_compatible: bool
    vmap_method: str | None

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Return the numbers of the arrays that the caller passes."""
        return self.computation.array_places

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """Return the numbers of the arrays that are made."""
        return tuple(range(len(self.values), len(self.layouts)))

    @cached_property
    def results(self) -> tuple[int, ...]:
        """Return the numbers of the arrays that the caller gets."""
        return tuple(n for n in self.inputs if self.computation.inputs[n].is_changed) + self.outputs

    @cached_property
    def float_results(self) -> tuple[int, ...]:
        """Return those of the results that have derivatives."""
        return tuple(number for number in self.results if is_float(self.type_of(number)))

    def layout(self, number: int) -> Layout:
        """Return the layout of an array."""
        found = self.layouts[number]
        assert found is not None, "only arrays are asked for"
        return found

    def type_of(self, number: int) -> Any:
        """Return shape and dtype of an array."""
        return jax.ShapeDtypeStruct(self.layout(number).full, self.layout(number).dtype)

    def arguments(self, arrays: Mapping[int, Any]) -> list[Any]:
        """Return the inputs of the function, given their arrays."""
        return [arrays.get(number, value) for number, value in enumerate(self.values)]

    def call(self, arrays: Mapping[int, Any]) -> None:
        """Call the function on arrays by number; a recorder may be listening."""
        self.computation.function(*self.arguments(arrays), *(arrays[number] for number in self.outputs))


@dataclass(frozen=True)
class _FunctionCall(ABC):
    site: FunctionSite

    @property
    @abstractmethod
    def operand_numbers(self) -> Sequence[int]:
        """Return which parameters operands belong to."""

    @property
    @abstractmethod
    def result_numbers(self) -> Sequence[int]:
        """Return which parameters results belong to."""

    @property
    def is_graph_compatible(self) -> bool:
        """Tell whether a CUDA graph may capture the call."""
        return self.site.is_graph_compatible

    @abstractmethod
    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
        """Compute the results of one element of a batch."""

    @property
    def results(self) -> tuple[Any, ...]:
        """Return shapes and dtypes of the results."""
        return tuple(map(self.site.type_of, self.result_numbers))

    @property
    def key(self) -> int:
        """Return a number for the call, which is the same in every process that makes the same calls."""
        with _lock:
            if self not in _keys:
                text = f"{type(self).__name__} {self.site} {self.operand_numbers} {self.result_numbers}"
                # Different functions may look alike.
                _keys[self] = key = next(key for key in _digests(text) if key not in _calls)
                _calls[key] = self
            return _keys[self]

    def _call(self, operands: Sequence[Any], method: str | None, **options: Any) -> list[Any]:
        target = _registered_target(self.is_graph_compatible)
        given = types_of(operands)
        types = [type_like(given, result) for result in self.results]
        call = jax.ffi.ffi_call(target, types, vmap_method=method, **options)
        return list(call(*operands, call=np.int64(self.key)))


def _digests(text: str) -> Iterator[int]:
    for attempt in itertools.count():
        yield int.from_bytes(hashlib.sha256(f"{attempt} {text}".encode()).digest()[:8], "little", signed=True)


@dataclass(frozen=True)
class FunctionForward(_FunctionCall):
    """The function. Operands are its inputs, results those that it changes and its outputs."""

    @property
    def operand_numbers(self) -> Sequence[int]:
        """Return which parameters operands belong to."""
        return self.site.inputs

    @property
    def result_numbers(self) -> Sequence[int]:
        """Return which parameters results belong to."""
        return self.site.results

    @cached_property
    def changed(self) -> tuple[int, ...]:
        """Return the operands that share memory with results."""
        return tuple(place for place, number in enumerate(self.site.inputs) if number in self.site.results)

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the results."""
        aliases = {number: place for place, number in enumerate(self.changed)}
        return self._call(operands, self.site.vmap_method, input_output_aliases=aliases)

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
        """Compute the results of one element of a batch."""
        arrays = _arrays(self.site, self.site.inputs, inputs)
        results = _arrays(self.site, self.site.results, outputs)
        _start(results, arrays)
        self.site.call(arrays | results)

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Return forward mode."""
        call = FunctionTangent(self.site, perturbed)
        return Derived(call, tuple(range(len(self.site.inputs))))

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Raise AutogradError: a function is not known to be linear."""
        raise AutogradError(f"{self.site.name} is not linear and cannot be transposed")


@dataclass(frozen=True)
class FunctionTangent(_FunctionCall):
    """Forward mode. Operands are the inputs and directions of those `perturbed`."""

    perturbed: tuple[int, ...]

    changed = ()

    @property
    def operand_numbers(self) -> Sequence[int]:
        """Return which parameters operands belong to."""
        return (*self.site.inputs, *(self.site.inputs[place] for place in self.perturbed))

    @property
    def result_numbers(self) -> Sequence[int]:
        """Return which parameters results belong to."""
        return self.site.float_results

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the directions of the results of floating point."""
        return self._call(operands, "expand_dims")

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
        """Compute the results of one element of a batch."""
        site = self.site
        count = len(site.inputs)
        arrays = _arrays(site, site.inputs, inputs[:count])
        moved = [site.inputs[place] for place in self.perturbed]
        directions = _arrays(site, moved, inputs[count:])
        given = list(site.inputs)

        def run(*values: Any) -> list[Any]:
            results = {
                number: wp.clone(values[given.index(number)]) if number in given else _zeros(site, number)
                for number in site.results
            }
            site.call(dict(zip(given, values, strict=True)) | results)
            return [results[number] for number in site.float_results]

        tangents = [directions.get(number) for number in given]
        # Forward mode puts its inputs back as they were, and JAX's must not be written.
        products = wp.autograd.jvp(run, inputs=[wp.clone(arrays[number]) for number in given], tangents=tangents)
        for target, product in zip(_arrays(site, site.float_results, outputs).values(), products, strict=True):
            wp.copy(target, product)

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Return this call, which is linear in directions. AutogradError if something else is perturbed."""
        first = len(self.site.inputs)
        if any(number < first for number in perturbed):
            raise AutogradError(f"{self.site.name}: a function has no second derivatives; make a jax_kernel")
        kept = tuple(self.perturbed[number - first] for number in perturbed)
        return Derived(replace(self, perturbed=kept), tuple(range(first)))

    def transposed(self, linear: tuple[int, ...]) -> Derived:
        """Return the adjoint for the inputs whose directions these are."""
        first = len(self.site.inputs)
        sought = tuple(self.perturbed[number - first] for number in linear)
        return Derived(FunctionAdjoint(self.site, sought), tuple(range(first)))


@dataclass(frozen=True)
class FunctionAdjoint(_FunctionCall):
    """The adjoint, by a tape. Operands are the inputs and the cotangents of the results of floating point."""

    sought: tuple[int, ...]

    changed = ()
    # What a tape keeps of loops is known only when they have run, and a capture does not let it look.
    is_graph_compatible = False

    @property
    def operand_numbers(self) -> Sequence[int]:
        """Return which parameters operands belong to."""
        return (*self.site.inputs, *self.site.float_results)

    @property
    def result_numbers(self) -> Sequence[int]:
        """Return which parameters results belong to."""
        return tuple(self.site.inputs[place] for place in self.sought)

    def apply(self, *operands: Any, platform: str) -> list[Any]:
        """Return the cotangents of the inputs sought."""
        return self._call(operands, "expand_dims")

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
        """Compute the results of one element of a batch."""
        site = self.site
        count = len(site.inputs)
        arrays = _arrays(site, site.inputs, inputs[:count])
        seeds = _arrays(site, site.float_results, inputs[count:])
        gradients = _arrays(site, self.result_numbers, outputs)
        for gradient in gradients.values():
            gradient.zero_()
        results = {n: wp.clone(arrays[n]) if n in arrays else _zeros(site, n) for n in site.results}
        site.computation.run_adjoint(
            (),
            site.arguments(arrays),
            list(results.values()),
            [seeds.get(number) for number in site.results],
            [gradients.get(number) for number in range(len(site.values))],
        )

    def tangent(self, perturbed: tuple[int, ...]) -> Derived:
        """Raise AutogradError: there are no second derivatives."""
        raise AutogradError(f"{self.site.name}: a function has no second derivatives; make a jax_kernel")

    transposed = tangent


def _zeros(site: FunctionSite, number: int) -> Any:
    return wp.zeros(site.layout(number).shape, dtype=site.types[number])


def _arrays(site: FunctionSite, numbers: Sequence[int], buffers: Sequence[Buffer]) -> dict[int, Any]:
    return {number: array_of(b, site.types[number]) for number, b in zip(numbers, buffers, strict=True)}


def _start(results: dict[int, Any], inputs: dict[int, Any]) -> None:
    """Let results begin as the inputs that they change, or as zeros."""
    for number, result in results.items():
        if number not in inputs:
            result.zero_()
        elif result.ptr != inputs[number].ptr:
            wp.copy(result, inputs[number])


# ---------------------------------------------------------------------------------------------------- the handler


@cache
def _registered_target(is_graph_compatible: bool) -> str:
    """Return the name of the handler of all functions, which is registered once."""
    name = _TARGETS[is_graph_compatible]
    register_callback(name, _handle, is_graph_compatible)
    return name


def _handle(inputs: list[Buffer], outputs: list[Buffer], attributes: dict[str, Any], context: CallContext) -> None:
    call = _calls.get(attributes["call"])
    if call is None:
        raise LookupError("this process has not traced the function that is called")
    count = len(inputs)
    numbers = [*call.operand_numbers, *call.result_numbers]
    ranks = [len(call.site.layout(number).full) for number in numbers]
    with wp.ScopedDevice(context.device), _on_stream(context):
        for parts in each([*inputs, *outputs], ranks):
            call.run(parts[:count], parts[count:])


@contextmanager
def _on_stream(context: CallContext) -> Iterator[None]:
    """Queue on the stream of a call, after what the current stream has, or for a graph that XLA captures from it."""
    if context.stream is None:
        yield
        return
    stream = wp.Stream(context.device, cuda_stream=context.stream)
    if not stream.is_capturing:
        with wp.ScopedStream(stream):
            yield
        return
    with wp.ScopedCapture(stream=stream, external=True) as capture:
        yield
    _graphs.append(capture.graph)
