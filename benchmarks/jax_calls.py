"""What a call of a kernel costs inside a jitted scan of JAX, beside `jax.pure_callback` and the peer.

    python benchmarks/jax_calls.py [--peer PYTHON] [--rounds N]

`--peer` takes the interpreter of another environment, with the peer and JAX.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("jax_scan.py")


def run(python: str, count: int) -> dict[str, float]:
    """Return microseconds by what was measured, from a new process that sees only its own environment."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH" or python == sys.executable
    }
    command = [python, str(PROGRAM), str(count)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    """Print medians over rounds; the runs of both environments alternate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="interpreter of an environment with the peer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=10_000, help="calls in a scan")
    options = parser.parse_args()
    environments = {"here": sys.executable, **({"peer": options.peer} if options.peer else {})}
    times: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for environment, python in environments.items():
            for name, microseconds in run(python, options.count).items():
                times.setdefault(f"{name}, {environment}", []).append(microseconds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    own = medians["wp.jax_kernel, here"]
    for name, median in medians.items():
        print(f"{median:10.2f} us {median / own:8.1f}  {name}")


if __name__ == "__main__":
    main()
