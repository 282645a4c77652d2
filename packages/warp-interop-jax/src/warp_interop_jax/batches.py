"""The elements of a batch, in buffers whose dimensions before their own are those of batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from warp_interop_jax.callback import Buffer


def each(buffers: Sequence[Buffer], ranks: Sequence[int]) -> Iterator[list[Buffer]]:
    """Yield for each element of the batch its part of every buffer, given how many dimensions are a buffer's own.

    Buffers without a dimension of the batch, or with one of 1, are shared.
    """
    leading = [buffer.shape[: len(buffer.shape) - rank] for buffer, rank in zip(buffers, ranks, strict=True)]
    for index in np.ndindex(np.broadcast_shapes(*leading)):
        yield [_part(buffer, dims, index) for buffer, dims in zip(buffers, leading, strict=True)]


def _part(buffer: Buffer, dims: tuple[int, ...], index: tuple[int, ...]) -> Buffer:
    place = 0
    for extent, number in zip(dims, index[len(index) - len(dims) :], strict=True):
        place = place * extent + (0 if extent == 1 else number)
    shape = buffer.shape[len(dims) :]
    return replace(buffer, pointer=buffer.pointer + place * math.prod(shape) * buffer.dtype.itemsize, shape=shape)
