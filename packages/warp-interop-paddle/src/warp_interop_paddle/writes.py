"""Who wrote a tensor: Warp tells Paddle, and learns from Paddle."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

_SAMPLES_OF_DIMENSION: Final = (1, 64, 8, 4, 3)


def note_write(tensor: Any) -> None:
    """Let autograd see that a tensor is written, so that it refuses to use values saved before."""
    tensor._bump_inplace_version()


def version(tensor: Any) -> tuple[Hashable, Hashable] | None:
    """Return the address of a tensor's block of memory, and what changes when Paddle writes the tensor.

    Paddle counts its operations in place, but not what `set_value`, `copy_` and its optimisers write: on the CPU these
    are noticed by some of the elements.
    """
    pointer = tensor.data_ptr()
    if not pointer:
        return None
    sample = _sample(tensor, pointer) if tensor.place.is_cpu_place() else b""
    return pointer - tensor.offset, (tensor.inplace_version, sample)


def _sample(tensor: Any, pointer: int) -> bytes:
    """Return the bytes of elements at regular distances."""
    shape, size = tensor.shape, tensor.element_size()
    if not all(shape):
        return b""
    strides = [size * stride for stride in tensor.strides]
    extent = size + sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * extent).from_address(pointer)
    samples = _SAMPLES_OF_DIMENSION[min(len(shape), len(_SAMPLES_OF_DIMENSION) - 1)]
    steps = tuple([slice(None, None, max(1, count // samples)) for count in shape])
    elements: np.ndarray[Any, Any] = np.ndarray(shape, f"V{size}", memory, 0, strides)
    return elements[steps].tobytes()
