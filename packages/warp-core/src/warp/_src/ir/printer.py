"""Prints the IR as stable, numbered text for golden tests and error reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from warp._src.ir.core import Function, Region, Value
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
    ReverseLoop,
    Space,
    Store,
    ThreadIndex,
    View,
    Yield,
)
from warp._src.types.signature import type_name

_INDENT = "  "


def print_function(function: Function, *, locations: bool = False) -> str:
    """Give the text of a function; values are numbered in the order of definition.

    `locations` adds the source line of each operation. Invalid IR is printed too: an undefined value shows as
    `%?name`.
    """
    return _Printer(locations).function(function)


class _Printer:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.numbers: dict[Value, int] = {}
        self.lines: list[str] = []

    def function(self, function: Function) -> str:
        kind = "kernel" if function.is_kernel else "func"
        params = ", ".join(self.define(param) for param in function.params)
        results = ", ".join(type_name(t) for t in function.result_types)
        self.lines.append(f"{kind} {function.name}({params})" + (f" -> {results}" if results else "") + " {")
        self.region(function.body, 1)
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def region(self, region: Region, depth: int) -> None:
        for op in region.ops:
            self.op(op, depth)

    def op(self, op: Op, depth: int) -> None:
        text = _TEXTS.get(type(op), _unknown)(self, op)
        results = ", ".join(self.define(result) for result in op.results)
        where = f"  @ {op.loc}" if self.locations else ""
        opening = f"{self.header(op, 0)} {{" if op.regions else ""
        self.lines.append(_INDENT * depth + (f"{results} = " if results else "") + text + opening + where)
        for index, region in enumerate(op.regions):
            if index:
                self.lines.append(f"{_INDENT * depth}}}{self.header(op, index)} {{")
            self.region(region, depth + 1)
        if op.regions:
            self.lines.append(_INDENT * depth + "}")

    def header(self, op: Op, index: int) -> str:
        name = "" if isinstance(op, If) and index == 0 else f" {_region_name(op, index)}"
        args = ", ".join(self.define(arg) for arg in op.regions[index].args)
        return name + (f" |{args}|" if args else "")

    def define(self, value: Value) -> str:
        self.numbers.setdefault(value, len(self.numbers))
        return f"{self.use(value)}: {type_name(value.type)}"

    def use(self, value: Value) -> str:
        number = self.numbers.get(value)
        return f"%?{value.name}" if number is None else f"%{number}"

    def uses(self, values: Iterable[Value]) -> str:
        return ", ".join(self.use(value) for value in values)

    def path(self, path: Path, dynamic: Iterable[Value]) -> str:
        places = iter(dynamic)
        steps = []
        for step in path:
            if isinstance(step, str):
                steps.append(f".{step}")
            elif step is None:
                value = next(places, None)
                steps.append("[?]" if value is None else f"[{self.use(value)}]")
            else:
                steps.append(f"[{step}]")
        return "".join(steps)

    def element(self, op: Load | Store) -> str:
        space = "grad " if op.space is Space.GRADIENT else ""
        return f"{space}{self.use(op.array)}[{self.uses(op.indices)}]{self.path(op.path, op.path_indices)}"


def _region_name(op: Op, index: int) -> str:
    names: tuple[str, ...] = ()
    if isinstance(op, If):
        names = ("then", "else")
    elif isinstance(op, ReverseLoop):
        names = ("advance", "reverse")
    elif isinstance(op, Loop):
        names = ("while", "do") if op.has_condition else ("do",)
    return names[index] if index < len(names) else f"region{index}"


def _plain(name: str) -> Callable[[_Printer, Any], str]:
    return lambda printer, op: f"{name} {printer.uses(op.operands)}".rstrip()


def _extract(printer: _Printer, op: Extract) -> str:
    return f"extract {printer.use(op.operands[0])}{printer.path(op.path, op.operands[1:])}"


def _insert(printer: _Printer, op: Insert) -> str:
    aggregate, part, *dynamic = op.operands
    return f"insert {printer.use(aggregate)}{printer.path(op.path, dynamic)} <- {printer.use(part)}"


def _call(printer: _Printer, op: Call) -> str:
    attributes = "".join(f", {attribute!r}" for attribute in op.attributes)
    return f"{op.builtin.name}({printer.uses(op.operands)}{attributes})"


def _invoke(printer: _Printer, op: Invoke) -> str:
    return f"invoke {op.function.name}({printer.uses(op.operands)})"


def _native(printer: _Printer, op: Native) -> str:
    pairs = (f"{name}={printer.use(value)}" for name, value in zip(op.names, op.operands, strict=False))
    return f"native {op.name or 'snippet'}({', '.join(pairs)})"


def _view(printer: _Printer, op: View) -> str:
    array, text = printer.use(op.operands[0]), printer.uses(op.operands[1:])
    if op.axis is None:
        return f"view {array}[{text}]"
    return f"view {array} axis {op.axis}[{text}]" + (f" step {op.step}" if op.step != 1 else "")


def _load(printer: _Printer, op: Load) -> str:
    return f"load {printer.element(op)}"


def _store(printer: _Printer, op: Store) -> str:
    return f"store {printer.element(op)} <- {printer.use(op.value)}"


def _atomic(printer: _Printer, op: Atomic) -> str:
    expected = f" if {printer.use(op.operands[-1])}" if op.kind == "cas" else ""
    return f"atomic {op.kind} {printer.element(op)} <- {printer.use(op.value)}{expected}"


def _loop(printer: _Printer, op: Loop) -> str:
    trip = "" if op.trip is None else f" {printer.use(op.trip)}"
    saved = f", saved {list(op.saved)}" if op.saved else ""
    site = "" if op.site is None else f" site {op.site}{saved}"
    return f"loop{trip} ({printer.uses(op.inits)}){site}"


def _reverse_loop(printer: _Printer, op: ReverseLoop) -> str:
    site = "" if op.site is None else f" site {op.site}{', saved' if op.is_saved else ''}"
    state, adjoints = printer.uses(op.entry_state), printer.uses(op.inits)
    return f"reverse_loop {printer.use(op.trip)} ({state}) adjoints ({adjoints}){site}"


def _unknown(printer: _Printer, op: Op) -> str:
    return f"{type(op).__name__}({printer.uses(op.operands)})"


_TEXTS: dict[type[Op], Callable[[_Printer, Any], str]] = {
    Const: lambda printer, op: f"const {op.value!r}",
    Cast: _plain("cast"),
    Construct: _plain("construct"),
    Extract: _extract,
    Insert: _insert,
    ThreadIndex: _plain("thread_index"),
    Record: _plain("record"),
    Recall: lambda printer, op: f"recall({printer.uses(op.operands) if op.offset is None else op.offset})",
    RecordStart: _plain("record_start"),
    Call: _call,
    Invoke: _invoke,
    Native: _native,
    View: _view,
    Load: _load,
    Store: _store,
    Atomic: _atomic,
    If: _plain("if"),
    Loop: _loop,
    ReverseLoop: _reverse_loop,
    Yield: _plain("yield"),
}

__all__ = ["print_function"]
