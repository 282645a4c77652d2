"""What the tests of operators run: kernels and functions of launches, with the same in NumPy to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

import warp as wp


@dataclass(frozen=True)
class OperatorCase:
    """An operator's function and options, arguments for it, and what it computes."""

    function: Any
    reference: Callable[..., tuple[Any, ...]]
    """The results for NumPy arrays and values, as a tuple."""
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


@wp.kernel
def wave(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Set y to x sin(x)."""
    i, j = wp.tid()
    y[i, j] = wp.sin(x[i, j]) * x[i, j]


@wp.kernel
def branch(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Iterate i + j + 1 times, with a branch that depends on the value."""
    i, j = wp.tid()
    value = x[i, j]
    for _ in range(i + j + 1):
        value = wp.sin(value) + x[i, j] * value
        if value > x[i, j]:
            value = value * x[i, j]
    y[i, j] = value


@wp.kernel
def scatter(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Add the squares of x to other places of y."""
    i, j = wp.tid()
    wp.atomic_add(y, j % x.shape[0], i % x.shape[1], x[i, j] * x[i, j])


@wp.kernel
def neighbours(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Multiply by the row below, overwriting what was written first."""
    i, j = wp.tid()
    y[i, j] = x[i, j]
    y[i, j] = y[i, j] * x[(i + 1) % x.shape[0], j]


@wp.kernel
def running(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Sum the squares so far, times x, written at every step."""
    i, j = wp.tid()
    total = x[i, 0] - x[i, 0]
    for k in range(j + 1):
        total += x[i, k] * x[i, k]
        y[i, j] = total * x[i, j]


@wp.kernel
def twice_any(x: wp.array(dtype=Any), y: wp.array(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Set y to twice x, whatever its elements are."""
    i = wp.tid()
    y[i] = x[i] + x[i]


@wp.kernel
def write_input(x: wp.array(dtype=Any), y: wp.array(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Write x, which operators do not expect."""
    i = wp.tid()
    x[i] = x[i] + x[i]
    y[i] = x[i]


@wp.kernel
def step(x: wp.array(dtype=Any), y: wp.array(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Set y to x sin(x)."""
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i]


def two_launches(x: wp.array2d(dtype=Any), y: wp.array2d(dtype=Any)) -> None:  # type: ignore[valid-type]  # of kernels
    """Launch one kernel after another."""
    middle: Any = wp.zeros_like(y)
    wp.launch(wave, dim=x.shape, inputs=[x], outputs=[middle])
    wp.launch(neighbours, dim=x.shape, inputs=[middle], outputs=[y])


def _wave(x: Any) -> Any:
    return np.sin(x) * x


def _neighbours(x: Any) -> Any:
    return x * np.roll(x, -1, axis=0)


def _branch(x: Any) -> Any:
    y = np.empty_like(x)
    for (i, j), start in np.ndenumerate(x):
        value = start
        for _ in range(i + j + 1):
            value = np.sin(value) + start * value
            if value > start:
                value = value * start
        y[i, j] = value
    return y


def _scatter(x: Any) -> Any:
    y = np.zeros_like(x)
    for (i, j), value in np.ndenumerate(x):
        y[j % x.shape[0], i % x.shape[1]] += value * value
    return y


PLANES: dict[Any, Callable[[Any], Any]] = {
    wave: _wave,
    branch: _branch,
    scatter: _scatter,
    neighbours: _neighbours,
    running: lambda x: np.cumsum(x * x, axis=1) * x,
    two_launches: lambda x: _neighbours(_wave(x)),
}
"""Functions from x to y of two dimensions and one shape, and what they compute."""


@lru_cache
def operator_cases(scalar: Any) -> dict[str, OperatorCase]:
    """Return cases of all kinds of parameters, for one type of floating-point numbers, by name."""
    return {**_cases_of_elements(scalar), **_cases_of_indices(scalar), **_cases_of_outputs(scalar)}


def _cases_of_elements(scalar: Any) -> dict[str, OperatorCase]:
    vec2, vec3 = wp.types.vector(2, scalar), wp.types.vector(3, scalar)

    @wp.kernel
    def rosenbrock(xy: wp.array(dtype=vec2), z: wp.array(dtype=scalar)) -> None:  # type: ignore[valid-type]  # of kernels
        i = wp.tid()
        x = xy[i][0]
        y = xy[i][1]
        one = scalar(1.0)
        z[i] = (one - x) * (one - x) + scalar(100.0) * (y - x * x) * (y - x * x)

    @wp.kernel
    def turn(v: wp.array(dtype=vec3), axis: vec3, sign: bool, y: wp.array(dtype=vec3)) -> None:  # type: ignore[valid-type]  # of kernels
        i = wp.tid()
        c = wp.cross(axis, v[i])
        if sign:
            c = -c
        y[i] = c

    return {
        "vectors": OperatorCase(
            rosenbrock,
            lambda p: ((1 - p[:, 0]) ** 2 + 100 * (p[:, 1] - p[:, 0] ** 2) ** 2,),
            (_numbers(scalar, 5, 2),),
        ),
        "values": OperatorCase(
            turn,
            lambda v, axis, sign: ((-1 if sign else 1) * np.cross(np.array(axis, v.dtype), v),),
            (_numbers(scalar, 4, 3), (1.0, -2.0, 0.5), True),
        ),
    }


def _cases_of_indices(scalar: Any) -> dict[str, OperatorCase]:
    @wp.kernel
    def pick(table: wp.array(dtype=scalar), index: wp.array(dtype=int), y: wp.array(dtype=scalar)) -> None:  # type: ignore[valid-type]  # of kernels
        i = wp.tid()
        y[i] = table[index[i]] * table[index[i]]

    @wp.kernel
    def count(
        x: wp.array(dtype=scalar),  # type: ignore[valid-type]  # of kernels
        limit: scalar,
        above: wp.array(dtype=int),  # type: ignore[valid-type]  # of kernels
        total: wp.array(dtype=scalar),  # type: ignore[valid-type]  # of kernels
    ) -> None:
        i = wp.tid()
        if x[i] > limit:
            above[i] = 1
            wp.atomic_add(total, 0, x[i] * x[i])

    return {
        "indices": OperatorCase(
            pick,
            lambda table, index: (table[index] ** 2,),
            (_numbers(scalar, 3), np.array([0, 2, 2, 1], np.int32)),
            {"launch_dims": lambda table, index: index.shape[0]},
        ),
        "integers": OperatorCase(
            count,
            lambda x, limit: ((x > limit).astype(np.int32), (x[x > limit] ** 2).sum(keepdims=True)),
            (_numbers(scalar, 6), 0.25),
            {"num_outputs": 2, "output_dims": {"total": 1}},
        ),
    }


def _cases_of_outputs(scalar: Any) -> dict[str, OperatorCase]:
    @wp.kernel
    def mix(
        a: wp.array2d(dtype=scalar),  # type: ignore[valid-type]  # of kernels
        b: wp.array2d(dtype=scalar),  # type: ignore[valid-type]  # of kernels
        scale: scalar,
        product: wp.array2d(dtype=scalar),  # type: ignore[valid-type]  # of kernels
        rows: wp.array(dtype=scalar),  # type: ignore[valid-type]  # of kernels
    ) -> None:
        i, j = wp.tid()
        product[i, j] = scale * a[i, j] * wp.sin(b[i, j])
        wp.atomic_add(rows, i, a[i, j] * b[i, j])

    @wp.kernel
    def change(x: wp.array(dtype=scalar), y: wp.array(dtype=scalar)) -> None:  # type: ignore[valid-type]  # of kernels
        i = wp.tid()
        y[i] = y[i] * y[i] * x[i]

    def repeat(x: Any, steps: Any, y: Any) -> None:
        state = x
        for _ in range(steps):
            following: Any = wp.zeros_like(y)
            wp.launch(step, dim=len(state), inputs=[state], outputs=[following])
            state = following
        wp.copy(y, state)

    # Annotations are text in this module, which could not see the type.
    repeat.__annotations__ = {"x": wp.array(dtype=scalar), "steps": int, "y": wp.array(dtype=scalar)}
    return {
        "two outputs": OperatorCase(
            mix,
            lambda a, b, scale: (scale * a * np.sin(b), (a * b).sum(1)),
            (_numbers(scalar, 3, 4), _numbers(scalar, 4, 3).T.copy(), 0.5),
            {"num_outputs": 2, "output_dims": {"rows": lambda a, b, scale: a.shape[0]}},
        ),
        "changed input": OperatorCase(
            change,
            lambda x, y: (y * y * x,),
            (_numbers(scalar, 4), _numbers(scalar, 4) - 1),
            {"in_out_argnames": ["y"]},
        ),
        "function": OperatorCase(repeat, _repeated_wave, (_numbers(scalar, 4), 3)),
    }


def _repeated_wave(x: Any, steps: int) -> tuple[Any]:
    for _ in range(steps):
        x = _wave(x)
    return (x,)


def _numbers(scalar: Any, *shape: int) -> Any:
    return np.random.default_rng(sum(shape)).uniform(-1.5, 1.5, shape).astype(wp.dtype_to_numpy(scalar))
