"""Pictures of tapes as GraphViz text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warp.errors import ArgumentError
from warp_autograd.graph import ArrayNode, Graph, Item, Operation, ScopeGroup, build_graph
from warp_autograd.markup import operation_label, quote

if TYPE_CHECKING:
    from warp_autograd.tape import Tape

_DIRECTIONS = ("LR", "RL", "TB", "BT")
_WITH_GRADIENT = "palegreen"
_WITHOUT_GRADIENT = "lightgray"


def visualize(
    tape: Tape,
    filename: str | Path | None = None,
    simplify_graph: bool = True,
    hide_readonly_arrays: bool = False,
    array_labels: Mapping[Any, str] | None = None,
    choose_longest_node_name: bool = True,
    ignore_graph_scopes: bool = False,
    track_inputs: Sequence[Any] | None = None,
    track_outputs: Sequence[Any] | None = None,
    track_input_names: Sequence[str] | None = None,
    track_output_names: Sequence[str] | None = None,
    graph_direction: str = "LR",
) -> str:
    """Return a GraphViz graph of the operations on a tape, for `dot -Tsvg`.

    Operations are grey boxes with a port for each array argument. Arrays are ellipses, green with `requires_grad`
    and grey without; a dashed line leads from an array to a view of it.

    Args:
        tape: The tape.
        filename: Where to write the text, if anywhere.
        simplify_graph: Draw a sequence of operations that is repeated at least three times once, with the number
            of repetitions, as it was the first time, and with what the last one wrote.
        hide_readonly_arrays: Leave out arrays that no operation writes.
        array_labels: Names of arrays.
        choose_longest_node_name: Name the other arrays by the longest of the parameters that they were given to,
            instead of by the first one.
        ignore_graph_scopes: Leave out the scopes.
        track_inputs: Arrays that are drawn in any case.
        track_outputs: Arrays that are drawn in any case.
        track_input_names: Names of `track_inputs`.
        track_output_names: Names of `track_outputs`.
        graph_direction: "LR", "RL", "TB" or "BT".

    Raises:
        ArgumentError: The direction is none of these, or there are more or fewer names than tracked arrays.
    """
    if graph_direction not in _DIRECTIONS:
        raise ArgumentError(f"graph_direction must be one of {', '.join(_DIRECTIONS)}, got {graph_direction!r}")
    graph = build_graph(tape, simplify_graph, not ignore_graph_scopes)
    tracked = [
        *_tracked(track_inputs, track_input_names, "track_input"),
        *_tracked(track_outputs, track_output_names, "track_output"),
    ]
    for array, _ in tracked:
        graph.add_array(array)
    names = _names(graph, choose_longest_node_name)
    for array, label in [*(array_labels or {}).items(), *tracked]:
        node = graph.find(array)
        if node is not None and label is not None:
            names[node.identifier] = label
    visible = _visible(graph, hide_readonly_arrays, [array for array, _ in tracked])
    text = "\n".join(_lines(graph, visible, names, graph_direction)) + "\n"
    if filename is not None:
        Path(filename).write_text(text, encoding="utf-8")
    return text


def _tracked(arrays: Sequence[Any] | None, names: Sequence[str] | None, argument: str) -> list[tuple[Any, str | None]]:
    given = list(arrays or ())
    if names is None:
        return [(array, None) for array in given]
    if len(names) != len(given):
        raise ArgumentError(f"{argument}_names has {len(names)} names for {len(given)} arrays in {argument}s")
    return list(zip(given, names, strict=True))


def _names(graph: Graph, is_longest: bool) -> dict[str, str]:
    return {
        node.identifier: max(node.names, key=len) if is_longest and node.names else next(iter(node.names), "array")
        for node in graph.arrays
    }


def _visible(graph: Graph, hides_readonly: bool, tracked: Iterable[Any]) -> set[str]:
    kept = {node.identifier for node in map(graph.find, tracked) if node is not None}
    return kept | {node.identifier for node in graph.arrays if node.is_written or not hides_readonly}


def _lines(graph: Graph, visible: set[str], names: Mapping[str, str], direction: str) -> Iterable[str]:
    yield "digraph tape {"
    yield f"  graph [rankdir={direction}, fontname=sans];"
    yield "  node [fontname=sans, fontsize=11];"
    yield "  edge [fontname=sans, arrowsize=0.7];"
    for node in graph.arrays:
        if node.identifier in visible:
            yield _array_line(node, names[node.identifier])
    yield from _item_lines(graph.items, "  ")
    for edge in graph.edges:
        array = edge[0] if edge[0] in names else edge[1]
        if array in visible:
            yield f"  {edge[0]} -> {edge[1]};"
    for base, view in graph.views():
        if base in visible and view in visible:
            yield f"  {base} -> {view} [style=dashed, dir=none];"
    yield "}"


def _array_line(node: ArrayNode, name: str) -> str:
    color = _WITH_GRADIENT if node.requires_grad else _WITHOUT_GRADIENT
    label = quote(f"{name}\n{node.description}")
    return f"  {node.identifier} [shape=ellipse, style=filled, fillcolor={color}, label={label}];"


def _item_lines(items: Sequence[Item], indent: str) -> Iterable[str]:
    for item in items:
        if isinstance(item, Operation):
            tooltip = quote(item.tooltip)
            yield f"{indent}{item.identifier} [shape=plain, tooltip={tooltip}, label={operation_label(item)}];"
            continue
        label = item.name if isinstance(item, ScopeGroup) else f"repeated {item.count} times"
        style = "rounded" if isinstance(item, ScopeGroup) else '"rounded,dashed"'
        yield f"{indent}subgraph cluster_{item.identifier} {{"
        yield f"{indent}  graph [label={quote(label)}, style={style}];"
        yield from _item_lines(item.items, indent + "  ")
        yield f"{indent}}}"
