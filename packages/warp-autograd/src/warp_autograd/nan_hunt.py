"""Find where a gradient becomes NaN or infinite in a backward pass."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import warp as wp
from warp.errors import ArgumentError, LaunchError, WarpError
from warp.recording import Recordable, RecordedArray
from warp_autograd.arguments import named_arrays
from warp_autograd.components import Components
from warp_autograd.tape import Tape

_FAULT = re.compile(r"at line (\d+), in the thread with index \(([^)]*)\)")


@dataclass(frozen=True)
class NonFiniteGradient:
    """The first gradient of a backward pass that is not finite."""

    label: str
    """The kernel, or what else the operation is called; "seed" if the gradients were wrong from the start."""
    launch: int
    """Position of the operation on the tape; -1 for a seed."""
    location: str
    """`file:line` where it was launched."""
    argument: str
    """The parameter, `parameter.field` for an array in a struct."""
    array: Any
    index: tuple[int, ...]
    """Of the first element that is not finite."""
    component: int
    """Within the element."""
    value: float
    source_location: str
    """`file:line` in the kernel where a number of the adjoint is not finite first; empty if it cannot be told."""
    source_line: str
    thread: tuple[int, ...] | None
    """Index of the thread in which that happened."""
    bad_values: tuple[str, ...]
    """Arguments whose values themselves are not all finite."""

    def __str__(self) -> str:
        place = "[" + ", ".join(map(str, self.index)) + "]"
        what = f"the gradient of '{self.argument}' at {place} (component {self.component}) is {self.value}"
        if self.launch < 0:
            return f"{what} before the backward pass begins"
        lines = [f"{what} after the adjoint of '{self.label}', operation {self.launch} of the tape ({self.location})"]
        if self.source_location:
            thread = "" if self.thread is None else f", thread {self.thread}"
            lines.append(f"  {self.source_location}{thread}: {self.source_line}")
        if self.bad_values:
            lines.append(f"  not finite in the forward pass already: {', '.join(self.bad_values)}")
        return "\n".join(lines)


class _Found(Exception):  # noqa: N818 - carries a result out of a backward pass
    def __init__(self, result: NonFiniteGradient) -> None:
        super().__init__(str(result))
        self.result = result


def find_nonfinite(
    tape: Tape, loss: RecordedArray | None = None, grads: Mapping[Any, Any] | None = None
) -> NonFiniteGradient | None:
    """Run backward until a gradient becomes NaN or infinite, and return where that is; None if it never does.

    The arguments are those of `Tape.backward`. All gradients are afterwards what they were. Without loss and grads
    the gradients that the arrays have now are the seeds, else those of the last passes are left out of account.

    Raises:
        AutogradError: As `Tape.backward`.
    """
    if not isinstance(tape, Tape):
        raise ArgumentError(f"tape must be a wp.Tape, got {type(tape).__qualname__}")
    with ExitStack() as stack:
        stack.enter_context(_preserved_gradients(tape, is_cleared=loss is not None or grads is not None))
        for number, event in enumerate(tape.events):
            stack.enter_context(_watched(event, number))
        try:
            _check_seeds(tape, grads)
            tape.backward(loss, grads)
        except _Found as found:
            return found.result
    return None


@contextmanager
def _preserved_gradients(tape: Tape, is_cleared: bool) -> Iterator[None]:
    saved = []
    for gradient in tape.gradients.values():
        if gradient is not None:
            saved.append((gradient, gradient.contents.copy()))
    if is_cleared:
        tape.zero()
    try:
        yield
    finally:
        for gradient, kept in saved:
            gradient.contents.replace(kept)


@contextmanager
def _watched(event: Recordable, number: int) -> Iterator[None]:
    """Look at the gradients after the adjoint of an operation, inside a `with` block."""
    original = event.run_adjoint

    def run_adjoint() -> None:
        with _copied_gradients(event) as put_back:
            original()
            found = _first_nonfinite(event)
            if found is not None:
                result = _result(event, number, *found)
                put_back()
                raise _Found(_with_source(result, event))

    # Only this one operation is watched, so its own attribute takes the place of the method.
    vars(event)["run_adjoint"] = run_adjoint
    try:
        yield
    finally:
        del vars(event)["run_adjoint"]


@contextmanager
def _copied_gradients(event: Recordable) -> Iterator[Callable[[], None]]:
    copies = [(array.grad, array.grad.contents.copy()) for array in event.arrays() if array.grad is not None]

    def put_back() -> None:
        for gradient, kept in copies:
            gradient.contents.replace(kept)

    yield put_back


def _check_seeds(tape: Tape, grads: Mapping[Any, Any] | None) -> None:
    for array, gradient in (grads or {}).items():
        if isinstance(array, RecordedArray) and isinstance(gradient, (RecordedArray, np.ndarray)):
            _raise_if_bad_seed(_names_on(tape, array), array, gradient)
    if not grads:
        for array, gradient in tape.gradients.items():
            if gradient is not None:
                _raise_if_bad_seed(_names_on(tape, array), array, gradient)


def _raise_if_bad_seed(argument: str, array: Any, gradient: Any) -> None:
    holder = wp.array(gradient, dtype=array.dtype, copy=False) if isinstance(gradient, np.ndarray) else gradient
    components = Components(holder)
    place = _first_bad(components)
    if place is not None:
        value = components.get(place)
        index, component = components.index(place), components.component(place)
        raise _Found(NonFiniteGradient("seed", -1, "", argument, array, index, component, value, "", "", None, ()))


def _names_on(tape: Tape, array: Any) -> str:
    for event in tape.events:
        for name, found in _named(event):
            if found is array:
                return name
    return "array"


def _named(event: Any) -> list[tuple[str, Any]]:
    """Return the arrays of an operation by the names of its parameters."""
    if not hasattr(event, "kernel"):
        return [("array", array) for array in event.arrays()]
    return [
        entry
        for (name, _), argument in zip(event.kernel.parameters, event.args, strict=True)
        for entry in named_arrays(argument, name)
    ]


def _first_bad(components: Components) -> int | None:
    bad = np.flatnonzero(~np.isfinite(components.values()))
    return int(bad[0]) if bad.size else None


def _first_nonfinite(event: Recordable) -> tuple[str, Any, int] | None:
    for name, array in _named(event):
        if array.grad is not None:
            place = _first_bad(Components(array.grad))
            if place is not None:
                return name, array, place
    return None


def _result(event: Recordable, number: int, argument: str, array: Any, place: int) -> NonFiniteGradient:
    components = Components(array.grad)
    return NonFiniteGradient(
        event.label,
        number,
        event.location,
        argument,
        array,
        components.index(place),
        components.component(place),
        components.get(place),
        "",
        "",
        None,
        tuple(_bad_values(event)),
    )


def _with_source(result: NonFiniteGradient, event: Any) -> NonFiniteGradient:
    line, thread = _failing_line(event)
    if not line:
        return result
    path = event.kernel.func.__code__.co_filename
    text = linecache.getline(path, line).strip()
    return replace(result, source_location=f"{path}:{line}", source_line=text, thread=thread)


def _failing_line(event: Any) -> tuple[int, tuple[int, ...] | None]:
    """Run an adjoint compiled with checks; return the line and thread of its first number that is not finite."""
    if not hasattr(event, "checked"):
        return 0, None
    checked = event.checked()
    vars(checked).pop("run_adjoint", None)
    try:
        checked.run_adjoint()
    except LaunchError as error:
        match = _FAULT.search(str(error))
        if match is not None:
            return int(match[1]), tuple(int(part) for part in match[2].split(","))
    except WarpError:
        return 0, None
    return 0, None


def _bad_values(event: Recordable) -> Sequence[str]:
    return [name for name, array in _named(event) if array in event.reads and _first_bad(Components(array)) is not None]
