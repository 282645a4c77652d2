"""Make modules of a plugin importable under `warp`, as the very same module objects."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

_PREFIX = "warp."


# No class here derives from importlib.abc, which takes longer to import than the rest of the plugin machinery.
class SubmoduleFinder:
    """Find `warp.autograd.tape` where a plugin has it; stands before the path finders.

    A path finder would load the file a second time under the second name, since the parent's `__path__` leads to it.
    """

    def __init__(self, target_of: Callable[[str], str | None]) -> None:
        self._target_of = target_of

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that leads to the plugin's module, or None for modules that are Warp's own."""
        if not fullname.startswith(_PREFIX) or _is_own(fullname, path):
            return None
        provider = self._target_of(fullname.removeprefix(_PREFIX))
        provider_spec = None if provider is None else importlib.util.find_spec(provider)
        if provider_spec is None:
            return None
        loader: Any = _AliasLoader(provider_spec)
        spec = ModuleSpec(fullname, loader, origin=provider_spec.origin)
        spec.submodule_search_locations = provider_spec.submodule_search_locations
        spec.has_location = provider_spec.has_location
        return spec


class _AliasLoader:
    """Hand out a module that exists under another name."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the plugin's module, imported under its own name."""
        module = importlib.import_module(self._spec.name)
        self._spec = module.__spec__ or self._spec
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system has just replaced; reload and runpy need it."""
        module.__spec__ = self._spec

    def is_package(self, fullname: str) -> bool:
        """Tell whether the module is a package."""
        return self._spec.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code object, for `python -m`."""
        code: CodeType | None = self._ask("get_code")
        return code

    def get_source(self, fullname: str) -> str | None:
        """Return the module's text, for tracebacks."""
        source: str | None = self._ask("get_source")
        return source

    def _ask(self, method: str) -> Any:
        bound = getattr(self._spec.loader, method, None)
        return None if bound is None else bound(self._spec.name)


def _is_own(fullname: str, path: Sequence[str] | None) -> bool:
    """Tell whether the module's file is part of Warp itself; costs two stats and loads no plugin."""
    if fullname.startswith("warp._"):
        return True
    parent, _, leaf = fullname.rpartition(".")
    if getattr(sys.modules.get(parent), "__name__", parent) != parent:
        return False  # the parent is itself a plugin's module
    # A directory without modules holds the stubs of a plugin's package.
    return any(
        os.path.isfile(os.path.join(directory, file))
        for directory in path or ()
        for file in (f"{leaf}.py", os.path.join(leaf, "__init__.py"))
    )
