"""Installations made of directories: only what a test puts there is on `sys.path`."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy
import pluggy
import pytest

import warp

_PREAMBLE = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]; sys.path[1:1] = {path!r}\n"

_CATCHER = """
import warp
for statement in {statements!r}:
    try:
        exec(statement)
        print()
    except Exception as error:
        print(type(error).__name__, error)
"""


@dataclass
class Installation:
    """A directory of distributions in front of NumPy, pluggy and Warp, which have no metadata here."""

    directory: Path
    libraries: Path

    def add(self, distribution: str, entry_points: dict[str, str] | None = None, **modules: str) -> Path:
        """Install a distribution; `entry_points` are those of the group `warp.plugins`. Return its metadata."""
        metadata = self.directory / f"{distribution.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        if entry_points is not None:
            lines = (f"{name} = {target}" for name, target in entry_points.items())
            (metadata / "entry_points.txt").write_text("\n".join(["[warp.plugins]", *lines, ""]))
        for name, text in modules.items():
            path = self.directory.joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return metadata

    def add_toy(self, distribution: str = "warp-toy", plugin: str = "toy", **contents: str) -> None:
        """Install a well-behaved bridge: a package with `Toy`, `from_toy` and a submodule."""
        package = distribution.replace("-", "_")
        api_version = contents.pop("api_version", "1")
        names = contents.pop("names", f"{{'from_toy': '{package}.convert:from_toy'}}")
        (self.directory / package / "inner").mkdir(parents=True)
        for init in (self.directory / package, self.directory / package / "inner"):
            (init / "__init__.py").write_text(f"ORIGIN = {distribution!r}\n")
        modules = {
            f"{package}__plugin": f"""
                from warp.plugins import hookimpl
                class Plugin:
                    warp_api_version = {api_version}
                    @hookimpl
                    def warp_namespace(self):
                        return {names}
                    @hookimpl
                    def warp_submodules(self):
                        return {{'toy': {package!r}}}
                    @hookimpl
                    def warp_array_adapter(self, array_type):
                        return list if array_type.__name__ == 'ToyArray' else None
                plugin = Plugin()
                """,
            f"{package}__convert": "class ToyError(Exception): pass\ndef from_toy(value): return ('warp', value)\n",
            f"{package}__inner__script": "from . import ORIGIN\nprint(__name__, ORIGIN)\n",
            **contents,
        }
        self.add(distribution, {plugin: f"{package}.plugin:plugin"}, **modules)

    def run(self, program: str, *, plugins: str | None = None, **options: str) -> str:
        """Run a program and return what it prints; a warning is an error unless `warnings` says otherwise."""
        program = self._preamble() + textwrap.dedent(program)
        return self._run(["-c", program], plugins, options.get("warnings", "error"))

    def run_module(self, module: str, *arguments: str, plugins: str | None = None) -> str:
        """Run `python -m module` and return what it prints."""
        set_arguments = f"import runpy; sys.argv[1:] = {list(arguments)}\n"
        program = f"{set_arguments}runpy.run_module({module!r}, None, '__main__', True)"
        return self._run(["-c", self._preamble() + program], plugins, "error")

    def errors_of(self, *statements: str) -> list[str]:
        """Run statements after `import warp` in one process; return the error that each raises, "" for none."""
        return self.run(_CATCHER.format(statements=statements)).splitlines()

    def _preamble(self) -> str:
        return _PREAMBLE.format(path=[str(self.directory), str(self.libraries)])

    @staticmethod
    def _run(arguments: list[str], plugins: str | None, warnings: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name not in ("WARP_PLUGINS", "PYTHONPATH")}
        if plugins is not None:
            environment["WARP_PLUGINS"] = plugins
        command = [sys.executable, "-S", "-W", warnings, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert not run.stderr, run.stderr
        return run.stdout


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with NumPy, pluggy and Warp but no metadata of any distribution."""
    directory = tmp_path_factory.mktemp("libraries")
    for module in (numpy, pluggy, warp):
        package = Path(str(module.__file__)).parent
        for path in (package, package.with_name(f"{package.name}.libs")):
            if path.exists():
                (directory / path.name).symlink_to(path)
    return directory


@pytest.fixture
def installation(tmp_path: Path, libraries: Path) -> Installation:
    """Return an installation with no plugin in it."""
    directory = tmp_path / "site"
    directory.mkdir()
    return Installation(directory, libraries)
