"""The public names are a promise: adding or removing one is a visible change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOT = Path(__file__).with_name("public_api.txt")


def test_public_names_are_the_recorded_ones() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_public_api.py"), "--print"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    current, recorded = set(run.stdout.splitlines()), set(SNAPSHOT.read_text(encoding="utf-8").splitlines())
    difference = sorted(f"+ {name}" for name in current - recorded) + sorted(f"- {name}" for name in recorded - current)
    assert not difference, "run tools/make_public_api.py if these changes are meant:\n" + "\n".join(difference)
