"""Run by .ci/run on a directory of wheels: each holds one package, its licence and types, and no file of another."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

owners: dict[str, str] = {}
wheels = sorted(Path(sys.argv[1]).glob("warp*.whl"))
assert wheels, f"no wheels in {sys.argv[1]}"
for wheel in wheels:
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert len(packages) == 1, f"{wheel.name} holds {sorted(packages)}"
    (package,) = packages
    assert f"{package}/py.typed" in names, f"{wheel.name} lacks py.typed"
    assert any(name.endswith("LICENSE") for name in names), f"{wheel.name} lacks its licence"
    for name in names:
        assert name not in owners, f"{name} is in both {owners[name]} and {wheel.name}"
        owners[name] = wheel.name
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1024:.0f} KiB")
