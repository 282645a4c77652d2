"""What newcomers read when they make a mistake: the messages of `messages.txt`, word for word.

A case is a line `== title`, a program, a line `-- kind of error`, and the message. Running this file writes the
messages anew, to be read before they are kept.
"""

from __future__ import annotations

import linecache
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.lang.source import build_kernel
from warp.errors import WarpError

FILE = Path(__file__).with_name("messages.txt")


@dataclass(frozen=True)
class Case:
    """A mistake, and the message that it gets."""

    title: str
    program: str
    kind: str
    message: str


def cases() -> Iterator[Case]:
    """Read the file of cases."""
    for part in FILE.read_text("utf-8").split("\n== ")[1:]:
        title, _, rest = part.partition("\n")
        program, _, answer = rest.partition("\n-- ")
        kind, _, message = answer.partition("\n")
        yield Case(title.strip(), program.strip("\n") + "\n", kind.strip(), message.strip("\n"))


def raised(program: str) -> tuple[str, str]:
    """Run a program and build its kernel; give the kind of the error and its message."""
    name = "example.py"
    linecache.cache[name] = (len(program), None, program.splitlines(keepends=True), name)
    names: dict[str, Any] = {"wp": wp, "np": np, "math": math, "__name__": "example"}
    try:
        exec(compile(program, name, "exec"), names)
        kernel = names["kernel"]
        build_kernel(kernel, [t for _, t in kernel.parameters])
    except WarpError as error:
        return type(error).__name__, str(error)
    finally:
        linecache.cache.pop(name)
    return "nothing", ""


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.title)
def test_message(case: Case) -> None:
    kind, message = raised(case.program)
    assert message == case.message
    assert kind == case.kind


def test_there_are_fifty() -> None:
    titles = [case.title for case in cases()]
    assert len(titles) >= 50
    assert len(set(titles)) == len(titles)


def write() -> None:
    """Write the messages that the programs get now into the file."""
    head = FILE.read_text("utf-8").split("\n== ")[0].rstrip("\n")
    parts = [head]
    for case in cases():
        kind, message = raised(case.program)
        parts.append(f"\n== {case.title}\n{case.program}-- {kind}\n{message}")
    FILE.write_text("\n".join(parts) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(write())
