"""Forward mode: products with Jacobians and Hessians, without building the matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import warp as wp
from warp.errors import ArgumentError, AutogradError
from warp.recording import Recordable, RecordedArray, recording, storage_of
from warp_autograd.saved import Rewind, UndoLog
from warp_autograd.tape import Tape


class Directions:
    """Tangents of arrays: for each block of memory one like it, seen through the same shapes and strides.

    The gradient of a direction holds the tangents of the array's gradient.
    """

    def __init__(self) -> None:
        self._blocks: dict[Any, tuple[int, int, Any, Any]] = {}

    def of(self, array: RecordedArray) -> Any:
        """Return the array that holds the tangents of another, zeros at first."""
        storage = storage_of(array)
        if storage not in self._blocks:
            size = storage.end - storage.begin
            zeros = partial(wp.zeros, size, wp.uint8, array.device)
            self._blocks[storage] = (storage.begin, size, zeros(), zeros())
        begin, size, values, gradients = self._blocks[storage]
        if storage.begin != begin or storage.end - storage.begin != size:
            raise AutogradError("arrays over the same memory were made while their tangents were followed")
        direction = self._view(array, values, begin)
        direction.grad = self._view(array, gradients, begin)
        return direction

    @staticmethod
    def _view(array: RecordedArray, block: Any, begin: int) -> Any:
        layout = array.layout()
        view = wp.array(
            ptr=block.ptr + layout.pointer - begin,
            dtype=array.dtype,
            shape=array.shape,
            strides=layout.strides,
            device=array.device,
            owner=block,
        )
        backwards = [n for n, stride in enumerate(array.strides) if stride < 0]
        return (
            view[tuple(slice(None, None, -1 if n in backwards else 1) for n in range(view.ndim))] if backwards else view
        )


class _ForwardMode:
    """A recorder that carries tangents along with every operation."""

    def __init__(self, directions: Directions) -> None:
        self._directions = directions
        self._before: list[tuple[RecordedArray, Any]] = []

    def about_to_write(self, arrays: Sequence[RecordedArray]) -> None:
        self._before = [(array, array.contents.copy()) for array in arrays]

    def record(self, event: Recordable) -> None:
        self.prepare(event)
        event.run_tangent(self._directions.of)

    def prepare(self, event: Recordable) -> None:
        """Let arrays be as they were before an operation whose tangent runs it again."""
        if event.tangent_runs_again:
            for array, values in self._before:
                array.contents.replace(values)

    def note_foreign_write(self, arrays: Sequence[RecordedArray]) -> None:
        """Nothing to do: writes of other threads are not followed."""

    def begin_scope(self, name: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Scopes are for graphs."""

    def end_scope(self) -> None:
        """Scopes are for graphs."""


class _HessianTape(Tape):
    """A tape that carries tangents forward while recording, and through the adjoints.

    Tangents that operations overwrite are kept, as the tape keeps values: an adjoint may need both.
    """

    def __init__(self, directions: Directions) -> None:
        super().__init__()
        self._directions = directions
        self._forward = _ForwardMode(directions)
        self._positions: dict[int, int] = {}
        self._used: set[Any] = set()
        self._undo = UndoLog()
        self._rewind: Rewind | None = None

    def about_to_write(self, arrays: Sequence[RecordedArray]) -> None:
        super().about_to_write(arrays)
        self._forward.about_to_write(arrays)

    def record(self, event: Recordable) -> None:
        self._forward.prepare(event)
        position = self._positions[id(event)] = len(self._positions)
        overwritten = [array for array in event.writes if storage_of(array) in self._used]
        copies = [self._undo.save(position, self._directions.of(array)) for array in overwritten]
        event.run_recorded_tangent(self._directions.of)
        self._undo.reduce(copies)
        self._used.update(storage_of(array) for array in event.arrays())
        super().record(event)

    def backward(self, loss: RecordedArray | None = None, grads: Mapping[Any, Any] | None = None) -> None:
        """Carry gradients and their tangents back; the directions are afterwards as they were."""
        with self._undo.rewinding() as self._rewind:
            super().backward(loss, grads)

    def run_adjoint_of(self, event: Recordable) -> None:
        assert self._rewind is not None, "adjoints run inside backward()"
        self._rewind.before(self._positions[id(event)] + 1)
        event.run_adjoint_tangent(self._directions.of)


def jvp(
    function: Any,
    dim: int | Sequence[int] | None = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    tangents: Sequence[Any] = (),
    *,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int = 256,
) -> list[Any]:
    """Multiply the Jacobian of a kernel or function by one direction of its inputs, in a single forward pass.

    Args:
        function: A kernel, or a Python function of arrays that launches kernels and returns arrays.
        dim: Threads of the launch; for kernels only.
        inputs: Arguments of the kernel before its outputs, or of the function.
        outputs: The remaining arguments; for kernels only.
        tangents: For each input the direction: an array of the same shape (of Warp or NumPy), or None for zero.
        device: Where to launch; for kernels only.
        max_blocks: As for `wp.launch`.
        block_dim: As for `wp.launch`.

    Returns:
        For each output array its derivative along the direction, as a new array.

    Raises:
        ArgumentError: A tangent does not fit its input.
        AutogradError: An operation has no forward mode; names the line.

    >>> import warp as wp
    >>> @wp.kernel
    ... def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     y[wp.tid()] = x[wp.tid()] * x[wp.tid()]
    >>> x, y = wp.array([1.0, 3.0], dtype=float), wp.zeros(2, dtype=float)
    >>> print(wp.autograd.jvp(square, 2, [x], [y], [wp.array([1.0, 0.5], dtype=float)])[0])
    [2. 3.]
    """
    directions = _directions(inputs, tangents)
    run = _runner(function, dim, inputs, outputs, device, max_blocks, block_dim)
    with _restored([*inputs, *outputs]), recording(_ForwardMode(directions)):
        results = run()
        return [directions.of(result).contents.copy() for result in results]


def hvp(
    function: Any,
    dim: int | Sequence[int] | None = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    tangents: Sequence[Any] = (),
    *,
    adjoints: Sequence[Any] | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int = 256,
) -> list[Any]:
    """Multiply the Hessian of a scalar kernel or function by one direction, by forward over reverse mode.

    The parameters are those of `jvp`. `adjoints` has an array for each output of floats: the Hessian is that of the
    sum of all their elements, weighted by those of the adjoints. Without it there must be one output, with one element.

    Returns:
        For each input array the product, the derivative of its gradient along the direction, as a new array; None
        for inputs that are no arrays of floats.

    Raises:
        ArgumentError: A tangent does not fit its input, or the output is not a scalar.
        AutogradError: An operation has no second derivative; names the line.

    >>> import warp as wp
    >>> @wp.kernel
    ... def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     wp.atomic_add(y, 0, x[wp.tid()] * x[wp.tid()] * x[wp.tid()])
    >>> x, y = wp.array([1.0, 3.0], dtype=float), wp.zeros(1, dtype=float)
    >>> print(wp.autograd.hvp(cubes, 2, [x], [y], [wp.array([1.0, 0.5], dtype=float)])[0])
    [6. 9.]
    """
    directions = _directions(inputs, tangents)
    tape = _HessianTape(directions)
    run = _runner(function, dim, inputs, outputs, device, max_blocks, block_dim)
    arrays = [array if _is_followed(array) else None for array in inputs]
    with _restored([*inputs, *outputs]), _required([array for array in arrays if array is not None]):
        with tape:
            results = run()
        seeds = _seeds(results, adjoints)
        with _required(results):
            tape.backward(grads=seeds)
        return [None if array is None else directions.of(array).grad.contents.copy() for array in arrays]


def _seeds(results: Sequence[Any], adjoints: Sequence[Any] | None) -> dict[Any, Any]:
    """Return what the outputs are weighted with."""
    shapes = ", ".join(str(result.shape) for result in results) or "none"
    if adjoints is None:
        if len(results) != 1 or results[0].size != 1:
            raise ArgumentError(f"a Hessian belongs to one output with one element, got shapes {shapes}; give adjoints")
        return {results[0]: results[0].contents.filled(1.0)}
    if len(adjoints) != len(results):
        raise ArgumentError(f"adjoints has {len(adjoints)} entries, but there are outputs of shapes {shapes}")
    return dict(zip(results, adjoints, strict=True))


def _directions(inputs: Sequence[Any], tangents: Sequence[Any]) -> Directions:
    if len(tangents) != len(inputs):
        raise ArgumentError(f"tangents has {len(tangents)} entries, inputs has {len(inputs)}; None stands for zero")
    directions = Directions()
    for number, (array, tangent) in enumerate(zip(inputs, tangents, strict=True)):
        if tangent is None:
            continue
        if not _is_followed(array):
            raise ArgumentError(f"tangents[{number}] must be None: inputs[{number}] is no array of floats")
        target, values = directions.of(array).contents, np.asarray(tangent)
        if values.shape != target.shape:
            raise ArgumentError(f"tangents[{number}] must have the shape {target.shape}, got {values.shape}")
        target.replace(wp.array(values, dtype=array.dtype, shape=array.shape, device=array.device))
    return directions


def _is_followed(value: Any) -> bool:
    return isinstance(value, RecordedArray) and value.is_differentiable and value.contents.dtype.names is None


def _runner(
    function: Any,
    dim: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    device: Any,
    max_blocks: int,
    block_dim: int,
) -> Callable[[], list[Any]]:
    """Make the call; it gives the output arrays."""
    if isinstance(function, wp.Kernel):
        if dim is None:
            raise ArgumentError("dim is required for a kernel")

        def run_kernel() -> list[Any]:
            options = {"device": device, "max_blocks": max_blocks, "block_dim": block_dim}
            wp.launch(function, dim, inputs=list(inputs), outputs=list(outputs), **options)
            return [array for array in outputs if _is_followed(array)]

        return run_kernel

    def run_function() -> list[Any]:
        returned = function(*inputs)
        return list(returned) if isinstance(returned, (list, tuple)) else [returned]

    return run_function


@contextmanager
def _restored(values: Sequence[Any]) -> Iterator[None]:
    """Leave the values and gradients of arrays as they were."""
    arrays = [value for value in values if isinstance(value, RecordedArray)]
    kept = [
        (memory, memory.contents.copy())
        for array in arrays
        for memory in (array, *((array.grad,) if array.requires_grad else ()))
        if not memory.is_readonly
    ]
    try:
        yield
    finally:
        for memory, values_before in kept:
            memory.contents.replace(values_before)


@contextmanager
def _required(arrays: Sequence[Any]) -> Iterator[None]:
    """Give arrays without a gradient one for a while."""
    changed = [array for array in arrays if not array.requires_grad]
    for array in changed:
        array.requires_grad = True
    try:
        yield
    finally:
        for array in changed:
            array.requires_grad = False


__all__ = ["Directions", "hvp", "jvp"]
