"""What installed distributions cost `import warp`: it looks for plugins in the metadata of every one of them.

Prints milliseconds, the shortest of several new processes, which alternate: an import where the given number of
distributions is installed besides those of this environment, one where there are none besides, and the difference.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import time, numpy, pluggy
start = time.perf_counter()
import warp
print(1e3 * (time.perf_counter() - start))
"""
TARGET = 10.0


def install(directory: Path, count: int) -> None:
    """Make the metadata of distributions, every second of which has entry points, as is usual."""
    for number in range(count):
        metadata = directory / f"distribution_{number}-{number}.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: distribution-{number}\nVersion: {number}.0\n")
        (metadata / "RECORD").write_text("")
        if number % 2:
            (metadata / "entry_points.txt").write_text(f"[console_scripts]\nprogram{number} = package{number}:main\n")


def milliseconds_of_import(directory: Path) -> float:
    """Return the milliseconds that `import warp` takes in a new process with a directory on its path."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(directory)]))
    environment = {**os.environ, "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return float(run.stdout)


def main() -> None:
    """Print three times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--distributions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as full, tempfile.TemporaryDirectory() as empty:
        install(Path(full), options.distributions)
        times = [(milliseconds_of_import(Path(full)), milliseconds_of_import(Path(empty))) for _ in range(options.rounds)]
    with_them, without = (min(column) for column in zip(*times, strict=True))
    print(f"{with_them:8.1f} ms  import warp, {options.distributions} more distributions")
    print(f"{without:8.1f} ms  import warp")
    print(f"{with_them - without:8.1f} ms  for {options.distributions} distributions (target: below {TARGET:.0f})")


if __name__ == "__main__":
    main()
