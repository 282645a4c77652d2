"""Statements that keep values for the adjoint, and that get them back."""

from __future__ import annotations

from warp._src.emit.cstyle import Body, emitter
from warp._src.emit.names import cpp_type
from warp._src.ir.core import Function
from warp._src.ir.ops import Recall, Record, RecordStart


@emitter(Record)
def _record(body: Body, op: Record) -> None:
    (value,) = op.operands
    name = body.name(value)
    if op.offset is None:
        cursor = ", item, record_end" if body.unit.options.target == "cuda" else ""
        body.line(f"wp::record_append<{cpp_type(value.type)}>(launch, {name}{cursor});")
    else:
        body.line(f"wp::record_place<{cpp_type(value.type)}>(launch, item, {op.offset}) = {name};")


@emitter(Recall)
def _recall(body: Body, op: Recall) -> None:
    type = cpp_type(op.result.type)
    if op.offset is None:
        body.define(op.result, f"wp::record_at<{type}>(launch, {body.name(op.operands[0])})")
    else:
        body.define(op.result, f"wp::record_place<{type}>(launch, item, {op.offset})")


@emitter(RecordStart)
def _record_start(body: Body, op: RecordStart) -> None:
    body.define(op.result, "wp::record_start(launch, item)")


def emit_record_begin(body: Body, function: Function) -> None:
    """Note where the work item's part of the stream begins, in a kernel that appends to it."""
    if any(isinstance(op, Record) and op.offset is None for op in function.walk()):
        cursor = "wp::int64 record_end = " if body.unit.options.target == "cuda" else ""
        body.line(f"{cursor}wp::record_begin(launch, item);")
