"""Gradients before and after a backward pass: seeds, stashes, temporary and retained gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from warp.errors import ArgumentError
from warp.recording import RecordedArray, storage_of
from warp_autograd.entries import Entry

Seed = tuple[RecordedArray, Any]


def collect_seeds(loss: object, grads: object) -> list[Seed]:
    """Return arrays and copies of the gradients to start from; ArgumentError names what is wrong."""
    seeds: list[Seed] = []
    if loss is not None:
        seeds.append(_loss_seed(loss))
    if grads is not None:
        if not isinstance(grads, Mapping):
            raise ArgumentError(f"grads must map arrays to their gradients, got {type(grads).__qualname__}")
        seeds.extend(_given_seed(array, gradient) for array, gradient in grads.items())
    return seeds


def _loss_seed(loss: object) -> Seed:
    array = _expect_array(loss, "loss")
    if math.prod(array.contents.shape) != 1:
        raise ArgumentError(
            f"loss must have exactly one element, got shape {array.shape} of {_name(array.dtype)}; "
            "use grads= for the gradients of several"
        )
    if not array.requires_grad:
        raise ArgumentError(
            f"loss, of {_name(array.dtype)}, has requires_grad=False, so nothing it was computed from has a gradient "
            "through it; make it with requires_grad=True, or pass it in grads="
        )
    return array, array.contents.filled(1.0)


def _given_seed(key: object, gradient: object) -> Seed:
    array = _expect_array(key, "a key of grads")
    wanted = array.contents
    if not isinstance(gradient, (RecordedArray, np.ndarray)):
        raise ArgumentError(f"grads: the gradient must be a warp.array, got {type(gradient).__qualname__}")
    values = gradient if isinstance(gradient, np.ndarray) else gradient.contents
    if values.shape != wanted.shape or values.dtype != wanted.dtype:
        raise ArgumentError(
            f"grads: an array of shape {array.shape} and dtype {_name(array.dtype)} needs a gradient like it, "
            f"got shape {gradient.shape} and dtype {_name(gradient.dtype)}"
        )
    seed = wanted.copy()
    seed.contents.replace(gradient)
    return array, seed


def _expect_array(value: object, name: str) -> RecordedArray:
    if not isinstance(value, RecordedArray):
        raise ArgumentError(f"{name} must be a warp.array, got {type(value).__qualname__}")
    if not value.is_differentiable:
        raise ArgumentError(f"{name} must hold floating-point numbers, got dtype {_name(value.dtype)}")
    return value


def _name(dtype: object) -> str:
    return str(getattr(dtype, "name", dtype))


@contextmanager
def temporary_gradients(arrays: Iterable[RecordedArray], entries: Sequence[Entry]) -> Iterator[None]:
    """Give arrays without a gradient one for the time of a backward pass, all their wrappers the same."""
    attached: list[RecordedArray] = []
    try:
        for array in arrays:
            if not array.requires_grad:
                _attach(array, entries, attached)
        yield
    finally:
        for array in attached:
            array.requires_grad = False


def _attach(array: RecordedArray, entries: Sequence[Entry], attached: list[RecordedArray]) -> None:
    root = array.root()
    owner = array if root.requires_grad else root
    everything = {id(found): found for entry in entries for found in entry.arrays}.values()
    twin = next((other for other in everything if other.requires_grad and other.layout() == owner.layout()), None)
    if twin is None:
        owner.requires_grad = True
    else:
        owner.grad = twin.grad
    attached.append(owner)
    if not array.requires_grad:
        array.requires_grad = True
        attached.append(array)
    for other in everything:
        wrapper = other.root()
        if not other.requires_grad and not wrapper.requires_grad and wrapper.layout() == owner.layout():
            wrapper.grad = owner.grad
            attached.append(wrapper)


@contextmanager
def borrowed_gradients(entries: Sequence[Entry]) -> Iterator[None]:
    """Let a backward pass without seeds consume copies of the gradients that were assigned to results.

    Somebody else has them too: frameworks pass one gradient to several operations. Not where what is left there
    afterwards matters: the gradient of contents that an operation has read before, or one to be retained.
    """
    roots: dict[int, dict[int, RecordedArray]] = {}
    results: dict[int, bool] = {}
    for entry in entries:
        for array in (*entry.reads, *entry.writes, *entry.event.arrays()):
            roots.setdefault(id(storage_of(array)), {})[id(array.root())] = array.root()
        for array in entry.reads:
            results.setdefault(id(storage_of(array)), False)
        for array in entry.writes:
            results.setdefault(id(storage_of(array)), True)
    given = []
    for storage, is_result in results.items():
        (root, *others) = roots[storage].values()
        if is_result and not others and root.requires_grad and root.has_given_grad and not root.retain_grad:
            given.append((root, root.grad))
    try:
        for root, gradient in given:
            root.grad = gradient.contents.copy()
        yield
    finally:
        for root, gradient in given:
            root.grad = gradient


class Stash:
    """Gradients of the arrays that a tape writes, set aside while seeds travel through them."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._taken: list[tuple[Any, Any]] = []
        self._gradients: list[Any] = []
        written = {id(array): array for entry in entries for array in entry.writes}
        seen = set()
        for array in written.values():
            if array.requires_grad:
                layout = array.layout()
                if layout in seen:
                    continue
                seen.add(layout)
                gradient = array.grad
                self._gradients.append(gradient)
                # One after the other, so that elements in two overlapping views are taken once.
                if gradient.contents.may_be_nonzero():
                    self._taken.append((gradient, gradient.contents.copy()))
                    gradient.contents.clear()

    def give_back(self) -> None:
        """Add what was set aside to the gradients."""
        for gradient, values in self._taken:
            gradient.contents.add(values)
        self._taken.clear()

    def drop_travelling(self) -> None:
        """Clear the gradients that have not arrived, after an error."""
        for gradient in self._gradients:
            gradient.contents.clear()


class RetainedGradients:
    """Gradients of intermediate results as they are before their last writer's adjoint consumes them."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        last = {
            array.layout(): (index, array)
            for index, entry in enumerate(entries)
            for array in entry.writes
            if array.retain_grad and array.requires_grad
        }
        self._wanted: dict[int, list[RecordedArray]] = {}
        for index, array in last.values():
            self._wanted.setdefault(index, []).append(array)
        self._kept: list[tuple[Any, Any]] = []

    def keep(self, index: int) -> None:
        """Copy the gradients that the adjoint of an operation is about to consume."""
        for array in self._wanted.get(index, ()):
            self._kept.append((array.grad, array.grad.contents.copy()))

    def give_back(self) -> None:
        """Put the copies back; where views overlap, the last writer's counts."""
        for gradient, values in reversed(self._kept):
            gradient.contents.replace(values)


def plant(seeds: Iterable[Seed]) -> None:
    """Add the seeds to the gradients of their arrays."""
    for array, values in seeds:
        array.grad.contents.add(values)
