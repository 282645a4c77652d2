"""Measure what a user waits for: import, the first launch with a cold cache, launches, and tapes.

Usage: python benchmarks/latency.py [--peer PYTHON] [--rounds N]

Every measurement runs in a process of its own. With `--peer`, the interpreter of an environment that has the peer
installed instead of this project, runs of the two alternate and the table shows the ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Upper bounds in seconds that this project has set itself.
AIMS = {"import": 0.15, "first launch": 0.3, "launch, 4 arrays": 10e-6}


def measure(python: str, script: str, cache: str) -> dict[str, float] | str:
    """Run a script with a kernel cache of its own; return its times in seconds, or why there are none."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["WARP_CACHE_PATH"] = cache
    command = [python, str(HERE / script)]
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        return (run.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    times: dict[str, float] = json.loads(run.stdout.strip().splitlines()[-1])
    return times


class Samples:
    """The measured times of one interpreter, by name."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.times: dict[str, list[float]] = {}
        self.failures: dict[str, str] = {}

    def take(self, warm_cache: str) -> None:
        """Measure everything once."""
        with tempfile.TemporaryDirectory() as cold_cache:
            self._keep("latency_cold.py", measure(self.python, "latency_cold.py", cold_cache))
        self._keep("latency_warm.py", measure(self.python, "latency_warm.py", warm_cache))

    def median(self, name: str) -> float | None:
        """Return the median time of a measurement in seconds."""
        return statistics.median(self.times[name]) if name in self.times else None

    def _keep(self, script: str, times: dict[str, float] | str) -> None:
        if isinstance(times, str):
            self.failures[script] = times
            return
        for name, seconds in times.items():
            self.times.setdefault(name, []).append(seconds)


def text_of(seconds: float | None) -> str:
    """Write a time with the unit that fits."""
    if seconds is None:
        return "not measured"
    return f"{1e3 * seconds:.1f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.2f} us"


def print_table(ours: Samples, peer: Samples | None) -> None:
    """Print the medians, the ratios where there are two, and the aims."""
    print(f"{'':28s} {'here':>13s} {'aim':>10s} {'peer':>13s} {'here / peer':>12s}")
    for name in ours.times | (peer.times if peer else {}):
        here, there = ours.median(name), peer.median(name) if peer else None
        aim = text_of(AIMS[name]) if name in AIMS else ""
        ratio = f"{here / there:.2f}" if here is not None and there is not None else ""
        print(f"{name:28s} {text_of(here):>13s} {aim:>10s} {text_of(there):>13s} {ratio:>12s}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and say what is not in it."""
    parser = argparse.ArgumentParser(description="Latency of import, launch and tape.")
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter of an environment with the peer installed")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="runs of each measurement (5)")
    options = parser.parse_args(arguments)
    ours = Samples(sys.executable)
    peer = Samples(options.peer) if options.peer else None
    with tempfile.TemporaryDirectory() as our_cache, tempfile.TemporaryDirectory() as peer_cache:
        for _ in range(options.rounds):
            ours.take(our_cache)
            if peer:
                peer.take(peer_cache)

    print(f"medians of {options.rounds} processes each, CPU, {os.cpu_count()} cores")
    print_table(ours, peer)
    print("import: `import warp` and `wp.init()` with NumPy already imported. A launch has one work item.")
    print("Not measured: GPUs, compile times of larger kernels, throughput, memory" + ("." if peer else ", the peer."))
    failures = ours.failures | ({f"peer {name}": why for name, why in peer.failures.items()} if peer else {})
    for name, why in failures.items():
        print(f"{name} failed: {why}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
