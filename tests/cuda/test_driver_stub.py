"""What the driver is given, through the real bindings, by calls whose arguments are structs and lists."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warp._src import build

STREAM, INNER, GRAPH, CONTEXT, CONDITION, BODY = 0x51, 0x52, 0x6F, 0xC7, 0xABCDEF0123, 0xB0D1
NODES, NEW_NODE = (0x501, 0x502), 0x503
CHILD_KIND, CONDITIONAL_KIND, IF, WHILE = 4, 13, 0, 1
CALLS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "condition": ("create_condition", (STREAM,)),
    "if": ("add_conditional", (STREAM, CONDITION, False)),
    "while": ("add_conditional", (STREAM, CONDITION, True)),
    "child": ("add_child_graph", (STREAM, 0x77)),
    "begin": ("begin_capture_to", (INNER, BODY, 1)),
    "last": ("last_captured", (STREAM,)),
}
PROGRAM = """
import ctypes, json, sys
from warp._src.runtime.driver import CudaDriver

driver, stub, found = CudaDriver(), ctypes.CDLL("libcuda.so.1"), {}
count = ctypes.c_int.in_dll(stub, "record_count")
for key, (name, arguments) in json.loads(sys.argv[1]).items():
    count.value = 0
    answer = getattr(driver, name)(*arguments)
    found[key] = answer, list((ctypes.c_uint64 * count.value).in_dll(stub, "recorded"))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Make the calls where the bindings find the stub; give what they answered and what the stub was given."""
    folder = tmp_path_factory.mktemp("stub")
    text = (Path(__file__).parent / "driver_stub.cpp").read_text(encoding="utf-8")
    shutil.copy(build.build_object(text), folder / "libcuda.so.1")
    path = os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")])
    command = [sys.executable, "-c", PROGRAM, json.dumps(CALLS)]
    environment = {**os.environ, "LD_LIBRARY_PATH": path}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    answers: dict[str, list[Any]] = json.loads(run.stdout)
    return answers


def test_conditions(found: dict[str, list[Any]]) -> None:
    assert found["condition"] == [CONDITION, [STREAM, GRAPH, CONTEXT, 0, 0]]


@pytest.mark.parametrize(("name", "kind"), [("if", IF), ("while", WHILE)])
def test_conditional_nodes(found: dict[str, list[Any]], name: str, kind: int) -> None:
    node = [GRAPH, *NODES, 2, CONDITIONAL_KIND, CONDITION, kind, 1, CONTEXT]
    assert found[name] == [BODY, [STREAM, *node, STREAM, NEW_NODE, 1, 1]]


def test_child_graphs(found: dict[str, list[Any]]) -> None:
    assert found["child"] == [None, [STREAM, GRAPH, *NODES, 2, CHILD_KIND, 0x77, STREAM, NEW_NODE, 1, 1]]


def test_captures_of_bodies(found: dict[str, list[Any]]) -> None:
    assert found["begin"] == [None, [INNER, BODY, 0, 1]]
    assert found["last"] == [list(NODES), [STREAM]]
