"""The generated pages about builtins are those of the current registry, and refuse what the project refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFUSED_GROUPS = {"Tile Primitives", "Geometry", "Volumes", "Textures"}


def test_pages_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_builtin_reference.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"run tools/make_builtin_reference.py\n{run.stdout}{run.stderr}"


def test_the_survey_refuses_only_what_the_project_leaves_out() -> None:
    page = (ROOT / "docs" / "language-survey.md").read_text(encoding="utf-8")
    refused = []
    for section in page.split("\n## ")[1:]:
        group, _, rows = section.partition("\n")
        if group not in REFUSED_GROUPS:
            refused += re.findall(r"\| `(\w+)` \| refused", rows)
    assert not refused
