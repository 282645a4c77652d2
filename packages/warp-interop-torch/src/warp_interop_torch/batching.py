"""Batches under `torch.vmap`: the operator runs once for every element of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def run_each(run: Callable[..., Any], size: int, in_dims: Sequence[Any], values: Sequence[Any]) -> tuple[Any, Any]:
    """Return stacked results and the dimensions of the batch in them, as a vmap rule does."""
    if size:
        results = [run(*_element(values, in_dims, index)) for index in range(size)]
    else:
        results = [run(*_element_of_none(values, in_dims))]
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results)[:size], 0
    stacked = tuple(torch.stack(parts)[:size] for parts in zip(*results, strict=True))
    return stacked, (0,) * len(stacked)


def _element(values: Sequence[Any], in_dims: Sequence[Any], index: int) -> list[Any]:
    return [
        value.select(dim, index) if isinstance(value, torch.Tensor) and dim is not None else value
        for value, dim in zip(values, in_dims, strict=True)
    ]


def _element_of_none(values: Sequence[Any], in_dims: Sequence[Any]) -> list[Any]:
    """Return what an element of an empty batch would be, with zeros."""
    return [
        value.new_zeros(value.shape[:dim] + value.shape[dim + 1 :])
        if isinstance(value, torch.Tensor) and dim is not None
        else value
        for value, dim in zip(values, in_dims, strict=True)
    ]
