"""Statements of one function: the part of the text that C++ and its dialects share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from warp._src.emit.names import cpp_constant, is_array, is_struct, is_tensor, plain_name
from warp._src.emit.paths import component, dynamic_sizes
from warp._src.emit.unit import Unit
from warp._src.ir.core import Function, Region, Type, Value
from warp._src.ir.ops import (
    Call,
    Cast,
    Const,
    Construct,
    Extract,
    Insert,
    Load,
    Op,
    Path,
    Store,
    ThreadIndex,
    View,
    Yield,
)
from warp._src.types.scalars import is_float
from warp.errors import InternalCompilerError

INDENT: Final = "    "
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
# Operations that take the index of the work item, for messages: kinds of wp_fault.
FAULT_ASSERT: Final = "WP_FAULT_ASSERT"
FAULT_DIVISION: Final = "WP_FAULT_DIVISION"
FAULT_NOT_FINITE: Final = "WP_FAULT_NOT_FINITE"
_INTEGER_DIVISIONS: Final = ("div", "mod", "floordiv")

Emitter = Callable[["Body", Any], None]
EMITTERS: Final[dict[type[Op], Emitter]] = {}


class Body:
    """The text of one function body while it is written.

    Every value has a C++ name or literal in `names`. A value of an aggregate type is a variable that may be
    changed in place once its value is no longer needed.
    """

    def __init__(self, unit: Unit, function: Function, depth: int) -> None:
        self.unit = unit
        self.function = function
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.hoisted: dict[Value, str] = {}  # arrays to the names of their has-gradient tests
        self.storage: dict[str, str] = {}  # memory that the function needs from its start, by name: declarations
        self._depth = depth
        self._count = 0
        self._reusable: set[Value] = set()  # aggregates that nothing reads after the operation being emitted
        self._owned: set[Value] = set()

    # -- text ------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Append a line at the current depth."""
        self.lines.append(INDENT * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Open a block after `head`, which is empty or ends without a brace."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def name(self, value: Value) -> str:
        """Text of a value that was emitted before."""
        try:
            return self.names[value]
        except KeyError:
            raise InternalCompilerError(f"{value!r} is used before it is defined in {self.function.name}") from None

    def named(self, values: Sequence[Value]) -> list[str]:
        return [self.name(value) for value in values]

    def fresh(self, hint: str = "") -> str:
        """Make a new variable name."""
        self._count += 1
        hint = plain_name(hint)
        return f"v{self._count}_{hint}" if hint else f"v{self._count}"

    def text(self) -> list[str]:
        """Give all lines, the declarations of storage first."""
        return [*(INDENT + declaration for declaration in self.storage.values()), *self.lines]

    # -- values ----------------------------------------------------------------------------------------

    def define(self, value: Value, text: str) -> str:
        """Declare the variable of `value` with an initial value."""
        name = self.fresh(value.name)
        is_aggregate = _is_aggregate(value.type)
        self.line(f"{'' if is_aggregate else 'const '}{self.unit.type(value.type)} {name} = {text};")
        self.names[value] = name
        if is_aggregate:
            self._owned.add(value)
        return name

    def declare(self, value: Value, text: str = "") -> str:
        """Declare the variable of `value`, which is assigned later or changes."""
        name = self.variable(value.type, value.name, text)
        self.bind(value, name)
        return name

    def variable(self, type: Type, hint: str, text: str = "") -> str:
        """Declare a variable that changes."""
        name = self.fresh(hint)
        self.line(f"{self.unit.type(type)} {name}{f' = {text}' if text else ''};")
        return name

    def bind(self, value: Value, name: str) -> None:
        """Let `value` stand for a variable that changes but keeps this value as long as it is used."""
        self.names[value] = name
        if _is_aggregate(value.type):
            self._owned.add(value)

    def take(self, value: Value) -> str | None:
        """Give the variable of an aggregate that nothing reads any more, so that it may be changed."""
        return self.name(value) if value in self._reusable and value in self._owned else None

    # -- regions ---------------------------------------------------------------------------------------

    def region(self, region: Region) -> tuple[Value, ...]:
        """Emit the operations of a region; gives the values that it yields."""
        last_use = _last_uses(region)
        outer = self._reusable
        for index, op in enumerate(region.ops):
            if isinstance(op, Yield):
                self._reusable = outer
                return op.operands
            self._reusable = {operand for operand in op.operands if last_use.get(operand) == index}
            emit = EMITTERS.get(type(op))
            if emit is None:
                raise InternalCompilerError(f"{op.loc}: operation {type(op).__name__} has no C++ text")
            emit(self, op)
        self._reusable = outer
        return ()

    # -- faults ----------------------------------------------------------------------------------------

    def raise_fault(self, kind: str, op: Op) -> str:
        """Text of the expression that reports a fault at the operation's line."""
        return f"wp_raise_fault(launch, {kind}, {op.loc.line}, item)"

    def check_finite(self, op: Op, type: Type, text: str) -> None:
        """Report `text` if it is a float or float tensor that is not finite, where the options ask for it."""
        if self.unit.options.verify_fp and is_float(getattr(type, "scalar", type)):
            what = cpp_string(self.source_name(op.array if isinstance(op, (Load, Store)) else op.results[0]))
            self.line(
                f"if (!wp::is_finite_value({text})) wp_raise_detailed(launch, {FAULT_NOT_FINITE}, {op.loc.line}, item, "
                f"{what}, 0, 0, 0, wp::not_finite_in({text}));"
            )

    def source_name(self, value: Value) -> str:
        """Name that a value has in the user's program, or an empty text."""
        return value.name if value.name.isidentifier() else ""

    def component_indices(self, op: Op, value: Value, type: Any, path: Path, indices: Sequence[Value]) -> list[str]:
        """Texts of the dynamic indices of a path; debug mode checks them against the sizes of their components."""
        texts = self.named(indices)
        if not self.unit.options.debug:
            return texts
        what = cpp_string(self.source_name(value))
        return [
            f"wp::checked_component(launch, {op.loc.line}, item, {what}, {text}, {size})"
            for text, size in zip(texts, dynamic_sizes(type, path), strict=True)
        ]


def _is_aggregate(type: Type) -> bool:
    return is_tensor(type) or is_struct(type)


def _last_uses(region: Region) -> dict[Value, int]:
    """Position of the last use of each value that the region itself defines and only this region's level owns."""
    own = {value for op in region.ops for value in op.results}.union(region.args)
    uses: dict[Value, int] = {}
    for index, op in enumerate(region.ops):
        for value in op.operands:
            uses[value] = index
        for inner in op.regions:
            for nested in inner.walk():
                for value in nested.operands:
                    uses[value] = index
    return {value: index for value, index in uses.items() if value in own}


def emitter(op_type: type[Op]) -> Callable[[Emitter], Emitter]:
    """Register the function that emits operations of a type."""

    def register(function: Emitter) -> Emitter:
        EMITTERS[op_type] = function
        return function

    return register


@emitter(Const)
def _const(body: Body, op: Const) -> None:
    body.unit.type(op.result.type)
    body.names[op.result] = cpp_constant(op.result.type, op.value)


@emitter(Cast)
def _cast(body: Body, op: Cast) -> None:
    (operand,) = op.operands
    body.define(op.result, _converted(body, body.name(operand), operand.type, op.result.type))


@emitter(Construct)
def _construct(body: Body, op: Construct) -> None:
    parts = ", ".join(body.named(op.operands))
    # A tensor holds its scalars in an inner C array.
    body.define(op.result, f"{{{{{parts}}}}}" if is_tensor(op.result.type) and parts else f"{{{parts}}}")


@emitter(Extract)
def _extract(body: Body, op: Extract) -> None:
    aggregate, *indices = op.operands
    texts = body.component_indices(op, aggregate, aggregate.type, op.path, indices)
    body.define(op.result, component(body.name(aggregate), aggregate.type, op.path, texts))


@emitter(Insert)
def _insert(body: Body, op: Insert) -> None:
    aggregate, part, *indices = op.operands
    part_text = body.name(part)
    texts = body.component_indices(op, aggregate, aggregate.type, op.path, indices)
    name = body.take(aggregate)
    if name is None:
        name = body.define(op.result, body.name(aggregate))
    else:
        body.bind(op.result, name)
    body.line(f"{component(name, aggregate.type, op.path, texts)} = {part_text};")


@emitter(ThreadIndex)
def _thread_index(body: Body, op: ThreadIndex) -> None:
    for axis, result in enumerate(op.results):
        body.names[result] = f"tid{axis}"


@emitter(View)
def _view(body: Body, op: View) -> None:
    array, *indices = op.operands
    text = body.name(array)
    if op.axis is not None:
        where = ", ".join([text, str(op.axis), *body.named(indices)])
        body.define(op.result, f"wp::drop({where})" if len(indices) == 1 else f"wp::slice({where}, {op.step})")
        return
    for index in body.named(indices):
        text = f"wp::view({text}, {index})"
    body.define(op.result, text)


@emitter(Call)
def _call(body: Body, op: Call) -> None:
    special = {"printf": _printf, "assert_": _assert}.get(op.builtin.name)
    if special is not None:
        special(body, op)
        return
    record, computed = op.builtin.builtin, op.builtin.computed
    if body.unit.options.debug and op.builtin.name in _INTEGER_DIVISIONS:
        _check_division(body, op)
    arguments = [
        _converted(body, body.name(operand), operand.type, type)
        for operand, type in zip(op.operands, computed.param_types, strict=True)
    ]
    substitutions = dict(zip(record.parameters, arguments, strict=True))
    substitutions.update((variable.__name__, _bound_text(body, bound)) for variable, bound in computed.bindings.items())
    if len(op.results) == 1 and "{ret" not in record.cpp:
        text = _substitute(record.cpp, substitutions)
        body.define(op.result, _converted(body, text, computed.result_types[0], op.result.type))
    else:
        _call_by_reference(body, op, substitutions)
    for result in op.results:
        body.check_finite(op, result.type, body.name(result))


def _call_by_reference(body: Body, op: Call, substitutions: dict[str, str]) -> None:
    """Call a builtin that assigns its results to variables."""
    types = op.builtin.computed.result_types
    is_direct = op.builtin.computed is op.builtin
    names = [body.declare(r) if is_direct else body.variable(t, r.name) for r, t in zip(op.results, types, strict=True)]
    substitutions.update((f"ret{index}", name) for index, name in enumerate(names))
    if names:
        substitutions["ret"] = names[-1]
    body.line(f"{_substitute(op.builtin.builtin.cpp, substitutions)};")
    if not is_direct:
        for result, name, type in zip(op.results, names, types, strict=True):
            body.define(result, _converted(body, name, type, result.type))


def _converted(body: Body, text: str, source: Type, target: Type) -> str:
    if source == target:
        return text
    return f"wp::{'cast_all' if is_tensor(target) else 'cast'}<{body.unit.type(target)}>({text})"


def _bound_text(body: Body, bound: Any) -> str:
    return str(bound) if isinstance(bound, int) else body.unit.type(bound)


def _substitute(template: str, substitutions: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: substitutions.get(match[1], match[0]), template)


def _check_division(body: Body, op: Call) -> None:
    divisor = op.operands[1]
    if getattr(divisor.type, "kind", "") in ("i", "u"):
        body.line(f"if ({body.name(divisor)} == 0) {body.raise_fault(FAULT_DIVISION, op)};")


def _assert(body: Body, op: Call) -> None:
    body.line(f"if (!({body.name(op.operands[0])})) {body.raise_fault(FAULT_ASSERT, op)};")


def _printf(body: Body, op: Call) -> None:
    arguments = [cpp_string(str(op.attributes[0]))]
    for operand in op.operands:
        text = body.name(operand)
        is_widened = is_float(operand.type) and operand.type.size < 8
        arguments.append(f"(double){text}" if is_widened else text)
    function = "printf" if body.unit.options.target == "cuda" else "wp_m.printf"
    body.line(f"{function}({', '.join(arguments)});")


def cpp_string(text: str) -> str:
    """Spell a string literal; bytes outside printable ASCII are octal escapes, which never run on."""
    quoted = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}" for byte in text.encode("utf-8")
    )
    return f'"{"".join(quoted)}"'


def has_gradient(body: Body, array: Value) -> str:
    """Text of the test whether an array has a gradient."""
    if array in body.hoisted:
        return body.hoisted[array]
    return f"wp::has_grad({body.name(array)})"


__all__ = ["EMITTERS", "Body", "cpp_string", "emitter", "has_gradient", "is_array"]
