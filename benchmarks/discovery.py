"""What looking for plugins costs `import warp`: it reads the metadata of every installed distribution.

Prints milliseconds of the first look in a new process, the shortest of several processes: with the given number of
distributions installed besides those of this environment, and with none besides.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys, time
from warp._src.plugin_reader import scan
start = time.process_time()
found = scan(sys.path, "warp.plugins")
print(1e3 * (time.process_time() - start), len(found.distributions))
"""


def install(directory: Path, count: int) -> None:
    """Make the metadata of distributions, every second of which has entry points, as is usual."""
    for number in range(count):
        metadata = directory / f"distribution_{number}-{number}.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: distribution-{number}\nVersion: {number}.0\n")
        (metadata / "RECORD").write_text("")
        if number % 2:
            (metadata / "entry_points.txt").write_text(f"[console_scripts]\nprogram{number} = package{number}:main\n")


def look(directory: Path) -> tuple[float, int]:
    """Return the milliseconds of a look with a directory on the path, and how many distributions it found."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(directory)]))
    environment = {**os.environ, "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    milliseconds, count = run.stdout.split()
    return float(milliseconds), int(count)


def main() -> None:
    """Print two times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--distributions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as full, tempfile.TemporaryDirectory() as empty:
        install(Path(full), options.distributions)
        for directory in (full, empty):
            milliseconds, count = min(look(Path(directory)) for _ in range(options.rounds))
            print(f"{milliseconds:8.2f} ms  {count} distributions")


if __name__ == "__main__":
    main()
