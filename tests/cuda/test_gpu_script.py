"""The script for a machine with a GPU, rehearsed on the stand-in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


SANITIZER = """#!/bin/sh
[ "$*" = "${*#--error-exitcode 9 --target-processes all }" ] && exit 1
shift 4
"$@" && echo "========= ERROR SUMMARY: 0 errors"
"""


def test_every_step_of_the_gpu_script_runs(tmp_path: Path) -> None:
    sanitizer = tmp_path / "compute-sanitizer"
    sanitizer.write_text(SANITIZER, encoding="utf-8")
    sanitizer.chmod(0o755)
    command = [str(ROOT / "tests" / "gpu" / "run.sh"), "--rehearse", "--quick"]
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    table = run.stdout[run.stdout.index("summary (rehearsal: no GPU was used)") :].splitlines()[1:]
    status = {line[:34].strip(): line[34:46].strip() for line in table}
    assert status.pop("frameworks") in ("passed", "none found")
    assert status.pop("kernels in JAX") in ("passed", "none found")
    assert "========= ERROR SUMMARY: 0 errors" in run.stdout
    assert status == {
        "environment": "passed",
        "checks of what only a GPU shows": "passed",
        "benchmarks": "measured",
        "device tests": "passed",
        "compute-sanitizer": "passed",
        "gradient tests": "passed",
    }
