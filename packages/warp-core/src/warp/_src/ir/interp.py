"""Runs the IR, one work item after the other: the living definition of what a kernel does.

Each operation becomes a closure over one flat frame of values. The arithmetic is that of the reference
implementations of the builtins; `typed` rounds and wraps every result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warp._src.ir.checkpoints import Checkpoints
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.frame import Frame, State
from warp._src.ir.interp_control import CONTROL
from warp._src.ir.interp_memory import MEMORY
from warp._src.ir.interp_values import VALUES
from warp._src.ir.memory import Records, as_argument
from warp._src.ir.ops import Record
from warp._src.ir.typed import Lift


class Interpreter:
    """A function made ready to run; `slots` bounds the states that a ReverseLoop keeps (None: all of them)."""

    def __init__(
        self,
        function: Function,
        *,
        lift: Lift | None = None,
        slots: int | None = None,
        trace: list[Any] | None = None,
        natives: Mapping[str, Callable[..., Any]] | None = None,
        records: Records | None = None,
    ) -> None:
        self.function = function
        self.records = records if records is not None else Records()
        self._keeps = any(isinstance(op, Record) for op in function.walk())
        self.lift = lift
        self.slots = slots
        self.trace = trace if trace is not None else []
        self.natives = natives or {}
        self.thread: tuple[int, ...] = ()
        self.saved: dict[int, tuple[Checkpoints, dict[int, State]]] = {}
        self._numbers: dict[Value, int] = {}
        self.callees: dict[int, Callable[[Frame], None]] = {}
        self._params = self.places(function.body.args)
        self._body = self.region(function.body)
        self._results = self.places(function.body.terminator.operands)

    def launch(self, dim: int | Sequence[int], args: Sequence[Any], order: str = "ascending") -> None:
        """Run every work item; args are interpreter values."""
        shape = (dim,) if isinstance(dim, int) else tuple(dim)
        threads: list[tuple[int, ...]] = list(itertools.product(*(range(extent) for extent in shape)))
        if order not in ("ascending", "descending"):
            raise ValueError(f"order is 'ascending' or 'descending', got {order!r}")
        with np.errstate(all="ignore"):
            for thread in threads if order == "ascending" else reversed(threads):
                self.call(args, thread)

    def call(self, args: Sequence[Any], thread: tuple[int, ...] = ()) -> State:
        """Run one work item and give the results of the function."""
        self.thread = thread
        if self._keeps:
            self.records.starts[thread] = self.records.end
        frame: Frame = [None] * len(self._numbers)
        for place, arg in zip(self._params, args, strict=True):
            frame[place] = arg
        self._body(frame)
        return tuple(frame[place] for place in self._results)

    # -- translation -----------------------------------------------------------------------------------

    def place(self, value: Value) -> int:
        """Give the number of a value in the frame."""
        return self._numbers.setdefault(value, len(self._numbers))

    def places(self, values: Sequence[Value]) -> tuple[int, ...]:
        """Give the numbers of values in the frame."""
        return tuple(self.place(value) for value in values)

    def region(self, region: Region) -> Callable[[Frame], None]:
        """Translate all operations but the terminator; its operands are read from the frame afterwards."""
        self.places(region.args)
        steps = tuple(_TRANSLATORS[type(op)](self, op) for op in region.ops[:-1])

        def run(frame: Frame) -> None:
            for step in steps:
                step(frame)

        return run


_TRANSLATORS = {**VALUES, **MEMORY, **CONTROL}


def run_kernel(
    function: Function,
    dim: int | Sequence[int],
    args: Sequence[Any],
    *,
    order: str = "ascending",
    lift: Lift | None = None,
    slots: int | None = None,
    trace: list[Any] | None = None,
    natives: Mapping[str, Callable[..., Any]] | None = None,
    records: Records | None = None,
) -> None:
    """Run a kernel over `dim` work items, in ascending or descending order; arrays are changed in place.

    Arrays are `ArrayCell`s, or ndarrays without gradient. `trace` collects (name, attributes, operands) of
    builtins with effects, such as printf. `natives` gives Python functions for native snippets by name.
    `records` receives what a taped kernel keeps, and gives it to its adjoint.
    Raises LaunchError with the line for an index out of range and for an opaque native function.
    """
    interpreter = Interpreter(function, lift=lift, slots=slots, trace=trace, natives=natives, records=records)
    values = list(args)
    if lift is None:
        values = [as_argument(arg, param.type) for arg, param in zip(args, function.params, strict=True)]
    interpreter.launch(dim, values, order)


def run_function(function: Function, args: Sequence[Any], *, slots: int | None = None) -> tuple[Any, ...]:
    """Run a function once and give its results."""
    interpreter = Interpreter(function, slots=slots)
    with np.errstate(all="ignore"):
        return interpreter.call(
            [as_argument(arg, param.type) for arg, param in zip(args, function.params, strict=True)]
        )


__all__ = ["Interpreter", "run_function", "run_kernel"]
