"""The memory that random kernels run on: parameters, their initial values, and which of them overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

Memory = dict[str, np.ndarray]

# Parameters: name to dtype and shape. `x`, `pts` and `n` are only read, `also` may be a part of another array.
ARRAYS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "x": ("float64", (5,)),
    "pts": ("vec3d", (3,)),
    "n": ("int32", (4,)),
    "out": ("float64", (5,)),
    "acc": ("float64", (4,)),
    "vout": ("vec3d", (3,)),
    "grid": ("float64", (3, 4)),
    "bodies": ("Body", (3,)),
    "counter": ("int32", (2,)),
    "also": ("float64", (3,)),
}
BODY = np.dtype([("a", np.float64), ("v", np.float64, 3), ("k", np.int32)], align=True)

Overlap = tuple[str, Callable[[np.ndarray], np.ndarray]]
# What `also` can be: memory of its own, or a view of another parameter.
OVERLAPS: Mapping[str, Overlap | None] = {
    "apart": None,
    "out": ("out", lambda array: array[1:4]),
    "acc": ("acc", lambda array: array[1:]),
    "row": ("grid", lambda array: array[1][:3]),
    "column": ("grid", lambda array: array[:, 2]),
    "x": ("x", lambda array: array[2:5]),
}
SHAPES = ((3,), (2, 2), (1,))


@dataclass(frozen=True)
class Inputs:
    """Seed of the memory that a program starts with, and how it is launched."""

    seed: int
    shape: tuple[int, ...] = (3,)
    overlap: str = "apart"

    @property
    def may_alias(self) -> bool:
        return OVERLAPS[self.overlap] is not None

    def memory(self) -> Memory:
        """Make fresh memory for every parameter: floats in -1 to 1, trip counts up to 9."""
        rng = np.random.default_rng(self.seed)
        return self.overlapped({name: _random(rng, dtype, shape) for name, (dtype, shape) in ARRAYS.items()})

    def seeds(self) -> Memory:
        """Make random gradients of the final memory; integers get zero."""
        rng = np.random.default_rng(self.seed + 1)
        memory = {name: np.zeros_like(array) for name, array in self.memory().items()}
        for _, leaf in leaves(memory):
            leaf[...] = rng.uniform(-1.0, 1.0, leaf.shape)
        return self.overlapped({name: array for name, array in memory.items() if ARRAYS[name][0] != "int32"})

    def overlapped(self, memory: Memory) -> Memory:
        """Let `also` be the part of another array that it shares."""
        overlap = OVERLAPS[self.overlap]
        if overlap is not None:
            memory["also"] = overlap[1](memory[overlap[0]])
        return memory


def leaves(memory: Memory, overlap: str = "apart") -> Iterator[tuple[str, np.ndarray]]:
    """Give the arrays of floats, fields of structs as views of their own; `also` only if its memory is its own."""
    for name, array in memory.items():
        if name == "also" and OVERLAPS[overlap] is not None:
            continue
        if array.dtype.names is not None:
            yield from ((f"{name}.{field}", array[field]) for field in array.dtype.names if field != "k")
        elif array.dtype.kind == "f":
            yield name, array


def plain(memory: Memory) -> Iterator[tuple[str, np.ndarray]]:
    """Give everything in memory as arrays without fields."""
    for name, array in memory.items():
        if array.dtype.names is None:
            yield name, array
        else:
            yield from ((f"{name}.{field}", array[field]) for field in array.dtype.names)


def _random(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "int32":
        return rng.integers(0, 10, shape).astype(np.int32)
    if dtype == "vec3d":
        return rng.uniform(-1.0, 1.0, (*shape, 3))
    if dtype == "float64":
        return rng.uniform(-1.0, 1.0, shape)
    bodies = np.zeros(shape, BODY)
    bodies["a"], bodies["v"] = rng.uniform(-1.0, 1.0, shape), rng.uniform(-1.0, 1.0, (*shape, 3))
    bodies["k"] = rng.integers(0, 5, shape)
    return bodies
