"""Tables of the results of gradient checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warp_autograd.variables import Variable

_HEADINGS = ("Input", "Output", "Max Abs Error", "Max Rel Error", "Pass")


@dataclass(frozen=True)
class PairResult:
    """How far automatic differentiation and differences are apart for one input and one output.

    The relative error leaves out entries whose difference is zero. `worst` says where the check failed first, and
    the two derivatives there; it is empty where it passed.
    """

    given: Variable
    result: Variable
    absolute_error: float
    relative_error: float
    is_passed: bool
    worst: str


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines with columns of equal width; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)


def format_results(results: Sequence[PairResult], label: str) -> str:
    """Return the table of a gradient check and a sentence about the whole."""
    rows = [
        (
            result.given.label,
            result.result.label,
            f"{result.absolute_error:.7e}",
            f"{result.relative_error:.7e}",
            "PASS" if result.is_passed else "FAIL",
        )
        for result in results
    ]
    verdict = "passed" if all(result.is_passed for result in results) else "failed"
    return f"{format_table([_HEADINGS, *rows])}\nGradient check for {label} {verdict}"
