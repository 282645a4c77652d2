"""The generated type stubs are those of the current sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_stubs_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_stubs.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"run tools/make_stubs.py\n{run.stdout}{run.stderr}"
