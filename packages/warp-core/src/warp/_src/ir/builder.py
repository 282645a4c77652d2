"""Builds operations one after the other; the only place that computes result types of structural operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from warp._src.ir.core import UNKNOWN, Function, Location, Region, Type, Value
from warp._src.ir.ops import (
    Atomic,
    Call,
    Cast,
    Const,
    Construct,
    Extract,
    If,
    Insert,
    Invoke,
    Load,
    Loop,
    Native,
    Op,
    Path,
    Recall,
    Record,
    RecordStart,
    Space,
    Store,
    ThreadIndex,
    View,
    Yield,
)
from warp._src.types.scalars import Scalar, int32, int64, is_scalar
from warp._src.types.signature import component_type, is_array


class Builder:
    """Appends operations to the current region; `loc` is stamped on each."""

    def __init__(self, region: Region | None = None, loc: Location = UNKNOWN) -> None:
        self.region = region if region is not None else Region()
        self.loc = loc

    @contextmanager
    def into(self, region: Region) -> Iterator[Region]:
        """Append to `region` inside the `with` block."""
        outer, self.region = self.region, region
        try:
            yield region
        finally:
            self.region = outer

    @contextmanager
    def at(self, loc: Location) -> Iterator[None]:
        """Stamp `loc` on the operations built inside the `with` block."""
        outer, self.loc = self.loc, loc
        try:
            yield
        finally:
            self.loc = outer

    def append(self, op: Op) -> Op:
        self.region.ops.append(op)
        return op

    # -- values ----------------------------------------------------------------------------------------

    def const(self, type: type[Scalar], value: bool | int | float) -> Value:
        """A scalar constant; `value` is rounded or wrapped to `type`."""
        result = Value(type)
        self.append(Const(loc=self.loc, results=(result,), value=type(value).value))
        return result

    def zero(self, type: Type) -> Value:
        """The zero value of any type."""
        if is_scalar(type):
            return self.const(type, 0)
        return self.construct(type, ())

    def cast(self, type: Type, value: Value) -> Value:
        if value.type is type:
            return value
        return self._one(Cast(loc=self.loc, results=(Value(type, value.name),), operands=(value,)))

    def construct(self, type: Type, parts: Sequence[Value]) -> Value:
        return self._one(Construct(loc=self.loc, results=(Value(type),), operands=tuple(parts)))

    def extract(self, aggregate: Value, path: Path, indices: Sequence[Value] = ()) -> Value:
        if not path:
            return aggregate
        result = Value(component_type(aggregate.type, path))
        return self._one(Extract(loc=self.loc, results=(result,), operands=(aggregate, *indices), path=path))

    def insert(self, aggregate: Value, part: Value, path: Path, indices: Sequence[Value] = ()) -> Value:
        if not path:
            return part
        result = Value(aggregate.type, aggregate.name)
        return self._one(Insert(loc=self.loc, results=(result,), operands=(aggregate, part, *indices), path=path))

    def thread_index(self, dimensions: int) -> tuple[Value, ...]:
        results = tuple(Value(int32, f"tid{d}") for d in range(dimensions))
        self.append(ThreadIndex(loc=self.loc, results=results))
        return results

    # -- calls -----------------------------------------------------------------------------------------

    def call(self, overload: Any, args: Sequence[Value], attributes: tuple[Any, ...] = ()) -> tuple[Value, ...]:
        """Call a resolved builtin overload; the record gives the result types."""
        results = tuple(Value(type) for type in overload.result_types)
        op = Call(loc=self.loc, results=results, operands=tuple(args), builtin=overload, attributes=attributes)
        self.append(op)
        return results

    def invoke(self, function: Function, args: Sequence[Value]) -> tuple[Value, ...]:
        results = tuple(Value(type) for type in function.result_types)
        self.append(Invoke(loc=self.loc, results=results, operands=tuple(args), function=function))
        return results

    def invoke_gradient(self, function: Function, args: Sequence[Value]) -> tuple[Value, ...]:
        """Derivatives of a function's only result by its arguments that are no arrays."""
        results = tuple(Value(arg.type) for arg in args if not is_array(arg.type))
        op = Invoke(loc=self.loc, results=results, operands=tuple(args), function=function, is_gradient=True)
        self.append(op)
        return results

    def native(
        self,
        names: tuple[str, ...],
        args: Sequence[Value],
        result_type: Type | None,
        snippet: str,
        adjoint_snippet: str | None = None,
        replay_snippet: str | None = None,
        name: str = "",
    ) -> tuple[Value, ...]:
        results = () if result_type is None else (Value(result_type),)
        op = Native(
            loc=self.loc,
            results=results,
            operands=tuple(args),
            names=names,
            snippet=snippet,
            adjoint_snippet=adjoint_snippet,
            replay_snippet=replay_snippet,
            name=name,
        )
        self.append(op)
        return results

    # -- memory ----------------------------------------------------------------------------------------

    def view(self, array: Value, indices: Sequence[Value]) -> Value:
        result = Value(type(array.type)(array.type.dtype, array.type.ndim - len(indices)))
        return self._one(View(loc=self.loc, results=(result,), operands=(array, *indices)))

    def view_axis(self, array: Value, axis: int, index: Value) -> Value:
        """Leave out one axis at an index."""
        result = Value(type(array.type)(array.type.dtype, array.type.ndim - 1))
        return self._one(View(loc=self.loc, results=(result,), operands=(array, index), axis=axis))

    def view_slice(self, array: Value, axis: int, start: Value, extent: Value, step: int) -> Value:
        """Keep `extent` elements of one axis, from `start` in steps of `step`."""
        result = Value(array.type)
        return self._one(View(loc=self.loc, results=(result,), operands=(array, start, extent), axis=axis, step=step))

    def load(
        self,
        array: Value,
        indices: Sequence[Value],
        path: Path = (),
        path_indices: Sequence[Value] = (),
        space: Space = Space.PRIMAL,
    ) -> Value:
        result = Value(component_type(array.type.dtype, path))
        operands = (array, *indices, *path_indices)
        op = Load(loc=self.loc, results=(result,), operands=operands, rank=len(indices), path=path, space=space)
        return self._one(op)

    def store(
        self,
        array: Value,
        value: Value,
        indices: Sequence[Value],
        path: Path = (),
        path_indices: Sequence[Value] = (),
        space: Space = Space.PRIMAL,
    ) -> None:
        operands = (array, value, *indices, *path_indices)
        self.append(Store(loc=self.loc, operands=operands, rank=len(indices), path=path, space=space))

    def atomic(
        self,
        kind: str,
        array: Value,
        value: Value,
        indices: Sequence[Value],
        path: Path = (),
        path_indices: Sequence[Value] = (),
        space: Space = Space.PRIMAL,
        expected: Value | None = None,
    ) -> Value:
        """An atomic read-modify-write; gives the old value."""
        result = Value(value.type)
        operands = (array, value, *indices, *path_indices, *(() if expected is None else (expected,)))
        op = Atomic(
            loc=self.loc,
            results=(result,),
            operands=operands,
            rank=len(indices),
            path=path,
            space=space,
            kind=kind,
        )
        return self._one(op)

    # -- records ---------------------------------------------------------------------------------------

    def record(self, value: Value, offset: int | None) -> None:
        self.append(Record(loc=self.loc, operands=(value,), offset=offset))

    def recall(self, type: Type, position: Value | int, name: str = "") -> Value:
        """A recorded value: from a fixed offset or from a position in the stream."""
        result = Value(type, name)
        if isinstance(position, int):
            return self._one(Recall(loc=self.loc, results=(result,), offset=position))
        return self._one(Recall(loc=self.loc, results=(result,), operands=(position,), offset=None))

    def record_start(self) -> Value:
        return self._one(RecordStart(loc=self.loc, results=(Value(int64, "position"),)))

    # -- control ---------------------------------------------------------------------------------------

    def yield_(self, values: Sequence[Value] = ()) -> None:
        self.append(Yield(loc=self.loc, operands=tuple(values)))

    def if_(self, condition: Value, then: Region, orelse: Region) -> tuple[Value, ...]:
        """Join two finished regions that yield the same types."""
        results = tuple(Value(value.type, value.name) for value in then.terminator.operands)
        self.append(If(loc=self.loc, results=results, operands=(condition,), regions=(then, orelse)))
        return results

    def loop(
        self, trip: Value | None, inits: Sequence[Value], condition: Region | None, body: Region
    ) -> tuple[Value, ...]:
        """A loop from finished regions; gives the final carried values, then the iteration count."""
        index_type = int64 if trip is None else trip.type
        results = (*(Value(value.type, value.name) for value in inits), Value(index_type, "count"))
        op = Loop(
            loc=self.loc,
            results=results,
            operands=(*(() if trip is None else (trip,)), *inits),
            regions=(body,) if condition is None else (condition, body),
            has_trip=trip is not None,
            has_condition=condition is not None,
        )
        self.append(op)
        return results

    def _one(self, op: Op) -> Value:
        self.append(op)
        return op.results[0]
