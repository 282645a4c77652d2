"""The GraphViz text of a tape, by its structure: nodes, ports, edges, colours, nested groups."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import warp as wp
from warp.errors import ArgumentError

IDENTIFIER = r"[A-Za-z_]\w*"
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Dot:
    """A parsed graph: attributes of nodes, groups with label, parent and members, and edges between ports."""

    nodes: dict[str, str] = field(default_factory=dict)
    groups: dict[str, dict] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)

    def node(self, label: str) -> str:
        (found,) = (name for name, text in self.nodes.items() if f'label="{label}\\n' in text)
        return found

    def boxes(self, title: str) -> list[str]:
        return [name for name, text in self.nodes.items() if f"<b>{title}</b>" in text]

    def color(self, label: str) -> str:
        return re.search(r"fillcolor=(\w+)", self.nodes[self.node(label)])[1]

    def port(self, box: str, name: str) -> str:
        found = re.search(rf'port="(p[0-9]+)">{re.escape(name)}<', self.nodes[box])
        return f"{box}:{found[1]}"

    def path_of(self, node: str) -> list[str]:
        group = next((name for name, group in self.groups.items() if node in group["members"]), None)
        path = []
        while group is not None:
            path.insert(0, self.groups[group]["label"])
            group = self.groups[group]["parent"]
        return path


def parse(text: str) -> Dot:
    """Parse a graph; every line must be a statement that is understood, every edge end at a node and port."""
    dot = Dot()
    lines = text.splitlines()
    assert lines[0] == "digraph tape {"
    assert lines[-1] == "}"
    stack: list[str | None] = [None]
    for line in map(str.strip, lines[1:-1]):
        if match := re.fullmatch(rf"subgraph (cluster_{IDENTIFIER}) {{", line):
            assert match[1] not in dot.groups
            dot.groups[match[1]] = {"parent": stack[-1], "members": [], "label": ""}
            stack.append(match[1])
        elif line == "}":
            stack.pop()
        elif match := re.fullmatch(r"graph \[(.*)\];", line):
            if stack[-1] is not None:
                dot.groups[stack[-1]]["label"] = re.search(r'label="([^"]*)"', match[1])[1]
        elif match := re.fullmatch(
            rf"({IDENTIFIER}(?::\w+)?) -> ({IDENTIFIER}(?::\w+)?)(?: \[style=dashed, dir=none\])?;", line
        ):
            dot.edges.append((match[1], match[2]))
        elif match := re.fullmatch(rf"({IDENTIFIER}) \[(.*)\];", line):
            if match[1] in ("node", "edge"):
                continue
            assert match[1] not in dot.nodes
            dot.nodes[match[1]] = match[2]
            if stack[-1] is not None:
                dot.groups[stack[-1]]["members"].append(match[1])
        else:
            raise AssertionError(f"not understood: {line}")
    assert stack == [None]
    for edge in dot.edges:
        for end in edge:
            node, _, port = end.partition(":")
            assert node in dot.nodes
            assert not port or f'port="{port}"' in dot.nodes[node]
    return dot


@wp.kernel
def add(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    tid = wp.tid()
    c[tid] = a[tid] + b[tid]


@wp.kernel
def step(state: wp.array(dtype=float), factor: float, next_state: wp.array(dtype=float)):
    tid = wp.tid()
    next_state[tid] = factor * state[tid]


@wp.struct
class Body:
    mass: float
    position: wp.array(dtype=wp.vec3)


@wp.kernel
def move(body: Body, out: wp.array(dtype=wp.vec3)):
    tid = wp.tid()
    out[tid] = body.position[tid] * body.mass


def example() -> tuple[wp.Tape, dict[wp.array, str]]:
    """Record the documented example."""
    tape = wp.Tape()
    a = wp.array([2.0], dtype=wp.float32)
    b = wp.array([3.0], dtype=wp.float32, requires_grad=True)
    c = wp.array([4.0], dtype=wp.float32)
    d = c
    e = wp.array([5.0], dtype=wp.float32, requires_grad=True)
    result = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    with tape:
        wp.launch(add, dim=1, inputs=[b, e], outputs=[a])
        with wp.ScopedTimer("Adder", print=False):
            tape.record_scope_begin("Custom Scope")
            wp.launch(add, dim=1, inputs=[a, b], outputs=[c])
            tape.record_scope_end()
            wp.launch(add, dim=1, inputs=[d, a], outputs=[result])
    return tape, {a: "a", b: "b", c: "c", e: "e", result: "result"}


def test_documented_example(tmp_path: Path) -> None:
    tape, labels = example()
    text = tape.visualize(filename=tmp_path / "tape.dot", array_labels=labels)
    assert (tmp_path / "tape.dot").read_text(encoding="utf-8") == text
    dot = parse(text)
    assert "rankdir=LR" in text
    assert {name: dot.color(name) for name in labels.values()} == {
        "a": "lightgray",
        "b": "palegreen",
        "c": "lightgray",
        "e": "palegreen",
        "result": "palegreen",
    }
    assert all("shape=ellipse" in dot.nodes[dot.node(name)] for name in labels.values())
    boxes = dot.boxes("add")
    assert len(boxes) == 3
    assert all('bgcolor="gray' in dot.nodes[box] for box in boxes)
    expected = set()
    for box, names in zip(boxes, (("b", "e", "a"), ("a", "b", "c"), ("c", "a", "result")), strict=True):
        first, second, third = (dot.node(name) for name in names)
        expected |= {
            (first, dot.port(box, "a")),
            (second, dot.port(box, "b")),
            (dot.port(box, "c"), third),
        }
    assert set(dot.edges) == expected
    assert [dot.path_of(box) for box in boxes] == [[], ["Adder", "Custom Scope"], ["Adder"]]


def test_scopes_can_be_ignored() -> None:
    tape, labels = example()
    dot = parse(tape.visualize(array_labels=labels, ignore_graph_scopes=True, simplify_graph=False))
    assert dot.groups == {}
    assert len(dot.boxes("add")) == 3


def test_empty_open_and_sibling_scopes() -> None:
    x = wp.ones(1, dtype=float)
    tape = wp.Tape()
    with tape:
        tape.record_scope_begin("first")
        tape.record_scope_end(remove_scope_if_empty=False)
        tape.record_scope_begin("outer")
        for name in ("one", "two"):
            tape.record_scope_begin(name)
            wp.launch(step, 1, inputs=[x, 1.0], outputs=[x])
            tape.record_scope_end()
        wp.launch(add, 1, inputs=[x, x], outputs=[x])
    dot = parse(tape.visualize())
    assert [dot.path_of(box) for box in dot.boxes("step")] == [["outer", "one"], ["outer", "two"]]
    assert dot.path_of(dot.boxes("add")[0]) == ["outer"]
    assert "first" in [group["label"] for group in dot.groups.values()]


def simulation(steps: int) -> tuple[wp.Tape, list[wp.array]]:
    states = [wp.ones(2, dtype=float, requires_grad=True) for _ in range(steps + 1)]
    force = wp.zeros(2, dtype=float)
    with wp.Tape() as tape:
        for before, after in itertools.pairwise(states):
            wp.launch(add, 2, inputs=[before, before], outputs=[force])
            wp.launch(step, 2, inputs=[force, 0.5], outputs=[after])
    return tape, states


def test_repeated_launches_are_drawn_once() -> None:
    tape, states = simulation(5)
    dot = parse(tape.visualize(array_labels={states[0]: "begin", states[-1]: "end"}))
    assert [group["label"] for group in dot.groups.values()] == ["repeated 5 times"]
    (box,) = dot.boxes("step")
    assert len(dot.boxes("add")) == 1
    assert (dot.port(box, "next_state"), dot.node("end")) in dot.edges
    assert (dot.node("begin"), dot.port(dot.boxes("add")[0], "a")) in dot.edges
    full = parse(tape.visualize(simplify_graph=False))
    assert len(full.boxes("step")) == len(full.boxes("add")) == 5
    assert full.groups == {}
    twice = parse(simulation(2)[0].visualize())
    assert len(twice.boxes("step")) == 2


def test_repeated_scopes_are_drawn_once() -> None:
    x = wp.ones(1, dtype=float)
    tape = wp.Tape()
    with tape:
        for _ in range(4):
            tape.record_scope_begin("frame")
            wp.launch(step, 1, inputs=[x, 1.0], outputs=[x])
            tape.record_scope_end()
    dot = parse(tape.visualize())
    assert dot.path_of(dot.boxes("step")[0]) == ["repeated 4 times", "frame"]


def test_readonly_arrays_can_be_hidden_and_tracked() -> None:
    tape, labels = example()
    b, e = (array for array, name in labels.items() if name in "be")
    text = tape.visualize(array_labels=labels, hide_readonly_arrays=True)
    assert not re.search(r'label="[be]\\n', text)
    parse(text)
    kept = parse(
        tape.visualize(
            hide_readonly_arrays=True,
            track_inputs=[b],
            track_input_names=["the input"],
            track_outputs=[e],
            track_output_names=["other"],
        )
    )
    assert any(edge[0] == kept.node("the input") for edge in kept.edges)
    assert kept.node("other")
    with pytest.raises(ArgumentError, match="track_input_names has 2 names for 1 arrays"):
        tape.visualize(track_inputs=[b], track_input_names=["x", "y"])


def test_names() -> None:
    x, y = wp.ones(1, dtype=float), wp.zeros(1, dtype=float)
    with wp.Tape() as tape:
        wp.launch(add, 1, inputs=[x, x], outputs=[y])
        wp.launch(step, 1, inputs=[x, 1.0], outputs=[y])
    longest, first = parse(tape.visualize()), parse(tape.visualize(choose_longest_node_name=False))
    assert longest.node("state")
    assert longest.node("next_state")
    assert first.node("a")
    assert first.node("c")


def test_members_of_structs_and_views() -> None:
    body = Body(mass=2.0, position=wp.zeros(3, dtype=wp.vec3, requires_grad=True))
    out = wp.zeros(3, dtype=wp.vec3)
    with wp.Tape() as tape:
        wp.launch(move, 3, inputs=[body], outputs=[out])
        wp.launch(move, 2, inputs=[body], outputs=[out[1:]])
    dot = parse(tape.visualize(array_labels={out: "whole", out[1:]: "part"}))
    assert dot.port(dot.boxes("move")[0], "body.position")
    assert dot.color("body.position") == "palegreen"
    assert (dot.node("whole"), dot.node("part")) in dot.edges


def test_arguments_given_as_inputs_that_are_written() -> None:
    x, y = wp.ones(1, dtype=float), wp.zeros(1, dtype=float)
    with wp.Tape() as tape:
        wp.launch(step, 1, inputs=[x, 1.0, y])
    dot = parse(tape.visualize())
    (box,) = dot.boxes("step")
    assert set(dot.edges) == {
        (dot.node("state"), dot.port(box, "state")),
        (dot.port(box, "next_state"), dot.node("next_state")),
    }


def test_copies_fills_and_functions() -> None:
    x, y = wp.ones(1, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        x.fill_(2.0)
        wp.copy(y, x)
        tape.record_func(lambda: None, [y])
    dot = parse(tape.visualize(array_labels={x: "x", y: "y"}))
    (copied,) = dot.boxes("copy")
    assert {(dot.node("x"), dot.port(copied, "from")), (dot.port(copied, "to"), dot.node("y"))} <= set(dot.edges)
    assert dot.boxes("fill_")
    assert dot.boxes("&lt;lambda&gt;")


def test_names_are_quoted() -> None:
    tape, labels = example()
    array = next(iter(labels))
    text = tape.visualize(array_labels={array: 'a "quoted" \\ name'})
    assert 'label="a \\"quoted\\" \\\\ name\\nfloat32 [1]"' in text


@pytest.mark.parametrize("direction", ["LR", "RL", "TB", "BT"])
def test_direction(direction: str) -> None:
    assert f"rankdir={direction}," in example()[0].visualize(graph_direction=direction)


def test_a_wrong_direction_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="graph_direction"):
        wp.Tape().visualize(graph_direction="up")


def test_an_empty_tape() -> None:
    assert parse(wp.Tape().visualize()).nodes == {}


def test_the_picture_in_the_documentation_shows_the_example() -> None:
    picture = (ROOT / "docs" / "images" / "tape.svg").read_text(encoding="utf-8")
    assert len(picture) < 60_000
    dot = parse(example()[0].visualize(array_labels=example()[1]))
    for name in dot.nodes:
        assert f"<title>{name}</title>" in picture
    # In pictures a title has no ports.
    drawn = set(re.findall(r"<title>(\w+)(?::\w+)?&#45;&gt;(\w+)(?::\w+)?</title>", picture))
    assert drawn == {tuple(end.partition(":")[0] for end in edge) for edge in dot.edges}
    for label in ("Adder", "Custom Scope", "result"):
        assert f">{label}</text>" in picture


def test_the_pictures_of_jacobians_in_the_documentation() -> None:
    for name, images in (("jacobian.svg", 4), ("jacobian_subset.svg", 2)):
        picture = (ROOT / "docs" / "images" / name).read_text(encoding="utf-8")
        assert len(picture) < 60_000
        assert picture.count("<image ") == images + 1  # one is the scale of colours
        assert picture.count('id="axes_') == 5
