"""The closed list of operations.

| operation | meaning | effects |
|---|---|---|
| Const, Cast, Construct, Extract, Insert | values; components, fields and local arrays are functional | none |
| ThreadIndex | index of the work item, one result per launch dimension | none |
| Call | a builtin, by its record | as the record declares |
| Invoke | a user function that keeps its own body and adjoint | union of the body's |
| Native | a snippet with its adjoint and replay texts | every array it gets: read and written |
| View | array and leading indices to an array of lower rank | none |
| Load, Store, Atomic | an array element, or a component of it, in primal or gradient space | read; write; both |
| Record, Recall, RecordStart | values kept by the taped forward launch for its adjoint | keeps; none |
| If | condition and two regions to results | union |
| Loop | carried values, optional condition region, body | union |
| ReverseLoop | the reverse sweep of a Loop over states that are recomputed from checkpoints | union |
| Yield | ends a region | none |
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Any, Protocol

from warp._src.ir.core import Function, Location, Region, Type, Value

# A step into an aggregate: an int is a constant component, a str a struct field (or "p"/"q" of a transform),
# None a component whose index is the next operand.
Path = tuple["int | str | None", ...]


class Space(enum.Enum):
    """Memory that a load, store or atomic touches: the array itself or its gradient."""

    PRIMAL = "primal"
    GRADIENT = "gradient"


class BuiltinRecord(Protocol):
    """What the IR needs to know of a builtin overload (`warp._src.builtins.declare.Overload`)."""

    @property
    def name(self) -> str: ...
    @property
    def has_effects(self) -> bool: ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Op:
    """Base of all operations."""

    loc: Location
    results: tuple[Value, ...] = ()
    operands: tuple[Value, ...] = ()
    regions: tuple[Region, ...] = ()

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def rebuilt(self, results: tuple[Value, ...], operands: tuple[Value, ...], regions: tuple[Region, ...]) -> Op:
        """Copy this operation with other values and regions; its attributes stay."""
        return replace(self, results=results, operands=operands, regions=regions)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Const(Op):
    """A scalar: `value` is a Python bool, int or float already rounded to the result's type."""

    value: bool | int | float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cast(Op):
    """Convert the operand, a scalar or a tensor, to the result's scalar type (docs/semantics.md, casts)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Construct(Op):
    """Make a tensor from all its scalars in row-major order or a struct from all its fields.

    Without operands it is the zero value of any type (a null array for array types).
    """


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Extract(Op):
    """Component of an aggregate: operands are the aggregate and the dynamic indices of `path`.

    One step into a matrix gives a row.
    """

    path: Path


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Insert(Op):
    """The aggregate with one component replaced: operands are aggregate, component, dynamic indices."""

    path: Path


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ThreadIndex(Op):
    """Coordinates of the work item, int32; one result per requested dimension."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Call(Op):
    """A builtin. The record gives the C++ text, the adjoint and the reference implementation."""

    builtin: Any  # a BuiltinRecord
    attributes: tuple[Any, ...] = ()  # compile-time arguments, such as the format of printf


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Invoke(Op):
    """A call of a user function that is not inlined (yet).

    With `is_gradient` the function, which has one float as its result, is not called itself: the results are the
    derivatives of that float by each operand that is no array.
    """

    function: Function
    is_gradient: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Native(Op):
    """A C++ snippet; `names` are the operand names that the texts use.

    With one result and no `result_names` the snippet returns it with a C++ `return`. With `result_names` the
    snippet sees each result as a variable of that name which starts at zero and is read at the end; `return;`
    leaves early. An array is seen as an accessor (`x[i]`, `x(i, j)`, `x.data`, `x.shape[0]`); if its name is
    `adj_` and the name of another operand, and both operands are the same array, it is the accessor of that
    array's gradient, in which a missing gradient reads 0 and drops writes. So the adjoint of a snippet is a
    Native with the text `adjoint_snippet`, the primal operands, each array once more under its `adj_` name,
    the adjoint of the returned value as operand `adj_ret`, and as results the adjoints of the scalar, tensor
    and struct operands under their `adj_` names.
    """

    names: tuple[str, ...]
    snippet: str
    adjoint_snippet: str | None = None
    replay_snippet: str | None = None
    result_names: tuple[str, ...] = ()
    name: str = ""
    record_id: int | None = None  # as for Load, of the returned value


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class View(Op):
    """Part of an array that shares its memory.

    Without `axis` it is the array of lower rank that starts at the given leading indices: operands are array and
    indices. With `axis` the operands are array and index, and that axis is left out; or array, start and extent,
    and that axis has the elements start, start + step, and so on. An indexed array has only the first form.
    """

    axis: int | None = None
    step: int = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Load(Op):
    """Read `array[indices]`, or the component of the element that `path` names.

    Operands: array, one index per dimension, dynamic indices of the path.
    """

    rank: int
    path: Path = ()
    space: Space = Space.PRIMAL
    hazard: str = ""  # why the value that was read cannot be read again after the kernel ran
    record_id: int | None = None  # number of the value among those that may have to be recorded

    @property
    def array(self) -> Value:
        return self.operands[0]

    @property
    def indices(self) -> tuple[Value, ...]:
        return self.operands[1 : 1 + self.rank]

    @property
    def path_indices(self) -> tuple[Value, ...]:
        return self.operands[1 + self.rank :]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Store(Op):
    """Write the element, or the component that `path` names.

    Operands: array, value, one index per dimension, dynamic indices of the path.
    """

    rank: int
    path: Path = ()
    space: Space = Space.PRIMAL

    @property
    def array(self) -> Value:
        return self.operands[0]

    @property
    def value(self) -> Value:
        return self.operands[1]

    @property
    def indices(self) -> tuple[Value, ...]:
        return self.operands[2 : 2 + self.rank]

    @property
    def path_indices(self) -> tuple[Value, ...]:
        return self.operands[2 + self.rank :]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Atomic(Store):
    """Read-modify-write of one element, or of one component of it; at most one result, the old value.

    `kind` is add, sub, min, max, exch, cas, and, or, xor. Operands are those of Store; cas has the expected
    value as its last operand.
    """

    kind: str
    record_id: int | None = None  # as for Load, of the old value

    @property
    def path_indices(self) -> tuple[Value, ...]:
        rest = self.operands[2 + self.rank :]
        return rest[:-1] if self.kind == "cas" else rest


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Record(Op):
    """Keep the operand for the backward pass.

    It goes to the thread's fixed place at `offset`, in bytes, or, if that is None, to the end of the stream.
    """

    offset: int | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Recall(Op):
    """A value that the forward launch kept.

    It comes from the thread's fixed place at `offset` or, if that is None, from the stream at the position that
    is the operand.
    """

    offset: int | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RecordStart(Op):
    """Position in the stream, int64, at which the thread's first value lies."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class If(Op):
    """Operand: the condition (bool). Regions: then and else, both yield the results."""

    @property
    def condition(self) -> Value:
        return self.operands[0]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Loop(Op):
    """Run the body while iterations remain and the condition region, if any, yields true.

    Operands: trip count if `has_trip`, then the initial carried values. Regions: (condition, body) if
    `has_condition`, else (body,). The condition takes the carried values and yields a bool; the body takes
    the iteration number k = 0, 1, ... and the carried values and yields the next ones. Results: the final
    carried values, then the number of iterations that ran. k and the count have the type of the trip count
    (int64 without one). `site` numbers the loop's checkpoint storage; if it is set, the states named by
    `saved` (indices of carried values) are kept for the ReverseLoop of the same site.
    """

    has_trip: bool
    has_condition: bool
    site: int | None = None
    saved: tuple[int, ...] = ()

    @property
    def trip(self) -> Value | None:
        return self.operands[0] if self.has_trip else None

    @property
    def inits(self) -> tuple[Value, ...]:
        return self.operands[1:] if self.has_trip else self.operands

    @property
    def condition(self) -> Region | None:
        return self.regions[0] if self.has_condition else None

    @property
    def body(self) -> Region:
        return self.regions[-1]

    @property
    def count(self) -> Value:
        return self.results[-1]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReverseLoop(Op):
    """For k = trip-1 down to 0: adjoints = reverse(k, state(k), adjoints).

    Operands: trip, the entry state (`states` values), the initial adjoints. Regions: `advance` takes k and a
    state and yields the next state; `reverse` takes k, the state before iteration k and the adjoints, and
    yields the adjoints. Results: the final adjoints. Without states there is nothing to recompute and
    `advance` only yields. With a `site` the states were saved by the Loop of that site; else they are
    recomputed from the entry state. Either way the schedule is treeverse over the free slots
    (A. Griewank, 1992, Achieving logarithmic growth of temporal and spatial complexity).
    """

    states: int
    site: int | None = None
    is_saved: bool = False

    @property
    def trip(self) -> Value:
        return self.operands[0]

    @property
    def entry_state(self) -> tuple[Value, ...]:
        return self.operands[1 : 1 + self.states]

    @property
    def inits(self) -> tuple[Value, ...]:
        return self.operands[1 + self.states :]

    @property
    def advance(self) -> Region:
        return self.regions[0]

    @property
    def reverse(self) -> Region:
        return self.regions[1]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Yield(Op):
    """Ends a region with the values that it gives to the operation that holds it."""


def has_effects(op: Op) -> bool:
    """Tell whether `op` does more than compute its results, so that it must stay even if they are unused.

    A load has no effect in this sense.
    """
    if isinstance(op, (Store, Native, Record)):
        return True
    if isinstance(op, Call):
        return bool(op.builtin.has_effects)
    if isinstance(op, Invoke):
        return any(has_effects(inner) for inner in op.function.walk())
    return any(has_effects(inner) for region in op.regions for inner in region.ops)


__all__ = [
    "Atomic",
    "BuiltinRecord",
    "Call",
    "Cast",
    "Const",
    "Construct",
    "Extract",
    "If",
    "Insert",
    "Invoke",
    "Load",
    "Loop",
    "Native",
    "Op",
    "Path",
    "Recall",
    "Record",
    "RecordStart",
    "ReverseLoop",
    "Space",
    "Store",
    "ThreadIndex",
    "Type",
    "View",
    "Yield",
    "has_effects",
]
