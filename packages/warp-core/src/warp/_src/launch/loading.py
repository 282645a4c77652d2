"""Initialisation, loading kernels ahead of their first launch, and the kernel cache."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

from warp import config
from warp._src.launch.launch import prepare
from warp._src.launch.program import MODULES, Kernel, Module, clear_cache, executor, get_module, variant_of
from warp._src.runtime.device import Device, get_device, known_devices
from warp._version import __version__
from warp.errors import ArgumentError, AutogradError


class _State:
    """Whether `init` has greeted the user."""

    is_initialized = False


def init() -> None:
    """Initialise Warp; calling it is not needed, every function does so by itself."""
    if _State.is_initialized:
        return
    _State.is_initialized = True
    if config.verbose and not config.quiet:
        print(f"Warp {__version__}, devices: {', '.join(str(device) for device in known_devices())}")


def is_initialized() -> bool:
    """Tell whether `init` has run."""
    return _State.is_initialized


def force_load(
    device: Any = None,
    modules: Iterable[Any] | None = None,
    block_dim: int | None = None,  # noqa: ARG001 - for programs that use CUDA
    max_workers: int | None = None,
) -> None:
    """Compile and load all kernels of some modules now, in parallel, instead of at their first launches.

    Args:
        device: Where the kernels are to run; the current device by default.
        modules: Python modules, Warp modules or names; all that are known by default.
        block_dim: Accepted for programs that use CUDA.
        max_workers: Number of compilers at a time; the number of processors by default.

    Raises:
        CompileError: A kernel does not compile; the others are compiled all the same.
    """
    place = get_device(device)
    chosen = list(MODULES.values()) if modules is None else [_module(module) for module in modules]
    kernels = [kernel for module in chosen for kernel in module.kernels if not kernel.is_generic]
    if not kernels:
        return
    if place.is_cpu:
        executor()
    with ThreadPoolExecutor(max_workers or os.cpu_count() or 1) as pool:
        for future in [pool.submit(_load, kernel, place) for kernel in kernels]:
            future.result()


def load_module(module: Any = None, device: Any = None, recursive: bool = False) -> None:
    """Compile and load the kernels of one module, with `recursive` those of its submodules too."""
    if module is None:
        force_load(device)
        return
    name = _module(module).name
    names = [name, *(m for m in list(MODULES) if recursive and m.startswith(f"{name}."))]
    force_load(device, names)


def clear_kernel_cache() -> None:
    """Remove all compiled kernels from the cache directory; loaded ones stay usable."""
    clear_cache()


def _load(kernel: Kernel, device: Device) -> None:
    prepared = prepare(kernel, (), device)
    if kernel.option("enable_backward"):
        try:
            prepared.program.backward(variant_of((2,), False))
        except AutogradError:
            return  # raised, with the line, when a gradient is asked for


def _module(module: Any) -> Module:
    if isinstance(module, Module):
        return module
    if isinstance(module, ModuleType):
        return get_module(module.__name__)
    if isinstance(module, str):
        return get_module(module)
    raise ArgumentError(f"modules must hold modules or names, got {module.__class__.__qualname__}")
