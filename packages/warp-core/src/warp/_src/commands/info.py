"""`python -m warp info`: what this installation consists of."""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from collections.abc import Iterator

from warp import config
from warp._src import build
from warp._src.commands import plugins
from warp._src.commands.cache import describe_cache
from warp._src.runtime.cpu import default_workers
from warp._src.runtime.device import get_devices
from warp.errors import ToolchainError

HELP = "describe the installation: version, compilers, devices, workers, cache and plugins"
_PATIENCE = 20  # seconds that a compiler may take to tell its version


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(arguments: argparse.Namespace) -> int:
    """Print the description; return 1 if kernels cannot be compiled or a plugin is broken."""
    print(f"warp      {config.version}")
    print(f"python    {platform.python_version()} ({sys.executable})")
    print(f"platform  {platform.platform()}")
    compilers = list(_compilers())
    for compiler in compilers or ["none; install one with `pip install 'warp-core[compiler]'`"]:
        print(f"compiler  {compiler}")
    print(f"nvrtc     {_nvrtc()}")
    for device in get_devices():
        print(f"device    {device} ({device.name})")
    print(f"workers   {default_workers()}")
    print(f"cache     {describe_cache()}")
    print("\nplugins")
    status = plugins.run(arguments)
    return status if compilers else 1


def _compilers() -> Iterator[str]:
    """Name the compilers in order of preference; the first one is used unless the user chooses."""
    try:
        compilers = list(build.available_compilers())
        chosen = build.find_compiler()
    except ToolchainError:
        return
    if chosen not in compilers:
        compilers.insert(0, chosen)
    for compiler in compilers:
        mark = " [in use]" if compiler == chosen else ""
        yield f"{compiler.name}: {_version_of(compiler)}{mark}"


def _version_of(compiler: build.Compiler) -> str:
    try:
        done = subprocess.run(
            [*compiler.command, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not answer ({error})"
    first_line = done.stdout.strip().partition("\n")[0]
    return first_line or f"does not answer (exit status {done.returncode})"


def _nvrtc() -> str:
    try:
        version = build.nvrtc_version()
        architectures = build.supported_architectures()
    except ToolchainError:
        return "not installed; `pip install 'warp-core[cuda12]'` or 'warp-core[cuda13]'"
    return f"{'.'.join(map(str, version))} for {', '.join(architectures)}"
