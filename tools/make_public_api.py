"""Record the public names of every distribution in tests/architecture/public_api.txt."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

SNAPSHOT = Path(__file__).resolve().parents[1] / "tests" / "architecture" / "public_api.txt"
MODULES = (
    "warp",
    "warp.entries",
    "warp.errors",
    "warp.operators",
    "warp.plugins",
    "warp.recording",
    "warp.testing",
    "warp_autograd",
)


def main() -> int:
    """Write the snapshot, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="print the names, write nothing")
    lines = public_names()
    if parser.parse_args().print:
        print("\n".join(lines))
    else:
        SNAPSHOT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def public_names() -> list[str]:
    """Return the sorted full names of everything public."""
    names: set[str] = set()
    for module_name in MODULES:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name:
                raise
            continue
        for name in getattr(module, "__all__", None) or dir(module):
            if not name.startswith("_") and name != "annotations":  # of __future__
                names.add(f"{module_name}.{name}")
    return sorted(names)


if __name__ == "__main__":
    sys.exit(main())
