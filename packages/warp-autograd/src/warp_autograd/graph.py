"""The graph of a tape: operations in nested groups, arrays, and the edges between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from warp.recording import Recordable, is_overlapping
from warp.types import type_name
from warp_autograd.arguments import named_arrays
from warp_autograd.scopes import Scope

if TYPE_CHECKING:
    from warp_autograd.tape import Tape

_LEAST_REPEATS = 3
_LONGEST_PERIOD = 64


@dataclass
class ArrayNode:
    """An array: all wrappers of the same elements."""

    identifier: str
    array: Any
    names: dict[str, None] = field(default_factory=dict)
    """Names of the parameters that it was given to, in order."""
    is_written: bool = False

    @property
    def requires_grad(self) -> bool:
        """Say whether it has a gradient."""
        return bool(self.array.requires_grad)

    @property
    def description(self) -> str:
        """Return type and shape in words."""
        shape = " x ".join(map(str, self.array.shape))
        return f"{type_name(self.array.dtype)} [{shape}]"


@dataclass
class Operation:
    """A box: one recorded operation."""

    identifier: str
    event: Recordable
    ports: list[tuple[str, str, bool]] = field(default_factory=list)
    """Identifier and name of each array argument, and whether it is only an output."""

    @property
    def name(self) -> str:
        """Return the kernel's key or what else the operation is called."""
        return self.event.label

    @property
    def tooltip(self) -> str:
        """Return place and size of the launch."""
        path, _, line = self.event.location.rpartition(":")
        dim = getattr(self.event, "dim", None)
        return f"{PurePath(path).name}:{line}" + ("" if dim is None else f", dim {tuple(dim)}")


@dataclass
class ScopeGroup:
    """The operations of a scope."""

    identifier: str
    name: str
    items: list[Item]


@dataclass
class Repeat:
    """A sequence of operations that occurs several times in a row, as it was the first time."""

    identifier: str
    count: int
    items: list[Item]


Item = Operation | ScopeGroup | Repeat


class Graph:
    """Nodes and edges; edges are pairs of identifiers, those of operations with their port."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.arrays: list[ArrayNode] = []
        self.edges: dict[tuple[str, str], None] = {}
        self._nodes: dict[Hashable, ArrayNode] = {}

    def find(self, array: Any) -> ArrayNode | None:
        """Return the node of an array, None if it is not in the graph."""
        return self._nodes.get(_identity(array))

    def add_array(self, array: Any) -> ArrayNode:
        """Return the node of an array, a new one if there is none."""
        node = self.find(array)
        if node is None:
            node = self._nodes[_identity(array)] = ArrayNode(f"array{len(self.arrays)}", array)
            self.arrays.append(node)
        return node

    def views(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of nodes of which the second is a view into the first."""
        for view in self.arrays:
            base = view.array.base
            while base is not None:
                node = self.find(base)
                if node is not None and node is not view and is_overlapping(node.array, view.array):
                    yield node.identifier, view.identifier
                    break
                base = base.base


def build_graph(tape: Tape, simplifies: bool, has_scopes: bool) -> Graph:
    """Return the graph of a tape."""
    graph = Graph()
    operations = [Operation(f"op{number}", event) for number, event in enumerate(tape.events)]
    scopes = deque(enumerate(tape.scopes if has_scopes else ()))
    graph.items = _fold(graph, _nest(operations, scopes, 0, len(operations), 0), simplifies)
    return graph


def _nest(
    operations: Sequence[Operation], pending: deque[tuple[int, Scope]], begin: int, end: int, depth: int
) -> list[Item]:
    """Return the operations [begin, end) with those of the scopes among them in groups."""
    items: list[Item] = []
    while pending and pending[0][1].depth >= depth:
        number, scope = pending.popleft()
        stop = end if scope.end is None else scope.end
        items.extend(operations[begin : scope.begin])
        inner = _nest(operations, pending, scope.begin, stop, scope.depth + 1)
        items.append(ScopeGroup(f"scope{number}", scope.name, inner))
        begin = stop
    items.extend(operations[begin:end])
    return items


def _fold(graph: Graph, items: Sequence[Item], simplifies: bool) -> list[Item]:
    """Connect the items of one level, and draw sequences of them that repeat once."""
    signatures = [_signature(item) for item in items]
    folded: list[Item] = []
    place = 0
    while place < len(items):
        period, count = _find_repeats(signatures, place) if simplifies else (1, 1)
        first = items[place : place + period]
        connected = [_connect_item(graph, item, simplifies) for item in first]
        if count > 1:
            middle = items[place + period : place + period * (count - 1)]
            last = items[place + period * (count - 1) : place + period * count]
            _connect_last(graph, first, middle, last)
            connected = [Repeat(f"repeat_{_first_operation(first)}", count, connected)]
        folded.extend(connected)
        place += period * count
    return folded


def _connect_item(graph: Graph, item: Item, simplifies: bool) -> Item:
    if isinstance(item, ScopeGroup):
        return ScopeGroup(item.identifier, item.name, _fold(graph, item.items, simplifies))
    if isinstance(item, Operation):
        _connect(graph, item, item.identifier, None)
    return item


def _connect_last(graph: Graph, first: Sequence[Item], middle: Sequence[Item], last: Sequence[Item]) -> None:
    """Lead edges from the boxes of the first repetition to what the last one wrote, and read from elsewhere."""
    hidden = {_identity(array) for operation in _operations(middle) for array in operation.event.writes}
    for drawn, operation in zip(_operations(first), _operations(last), strict=True):
        _connect(graph, operation, drawn.identifier, hidden)


def _connect(graph: Graph, operation: Operation, identifier: str, hidden: set[Hashable] | None) -> None:
    for number, use in enumerate(_uses(operation.event)):
        port = f"p{number}"
        operation.ports.append((port, use.name, not use.is_input))
        is_known = graph.find(use.array) is not None
        if hidden is not None and not use.is_output and not is_known and _identity(use.array) in hidden:
            continue
        node = graph.add_array(use.array)
        if hasattr(operation.event, "kernel"):
            node.names.setdefault(use.name)
        node.is_written |= use.is_output
        if use.is_input:
            graph.edges[node.identifier, f"{identifier}:{port}"] = None
        if use.is_output:
            graph.edges[f"{identifier}:{port}", node.identifier] = None


@dataclass(frozen=True)
class _Use:
    name: str
    array: Any
    is_input: bool
    is_output: bool


def _uses(event: Any) -> list[_Use]:
    """Return the array arguments of an operation as the call declared them; an input that is written is both."""
    read = {id(array) for array in event.reads}
    written = {id(array) for array in event.writes}
    if not hasattr(event, "kernel"):
        arrays = {id(array): array for array in event.arrays()}
        return [
            _Use("to" if key in written else "from", array, key in read or key not in written, key in written)
            for key, array in arrays.items()
        ]
    uses = []
    for place, ((name, _), argument) in enumerate(zip(event.kernel.parameters, event.args, strict=True)):
        is_declared_output = place >= len(event.inputs)
        for label, array in named_arrays(argument, name):
            is_written = id(array) in written
            is_input = not is_declared_output and (bool(event.outputs) or not is_written or id(array) in read)
            uses.append(_Use(label, array, is_input, is_declared_output or is_written))
    return uses


def _identity(array: Any) -> Hashable:
    return array.device.alias, array.layout(), array.dtype


def _operations(items: Sequence[Item]) -> Iterator[Operation]:
    for item in items:
        if isinstance(item, Operation):
            yield item
        else:
            yield from _operations(item.items)


def _first_operation(items: Sequence[Item]) -> str:
    return next((operation.identifier for operation in _operations(items)), items[0].identifier)


def _signature(item: Item) -> Hashable:
    if isinstance(item, Operation):
        return item.name, getattr(item.event, "dim", None)
    name = item.name if isinstance(item, ScopeGroup) else ""
    return name, tuple(_signature(inner) for inner in item.items)


def _find_repeats(signatures: Sequence[Hashable], place: int) -> tuple[int, int]:
    """Return length and number of the repetitions that begin at a place and cover most."""
    best = (1, 1)
    for period in range(1, min(_LONGEST_PERIOD, (len(signatures) - place) // _LEAST_REPEATS) + 1):
        pattern = signatures[place : place + period]
        count = 1
        while signatures[place + count * period : place + (count + 1) * period] == pattern:
            count += 1
        if count >= _LEAST_REPEATS and count * period > best[0] * best[1]:
            best = (period, count)
    return best
