"""Files stay small enough to read in one sitting."""

from __future__ import annotations

import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 500
LARGEST_MEDIAN = 220


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_long() -> None:
    places = ("packages", "tests", "tools", "benchmarks", "docs")
    patterns = ("*.py", "*.h", "*.cpp", "*.cu")
    files = [path for place in places for pattern in patterns for path in (ROOT / place).rglob(pattern)]
    too_long = [f"{path.relative_to(ROOT)}: {_lines(path)} lines" for path in files if _lines(path) > LARGEST]
    assert not too_long, "\n".join(too_long)


def test_the_median_source_file_is_short() -> None:
    sizes = [_lines(path) for path in (ROOT / "packages").rglob("*.py") if _lines(path) > 10]
    assert statistics.median(sizes) <= LARGEST_MEDIAN
