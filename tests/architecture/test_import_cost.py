"""What `import warp` brings in besides NumPy."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "asyncio",
    "cuda",
    "hypothesis",
    "importlib.metadata",
    "importlib.resources",
    "jax",
    "matplotlib",
    "multiprocessing",
    "paddle",
    "pytest",
    "scipy",
    "torch",
    "tqdm",
    "unittest",
    "warp_autograd",
    "ziglang",
}
PROGRAM = "import sys, numpy; before = set(sys.modules); import warp; print(*sorted(set(sys.modules) - before))"


def test_nothing_heavy_is_imported() -> None:
    run = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    imported = set(run.stdout.split())
    assert "warp" in imported
    assert not imported & HEAVY
