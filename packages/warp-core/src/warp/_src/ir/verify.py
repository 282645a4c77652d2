"""Checks that a function is valid IR; runs after every pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from warp._src.ir.core import Function, Region, Type, Value
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
    Store,
    ThreadIndex,
    View,
    Yield,
)
from warp._src.ir.printer import print_function
from warp._src.types.arrays import MAX_DIMENSIONS, ArrayType
from warp._src.types.scalars import bool_, int32, int64, is_int, is_scalar
from warp._src.types.signature import component_type, is_array, is_tensor, type_name
from warp._src.types.struct_type import StructType
from warp.errors import InternalCompilerError, KernelTypeError

_ATOMICS = {"add", "sub", "min", "max", "exch", "cas", "and", "or", "xor"}
_BITWISE = {"and", "or", "xor"}

# For each region of an operation: the types that it takes and that it yields.
Regions = Sequence[tuple[Sequence[Type], Sequence[Type]]]


def verify(function: Function, after: str = "") -> None:
    """Check values, types, regions and memory accesses of `function`.

    Raises InternalCompilerError that names the pass `after` which it ran, the fault and the operation, and
    shows the code.
    """
    try:
        _Verifier(function).run()
    except _InvalidError as fault:
        stage = f" after pass '{after}'" if after else ""
        text = print_function(function)
        raise InternalCompilerError(f"invalid code{stage} in '{function.name}': {fault}\n{text}") from fault


class _InvalidError(Exception):
    """What is wrong, and where."""


class _Verifier:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.visible: set[Value] = set()
        self.defined: set[Value] = set()

    def run(self) -> None:
        function = self.function
        body = function.body
        if _types(body.args) != _types(function.params):
            raise _InvalidError(f"the body takes ({_names(body.args)}), the parameters are ({_names(function.params)})")
        if function.is_kernel and function.result_types:
            raise _InvalidError("a kernel has results")
        if body.args != function.params:
            self.define(function.params, "parameters")
        self.region(body, function.result_types, "the function")

    def define(self, values: Sequence[Value], where: str) -> None:
        for value in values:
            if value in self.defined:
                raise _InvalidError(f"{where}: value '{value.name}' of type {type_name(value.type)} is defined twice")
            self.defined.add(value)
            self.visible.add(value)

    def region(self, region: Region, yields: Sequence[Type], where: str) -> None:
        """Check a region in which everything around it is visible, and that it yields the given types."""
        outer = set(self.visible)
        self.define(region.args, where)
        if not region.ops or not isinstance(region.ops[-1], Yield):
            raise _InvalidError(f"{where}: the region does not end with a yield")
        for op in region.ops:
            self.op(op, is_last=op is region.ops[-1])
        if _types(region.terminator.operands) != tuple(yields):
            given = _names(region.terminator.operands)
            raise _InvalidError(f"{where}: the region yields ({given}), expected ({type_name(tuple(yields))})")
        self.visible = outer

    def op(self, op: Op, is_last: bool) -> None:
        where = f"{type(op).__name__} at {op.loc}"
        for number, operand in enumerate(op.operands):
            if operand not in self.visible:
                state = "not visible here" if operand in self.defined else "not defined before"
                raise _InvalidError(f"{where}: operand {number} ('{operand.name}') is {state}")
        if isinstance(op, Yield):
            if not is_last or op.results or op.regions:
                raise _InvalidError(f"{where}: a yield only ends a region")
            return
        self.regions(op, self.checked(op, where), where)
        self.define(op.results, where)

    def checked(self, op: Op, where: str) -> Regions:
        """Check types and attributes; give what the regions must take and yield."""
        check = _CHECKS.get(type(op))
        if check is None:
            raise _InvalidError(f"{where}: unknown operation")
        try:
            return check(op) or ()
        except (KernelTypeError, _InvalidError) as fault:
            raise _InvalidError(f"{where}: {fault}") from fault

    def regions(self, op: Op, expected: Regions, where: str) -> None:
        if len(expected) != len(op.regions):
            raise _InvalidError(f"{where}: has {len(op.regions)} regions, expected {len(expected)}")
        for region, (args, yields) in zip(op.regions, expected, strict=True):
            if _types(region.args) != tuple(args):
                found = f"a region takes ({_names(region.args)})"
                raise _InvalidError(f"{where}: {found}, expected ({type_name(tuple(args))})")
            self.region(region, yields, where)


def _types(values: Sequence[Value]) -> tuple[Type, ...]:
    return tuple(value.type for value in values)


def _names(values: Sequence[Value]) -> str:
    return type_name(_types(values))


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise _InvalidError(message)


def _expect_types(what: str, values: Sequence[Value], types: Sequence[Type]) -> None:
    # Messages of what is asked of every operation are only made when needed: they would cost more than the checks.
    if _types(values) != tuple(types):
        raise _InvalidError(f"{what} are ({_names(values)}), expected ({type_name(tuple(types))})")


def _component(aggregate: Type, path: Path, dynamic: Sequence[Value]) -> Type:
    """Check the dynamic indices of a path and give the type that it leads to."""
    _expect(path.count(None) == len(dynamic), f"path {path} has {len(dynamic)} dynamic indices")
    _expect_indices(dynamic)
    return component_type(aggregate, path)


def _expect_indices(indices: Sequence[Value]) -> None:
    for index in indices:
        if not is_int(index.type):
            raise _InvalidError(f"an index has type {type_name(index.type)}")


def _check_const(op: Const) -> None:
    _expect(not op.operands, "has operands")
    type = op.result.type
    _expect(is_scalar(type), f"the result is {type_name(type)}, not a scalar")
    kind = {"b": bool, "f": float}.get(type.kind, int)
    _expect(op.value.__class__ is kind, f"the value {op.value!r} is not a Python {kind.__name__}")
    rounded = type.convert(op.value)
    _expect(rounded == op.value or op.value != op.value, f"the value {op.value!r} is not a {type.name}")


def _check_cast(op: Cast) -> None:
    (operand,) = _operands(op, 1)
    source, target = operand.type, op.result.type
    fits = (is_scalar(source) and is_scalar(target)) or (
        is_tensor(source) and is_tensor(target) and (source.category, source.shape) == (target.category, target.shape)
    )
    _expect(fits, f"from {type_name(source)} to {type_name(target)}")


def _operands(op: Op, count: int) -> tuple[Value, ...]:
    _expect(len(op.operands) >= count, f"has {len(op.operands)} operands")
    return op.operands[:count]


def _check_construct(op: Construct) -> None:
    type = op.result.type
    if not op.operands:
        return
    if is_tensor(type):
        _expect_types("the scalars", op.operands, (type.scalar,) * type.length)
        return
    _expect(isinstance(type, StructType), f"{type_name(type)} cannot be made from parts")
    _expect_types("the fields", op.operands, tuple(type.fields.values()))


def _check_extract(op: Extract) -> None:
    (aggregate,) = _operands(op, 1)
    _expect(bool(op.path), "the path is empty")
    _expect_types("the results", op.results, [_component(aggregate.type, op.path, op.operands[1:])])


def _check_insert(op: Insert) -> None:
    aggregate, part = _operands(op, 2)
    _expect(bool(op.path), "the path is empty")
    _expect_types("the component", [part], [_component(aggregate.type, op.path, op.operands[2:])])
    _expect_types("the results", op.results, [aggregate.type])


def _check_record(op: Record) -> None:
    _operands(op, 1)


def _check_recall(op: Recall) -> None:
    _expect_types("the position", op.operands, () if op.offset is not None else (int64,))
    _expect(len(op.results) == 1, f"has {len(op.results)} results")


def _check_record_start(op: RecordStart) -> None:
    _expect_types("the results", op.results, (int64,))


def _check_thread_index(op: ThreadIndex) -> None:
    _expect(not op.operands, "has operands")
    _expect(1 <= len(op.results) <= MAX_DIMENSIONS, f"has {len(op.results)} results")
    _expect_types("the results", op.results, (int32,) * len(op.results))


def _check_call(op: Call) -> None:
    _expect_types(f"the arguments of {op.builtin.name}", op.operands, op.builtin.param_types)
    _expect_types(f"the results of {op.builtin.name}", op.results, op.builtin.result_types)


def _check_invoke(op: Invoke) -> None:
    callee = op.function
    _expect(not callee.is_kernel, f"'{callee.name}' is a kernel")
    _expect_types(f"the arguments of '{callee.name}'", op.operands, _types(callee.params))
    wanted = [v.type for v in op.operands if not is_array(v.type)] if op.is_gradient else callee.result_types
    _expect_types(f"the results of '{callee.name}'", op.results, wanted)


def _check_native(op: Native) -> None:
    _expect(len(op.names) == len(op.operands), f"{len(op.names)} names for {len(op.operands)} operands")
    _expect(len(op.results) <= 1, f"has {len(op.results)} results")


def _check_view(op: View) -> None:
    array, indices = _operands(op, 1)[0], op.operands[1:]
    _expect(is_array(array.type), f"of {type_name(array.type)}")
    _expect_indices(indices)
    rank = array.type.ndim - len(indices)
    if op.axis is not None:
        _expect(isinstance(array.type, ArrayType) or op.step == 1, f"in steps of {type_name(array.type)}")
        _expect(0 <= op.axis < array.type.ndim, f"along axis {op.axis} of {type_name(array.type)}")
        _expect(len(indices) in (1, 2) and op.step != 0, f"{len(indices)} operands, step {op.step}")
        rank = array.type.ndim - (len(indices) == 1)
    _expect(bool(indices) and rank >= 1, f"{len(indices)} indices into {type_name(array.type)}")
    _expect_types("the results", op.results, [type(array.type)(array.type.dtype, rank)])


def _element(op: Load | Store) -> Type:
    """Check array, indices and path of an access; give the type of what is read or written."""
    array = op.array
    if not is_array(array.type):
        raise _InvalidError(f"of {type_name(array.type)}, not an array")
    if op.rank != array.type.ndim:
        raise _InvalidError(f"{op.rank} indices for {type_name(array.type)}")
    _expect(len(op.indices) == op.rank, f"has {len(op.indices)} of {op.rank} indices")
    _expect_indices(op.indices)
    return _component(array.type.dtype, op.path, op.path_indices)


def _check_load(op: Load) -> None:
    _operands(op, 1 + op.rank)
    _expect_types("the results", op.results, [_element(op)])


def _check_store(op: Store) -> None:
    _operands(op, 2 + op.rank)
    _expect_types("the value", [op.value], [_element(op)])
    _expect(not op.results, "has results")


def _check_atomic(op: Atomic) -> None:
    _expect(op.kind in _ATOMICS, f"unknown kind '{op.kind}'")
    _operands(op, 2 + op.rank + (op.kind == "cas"))
    type = _element(op)
    _expect_types("the value", [op.value], [type])
    if op.kind == "cas":
        _expect_types("the expected value", op.operands[-1:], [type])
    if op.kind in _BITWISE:
        scalar = type.scalar if is_tensor(type) else type
        _expect(is_int(scalar), f"'{op.kind}' of {type_name(type)}")
    _expect(_types(op.results) in ((), (type,)), f"the results are ({_names(op.results)})")


def _check_if(op: If) -> Regions:
    _expect_types("the operands", op.operands, [bool_])
    results = _types(op.results)
    return [((), results), ((), results)]


def _check_loop(op: Loop) -> Regions:
    _expect(op.has_trip or op.has_condition, "has neither trip count nor condition")
    index = _trip_type(_operands(op, 1)[0]) if op.has_trip else int64
    carried = _types(op.inits)
    _expect_types("the results", op.results, (*carried, index))
    _expect(op.site is not None or not op.saved, "saves states without a site")
    _expect(all(0 <= number < len(carried) for number in op.saved), f"saves {list(op.saved)} of {len(carried)} states")
    body = ((index, *carried), carried)
    return [(carried, (bool_,)), body] if op.has_condition else [body]


def _check_reverse_loop(op: ReverseLoop) -> Regions:
    _operands(op, 1 + op.states)
    index = _trip_type(op.trip)
    states, adjoints = _types(op.entry_state), _types(op.inits)
    _expect_types("the results", op.results, adjoints)
    _expect(op.site is not None or not op.is_saved, "uses saved states without a site")
    return [((index, *states), states), ((index, *states, *adjoints), adjoints)]


def _trip_type(trip: Value) -> Any:
    _expect(is_int(trip.type), f"the trip count is {type_name(trip.type)}")
    return trip.type


_CHECKS: dict[type[Op], Callable[[Any], Regions | None]] = {
    Const: _check_const,
    Cast: _check_cast,
    Construct: _check_construct,
    Extract: _check_extract,
    Insert: _check_insert,
    ThreadIndex: _check_thread_index,
    Record: _check_record,
    Recall: _check_recall,
    RecordStart: _check_record_start,
    Call: _check_call,
    Invoke: _check_invoke,
    Native: _check_native,
    View: _check_view,
    Load: _check_load,
    Store: _check_store,
    Atomic: _check_atomic,
    If: _check_if,
    Loop: _check_loop,
    ReverseLoop: _check_reverse_loop,
}

__all__ = ["verify"]
