"""Core, autograd and a bridge work together however each of them is installed: from a wheel or to be edited."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pluggy
import pytest

import warp
import warp_autograd

TOY = Path(__file__).parent / "toy_bridge" / "src"

PROGRAM = """
import sys, runpy
import warp as wp
import warp.autograd, warp_autograd
assert warp.autograd is warp_autograd and wp.Tape is warp_autograd.Tape
assert 'toy' not in sys.modules
from warp.autograd import jacobian
assert jacobian is warp_autograd.jacobian
import toy
tensor = wp.to_toy(wp.zeros(3))
assert isinstance(tensor, toy.Tensor) and wp.from_toy(tensor).shape == (3,)
sys.argv = ['warp', 'plugins']
runpy.run_module('warp', None, '__main__', True)
"""

# A distribution that is edited has its metadata in place, and its package elsewhere: on a path that a .pth file names,
# or behind a finder that one installs.
FINDER = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in {packages!r}:
            return importlib.util.spec_from_file_location(name, {root!r} + '/' + name + '/__init__.py')
sys.meta_path.append(Finder)
"""


def install(site: Path, distribution: str, kind: str, *packages: Path) -> None:
    """Install packages as pip does for a wheel, or for a project that is edited."""
    metadata = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    announced = ENTRY_POINTS.get(distribution)
    if announced is not None:
        (metadata / "entry_points.txt").write_text(f"[warp.plugins]\n{announced}\n")
    if kind == "wheel":
        for package in packages:
            (site / package.name).symlink_to(package)
        return
    root = packages[0].parent
    line = str(root)
    if kind == "finder":
        module = f"_edited_{metadata.stem.partition('-')[0]}"
        names = {package.name for package in packages}
        (site / f"{module}.py").write_text(FINDER.format(packages=names, root=str(root)))
        line = f"import {module}"
    (site / f"_{distribution}.pth").write_text(line + "\n")


def _announced(distribution: str) -> str:
    (found,) = importlib.metadata.distribution(distribution).entry_points.select(group="warp.plugins")
    return f"{found.name} = {found.value}"


ENTRY_POINTS = {
    "warp-autograd": _announced("warp-autograd"),
    "warp-interop-toy": "toy = warp_interop_toy.plugin:plugin",
}
KINDS = ("wheel", "path", "finder")


@pytest.mark.parametrize(("core", "autograd", "bridge"), [*itertools.product(KINDS[:2], KINDS[:2], KINDS)])
def test_distributions_find_one_another(tmp_path: Path, core: str, autograd: str, bridge: str) -> None:
    site, libraries = tmp_path / "site", tmp_path / "libraries"
    for directory in (site, libraries):
        directory.mkdir()
    for module in (numpy, pluggy):
        package = Path(str(module.__file__)).parent
        for path in (package, package.with_name(f"{package.name}.libs")):
            if path.exists():
                (libraries / path.name).symlink_to(path)
    install(site, "warp-core", core, Path(warp.__file__).parent)
    install(site, "warp-autograd", autograd, Path(warp_autograd.__file__).parent)
    install(site, "warp-interop-toy", bridge, TOY / "toy", TOY / "warp_interop_toy")
    start = f"import site, sys; sys.path[1:1] = [{str(libraries)!r}]; site.addsitedir({str(site)!r})\n"
    environment = {name: value for name, value in os.environ.items() if name not in ("WARP_PLUGINS", "PYTHONPATH")}
    command = [sys.executable, "-S", "-W", "error", "-c", start + PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {line[0] for line in lines if "active" in line} >= {"autograd", "toy"}
