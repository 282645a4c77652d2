"""The script for a machine with a GPU, rehearsed on the stand-in."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_step_of_the_gpu_script_runs() -> None:
    command = [str(ROOT / "tests" / "gpu" / "run.sh"), "--rehearse", "--quick"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    table = run.stdout[run.stdout.index("summary (rehearsal: no GPU was used)") :].splitlines()[1:]
    status = {line[:34].strip(): line[34:46].strip() for line in table}
    assert status.pop("frameworks") in ("passed", "none found")
    assert status.pop("compute-sanitizer") == "not found"
    assert status == {
        "environment": "passed",
        "checks of what only a GPU shows": "passed",
        "benchmarks": "measured",
        "device tests": "passed",
        "gradient tests": "passed",
    }
