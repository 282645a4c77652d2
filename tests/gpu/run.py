"""Runs the steps of `tests/gpu/run.sh`, each in a process of its own and within its time, and prints a table."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warp._src.build import available_compilers

ROOT = Path(__file__).resolve().parents[2]
BUDGET = 345.0
"""Seconds for everything, the installation included."""
PATIENCE = 20.0
"""How much longer a rehearsal may take, on machines that do other things too."""
SUITE = ("tests/device", "tests/autograd/test_recorded_loads.py", "tests/autograd/test_atomics_and_views.py")
GRADIENTS = (
    "tests/autograd/test_control_flow.py",
    "tests/autograd/test_components.py",
    "tests/autograd/test_calls.py",
    "tests/autograd/test_carried_aggregates.py",
)
QUICK = ("tests/device/test_map.py",)


@dataclass(frozen=True)
class Outcome:
    """What a step showed."""

    step: str
    status: str
    detail: str
    seconds: float


class Session:
    """The steps that have run, on a GPU or on the stand-in."""

    def __init__(self, is_rehearsal: bool, is_quick: bool, spent: float) -> None:
        self.device = "stand-in" if is_rehearsal else "cuda"
        self.is_quick = is_quick
        self.outcomes: list[Outcome] = []
        self._start = time.monotonic() - spent

    def step(self, name: str, limit: float, run: Callable[[float], tuple[str, str]]) -> None:
        """Run a step for at most `limit` seconds, or what is left."""
        start = time.monotonic()
        patience = PATIENCE if self.device == "stand-in" else 1.0
        left = BUDGET * patience - (start - self._start)
        print(f"\n== {name}", flush=True)
        if left < 5.0:
            self.outcomes.append(Outcome(name, "no time", "", 0.0))
            return
        try:
            status, detail = run(min(limit * patience, left))
        except subprocess.TimeoutExpired as error:
            print((error.stdout or b"").decode("utf-8", "replace")[-4000:], flush=True)
            status, detail = "timeout", f"after {error.timeout:.0f} s"
        self.outcomes.append(Outcome(name, status, detail, time.monotonic() - start))

    def python(self, limit: float, *arguments: str, wrapper: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run Python in a process of its own; show its output and return it."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        command = [*wrapper, sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
        print(done.stdout[-4000:], done.stderr[-2000:], sep="", flush=True)
        return done

    def pytest(self, limit: float, *arguments: str) -> tuple[str, str]:
        """Run tests on the device."""
        options = ("-q", "--tb=short", "--maxfail=20", "-W", "ignore::pytest.PytestConfigWarning")
        done = self.python(limit, "-m", "pytest", *options, "--on", self.device, *arguments)
        counts = re.findall(r"\d+ (?:passed|failed|errors?|deselected)", done.stdout)
        return "passed" if done.returncode == 0 else "FAILED", ", ".join(counts[-4:])

    def environment(self, limit: float) -> tuple[str, str]:
        done = self.python(limit, "-m", "tests.gpu.describe", self.device)
        return ("FAILED", _last_line(done.stderr)) if done.returncode else ("passed", _last_line(done.stdout))

    def suite(self, limit: float) -> tuple[str, str]:
        return self.pytest(limit, *(QUICK if self.is_quick else (*self._workers(), *SUITE)))

    def gradients(self, limit: float) -> tuple[str, str]:
        return self.pytest(limit, *(QUICK if self.is_quick else (*self._workers(), *GRADIENTS)))

    @staticmethod
    def _workers() -> tuple[str, ...]:
        """Spread tests, most of whose time is the compiler's, over processes; a GPU serves several."""
        return "-n", str(min(12, os.cpu_count() or 1))

    def checks(self, limit: float) -> tuple[str, str]:
        if available_compilers():
            return self.pytest(limit, "tests/gpu/checks.py")
        status, detail = self.pytest(limit, "tests/gpu/checks.py", "-k", "not on_the_cpu")
        return status, f"{detail}; nothing is compared with the CPU, which has no compiler"

    def frameworks(self, limit: float) -> tuple[str, str]:
        return self.pytest_if_found(limit, "tests/gpu/frameworks.py")

    def jax(self, limit: float) -> tuple[str, str]:
        if not available_compilers():
            return "not run", "what JAX calls is compiled for the CPU, which has no compiler"
        chosen = ("-k", "jit or assertions") if self.is_quick else ()
        return self.pytest_if_found(limit, "tests/gpu/jax_checks.py", *chosen)

    def pytest_if_found(self, limit: float, *arguments: str) -> tuple[str, str]:
        """Run tests that are there only if a framework is."""
        # What frameworks warn about is not our concern here.
        status, detail = self.pytest(limit, *arguments, "-rN", "-W", "default")
        return ("none found", "") if not detail else (status, detail)

    def sanitizer(self, limit: float) -> tuple[str, str]:
        found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
        if found is None:
            return "not found", ""
        wrapper = (found, "--error-exitcode", "9", "--target-processes", "all")
        chosen = ("-k", "small_floats" if self.is_quick else "not graph")
        command = ("-m", "pytest", "-q", "--on", self.device, "tests/gpu/checks.py", *chosen)
        done = self.python(limit, *command, wrapper=wrapper)
        return "passed" if done.returncode == 0 else "FAILED", _last_line(done.stdout, "ERROR SUMMARY")

    def benchmark(self, limit: float) -> tuple[str, str]:
        done = self.python(limit, "-m", "tests.gpu.measure", self.device)
        if done.returncode:
            return "FAILED", _last_line(done.stderr)
        figures = json.loads(done.stdout.strip().splitlines()[-1])
        return "measured", "; ".join(f"{name} {value}" for name, value in figures.items())


def _last_line(text: str, word: str = "") -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and word in line]
    return lines[-1][:160] if lines else ""


def main() -> int:
    """Run all steps; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rehearse", action="store_true", help="use a stand-in for the driver")
    parser.add_argument("--quick", action="store_true", help="run a few of the tests only")
    parser.add_argument("--spent", type=float, default=0.0, help="seconds that the installation has taken")
    options = parser.parse_args()
    session = Session(options.rehearse, options.quick, options.spent)
    session.step("environment", 60.0, session.environment)
    session.step("checks of what only a GPU shows", 90.0, session.checks)
    session.step("frameworks", 60.0, session.frameworks)
    session.step("kernels in JAX", 90.0, session.jax)
    session.step("benchmarks", 60.0, session.benchmark)
    session.step("device tests", 120.0, session.suite)
    session.step("compute-sanitizer", 60.0, session.sanitizer)
    session.step("gradient tests", 120.0, session.gradients)
    print("\nsummary" + (" (rehearsal: no GPU was used)" if options.rehearse else ""))
    for outcome in session.outcomes:
        print(f"{outcome.step:<34}{outcome.status:<12}{outcome.seconds:6.1f} s  {outcome.detail}")
    return int(any(outcome.status in ("FAILED", "timeout") for outcome in session.outcomes))


if __name__ == "__main__":
    sys.exit(main())
