"""Operations of the interpreter on arrays and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warp._src.ir.frame import Frame, Step, Translator, checked, path_steps
from warp._src.ir.memory import ArrayCell, extract, insert
from warp._src.ir.ops import Atomic, Load, Op, Space, Store, View
from warp._src.ir.typed import wrapper, zero

if TYPE_CHECKING:
    from warp._src.ir.interp import Interpreter


def _view(interpreter: Interpreter, op: View) -> Step:
    array, *indices = interpreter.places(op.operands)
    at = interpreter.place(op.result)
    axis, stride = op.axis, op.step

    def step_along(frame: Frame) -> None:
        where = [int(frame[index]) for index in indices]
        frame[at] = checked(op, frame[array].along, axis, where, stride)

    if axis is not None:
        return step_along

    def step(frame: Frame) -> None:
        frame[at] = checked(op, frame[array].view, [frame[index] for index in indices])

    return step


def _accessor(interpreter: Interpreter, op: Load | Store) -> Callable[[Frame], tuple[Any, Any, Any]]:
    """Make the function that finds memory (None for a null gradient), element index and path."""
    array, indices = interpreter.place(op.array), interpreter.places(op.indices)
    dynamic, path, is_gradient = interpreter.places(op.path_indices), op.path, op.space is Space.GRADIENT

    def access(frame: Frame) -> tuple[Any, Any, Any]:
        cell: ArrayCell = frame[array]
        if is_gradient and cell.gradient is None:
            return None, (), ()
        at = checked(op, cell.locate, [frame[index] for index in indices])
        return cell.gradient if is_gradient else cell.primal, at, path_steps(path, dynamic, frame)

    return access


def _load(interpreter: Interpreter, op: Load) -> Step:
    access, result = _accessor(interpreter, op), interpreter.place(op.result)
    nothing = zero(op.result.type, interpreter.lift)
    wrap = wrapper(op.result.type, interpreter.lift)

    def step(frame: Frame) -> None:
        memory, at, path = access(frame)
        frame[result] = nothing if memory is None else wrap(checked(op, extract, memory[at], path))

    return step


def _store(interpreter: Interpreter, op: Store) -> Step:
    access, value = _accessor(interpreter, op), interpreter.place(op.value)

    def step(frame: Frame) -> None:
        memory, at, path = access(frame)
        if memory is not None:
            memory[at] = checked(op, insert, memory[at], frame[value], path)

    return step


def _atomic(interpreter: Interpreter, op: Atomic) -> Step:
    access, value, results = _accessor(interpreter, op), interpreter.place(op.value), interpreter.places(op.results)
    expected = interpreter.place(op.operands[-1])
    combine, type = _ATOMICS[op.kind], op.value.type
    wrap, nothing = wrapper(type, interpreter.lift), zero(type, interpreter.lift)

    def step(frame: Frame) -> None:
        memory, at, path = access(frame)
        old = nothing
        if memory is not None:
            old = wrap(checked(op, extract, memory[at], path))
            memory[at] = insert(memory[at], wrap(combine(old, frame[value], frame[expected])), path)
        for result in results:
            frame[result] = old

    return step


def _extreme(choose_new: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Make atomic min or max, componentwise; the old value stays at a tie."""

    def combine(old: Any, new: Any, expected: Any) -> Any:  # noqa: ARG001
        if not isinstance(old, np.ndarray):
            return new if choose_new(new, old) else old
        result = old.copy()
        for position in np.ndindex(old.shape):
            if choose_new(new[position], old[position]):
                result[position] = new[position]
        return result

    return combine


def _added(old: Any, new: Any) -> Any:
    """Add componentwise; of structs, the floats, which is what gradients of structs need."""
    if isinstance(old, dict):
        return {name: _added(part, new[name]) for name, part in old.items()}
    return old if isinstance(old, ArrayCell) else old + new


_ATOMICS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda old, new, expected: _added(old, new),
    "sub": lambda old, new, expected: old - new,
    "min": _extreme(lambda new, old: new < old),
    "max": _extreme(lambda new, old: new > old),
    "exch": lambda old, new, expected: new,
    "cas": lambda old, new, expected: new if old == expected else old,
    "and": lambda old, new, expected: old & new,
    "or": lambda old, new, expected: old | new,
    "xor": lambda old, new, expected: old ^ new,
}

MEMORY: dict[type[Op], Translator] = {View: _view, Load: _load, Store: _store, Atomic: _atomic}

__all__ = ["MEMORY"]
