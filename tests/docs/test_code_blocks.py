"""Every Python block of the documentation runs and prints what the page says.

The blocks of a page share one namespace and run in a process of their own, as a file with the page's line numbers. A
block of `text` or `output` right after a Python block is what it must print; `...` stands for anything. A page that
needs a framework says so in a comment, `% needs: torch`, and is tested where it is installed; `% on: stand-in` runs a
page with stand-ins for CUDA devices.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import itertools
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import warp
import warp_autograd

ROOT = Path(__file__).resolve().parents[2]
NEEDS = re.compile(r"^% needs: (\w+)$", re.MULTILINE)
STAND_IN = "% on: stand-in"
INSTALL = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.cuda.fake_driver import install; install()"
# Paddle says at import which build tools it misses.
IMPORT_WARNINGS = ("-W", "ignore::UserWarning:paddle.utils.cpp_extension.extension_utils")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MARK = "\x1e"
FENCE = re.compile(r"^( *)```+ *(\S*)")


def has_blocks_to_run(path: Path) -> bool:
    """Tell whether a page has Python blocks, and everything that it needs is installed."""
    text = path.read_text(encoding="utf-8")
    return "```python\n" in text and all(importlib.util.find_spec(name) for name in NEEDS.findall(text))


PAGES = [path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if has_blocks_to_run(path)]


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the line of its opening fence from 0, and its lines."""

    language: str
    start: int
    lines: list[str]


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    lines = text.splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if not fence:
            continue
        if start is None:
            start, indent, language = number, len(fence[1]), fence[2]
        else:
            yield Block(language, start, [inner[indent:] for inner in lines[start + 1 : number]])
            start = None


def program_of(blocks: list[Block]) -> str:
    """Return the Python blocks as one program in which every line has the number it has on the page."""
    lines: list[str] = []
    for block in blocks:
        if block.language == "python":
            lines += [""] * (block.start - len(lines))
            lines += [f"print(end='{MARK}{block.start}\\n', flush=True)", *block.lines]
    return "\n".join(lines) + "\n"


def expected_outputs(blocks: list[Block]) -> dict[int, str]:
    """Return what Python blocks must print, by the line of the block; "..." where the page does not say."""
    expected = {block.start: "...\n" for block in blocks if block.language == "python"}
    for block, following in itertools.pairwise(blocks):
        if block.language == "python" and following.language in ("text", "output"):
            expected[block.start] = "\n".join([*following.lines, ""])
    return expected


def run_page(path: Path, text: str, directory: Path) -> list[str]:
    """Run a page in a directory; return one message for each block that prints something else."""
    blocks = list(blocks_of(text))
    script = directory / f"{path.stem}.py"
    program = program_of(blocks)
    if STAND_IN in text:
        program = INSTALL + program  # the first line of a page is no code
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, "-W", "error", *IMPORT_WARNINGS, str(script)]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    run = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        return [f"{path}: {run.stderr}"]
    printed = {}
    for part in run.stdout.split(MARK)[1:]:
        start, _, output = part.partition("\n")
        printed[int(start)] = output
    checker = doctest.OutputChecker()
    return [
        f"{path}:{start + 1}: expected\n{expected}\nbut got\n{printed[start]}"
        for start, expected in expected_outputs(blocks).items()
        if expected != "...\n" and not checker.check_output(expected, printed[start], OPTIONS)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(path: Path, tmp_path: Path) -> None:
    problems = run_page(path, path.read_text(encoding="utf-8"), tmp_path)
    assert not problems, "\n".join(problems)


def test_a_wrong_page_is_noticed(tmp_path: Path) -> None:
    page = "# Page\n```python\nx = 1\nprint(x)\n```\n\n```text\n2\n```\n- item\n  ```python\n  print(x + 1)\n  ```\n"
    (problem,) = run_page(Path("page.md"), page, tmp_path)
    assert problem == "page.md:2: expected\n2\n\nbut got\n1\n"
    assert run_page(Path("page.md"), page.replace("\n2\n", "\n1\n"), tmp_path) == []
    (problem,) = run_page(Path("page.md"), "```python\n\n1 / 0\n```\n", tmp_path)
    assert "line 3" in problem


def _module_names(package: ModuleType) -> Iterator[str]:
    yield package.__name__
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".examples" not in module.name and not module.name.endswith("__main__"):
            yield module.name


@pytest.mark.parametrize("name", [name for package in (warp, warp_autograd) for name in _module_names(package)])
def test_docstrings(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert not failures
