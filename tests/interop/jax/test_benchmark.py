"""The benchmark is where it is looked for, and runs."""

from __future__ import annotations

import subprocess
import sys


def test_the_benchmark_runs_under_its_public_name() -> None:
    command = [sys.executable, "-m", "warp.examples.benchmarks.benchmark_interop_jax", "--count", "20"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in ("wp.jax_kernel", "jax.pure_callback", "from_jax", "to_jax"):
        assert f"us  {name}\n" in output
