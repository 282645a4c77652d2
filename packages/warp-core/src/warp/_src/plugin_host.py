"""Find plugins, load them when one of their names is first used, and answer for the names they contribute."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pluggy

from warp._src.plugin_finder import SubmoduleFinder
from warp._src.plugin_official import OFFICIAL_NAMES, PROVIDER_OF, bridge_functions, how_to_install
from warp._src.plugin_reader import EntryPoint, Scan, scan
from warp.errors import (
    MissingPluginError,
    MissingPluginModuleError,
    PluginConflictError,
    PluginError,
    PluginWarning,
)
from warp.plugins import API_VERSION, ENTRY_POINT_GROUP, Bridge, HookSpecifications, derive

_SELECTION_VARIABLE: Final = "WARP_PLUGINS"
_PEER_DISTRIBUTION: Final = "warp-lang"
# What wraps foreign arrays of a type, and what wraps them without their gradient.
_Adapters = tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]


class PluginHost:
    """Hold the plugins found on a path, and the names they contribute."""

    def __init__(self, found: Scan, selection: str | None) -> None:
        self.found = found
        self._selection = _parse_selection(selection)
        self._lock = threading.RLock()
        self._loading = self._loaded = False
        self._manager = pluggy.PluginManager("warp")
        self._manager.add_hookspecs(HookSpecifications)
        self._states: list[PluginState] = []
        self._names: dict[str, list[Contribution]] = {}
        self._submodules: dict[str, list[Contribution]] = {}
        self._resolved: dict[str, object] = {}
        self._adapters: dict[type, _Adapters] = {}
        self._bridge_targets: dict[str, list[Contribution]] = {}
        self._bridges: dict[str, Bridge | None] = {}

    def contributed(self, name: str) -> object:
        """Return what a plugin contributes as `warp.<name>`.

        Raises MissingPluginError (an AttributeError) for an official name without an active provider,
        PluginConflictError for a name with two, and AttributeError for any other.
        """
        if name in self._resolved:
            return self._resolved[name]
        if name.startswith("_"):
            raise _unknown(name)
        self.load()
        if name in self._submodules:
            return _import_module(self._only(self._submodules, name), f"warp.{name}")
        if name not in self._names:
            raise MissingPluginError(self.reason_missing(name)) if name in PROVIDER_OF else _unknown(name)
        contribution = self._only(self._names, name)
        if contribution.framework is not None:
            self._resolved[name] = derive(self.bridge(contribution.framework))[name]
            return self._resolved[name]
        module_name, _, attribute = contribution.target.partition(":")
        module = _import_module(contribution, module_name)
        try:
            self._resolved[name] = getattr(module, attribute)
        except AttributeError as error:
            promise = f"plugin {contribution.provider} promises {contribution.target!r} as warp.{name}"
            raise PluginError(f"{promise}, which does not exist") from error
        return self._resolved[name]

    def contributed_names(self) -> list[str]:
        """Return the sorted names that active plugins contribute to `warp`."""
        self.load()
        return sorted({*self._names, *(name for name in self._submodules if "." not in name)})

    def contributions(self) -> list[tuple[str, str]]:
        """Return the contributed names and submodules with their targets, sorted; none that is in conflict."""
        self.load()
        single = [
            (name, found[0])
            for table in (self._names, self._submodules)
            for name, found in table.items()
            if len(found) == 1
        ]
        return sorted((name, found.target) for name, found in single if found.framework is None)

    def bridges(self) -> list[tuple[str, str]]:
        """Return the frameworks that have a bridge and where it lives, sorted; none that is in conflict."""
        self.load()
        return sorted((name, found[0].target) for name, found in self._bridge_targets.items() if len(found) == 1)

    def bridge(self, framework: str) -> Bridge:
        """Return the bridge to a framework, which imports the framework.

        Raises PluginError if it is no Bridge, MissingPluginError if its module cannot be imported.
        """
        found = self._bridges.get(framework)
        if found is None:
            contribution = self._only(self._bridge_targets, framework)
            module_name, _, attribute = contribution.target.partition(":")
            value = getattr(_import_module(contribution, module_name), attribute, None)
            if not isinstance(value, Bridge) or value.name != framework:
                raise PluginError(
                    f"plugin {contribution.provider} promises a bridge named {framework!r} as {contribution.target!r}, "
                    f"which is {value!r:.80}"
                )
            self._bridges[framework] = found = value
        return found

    def module_behind(self, tail: str) -> str | None:
        """Return the module that `warp.<tail>` stands for, or None if no plugin claims it.

        Raises MissingPluginModuleError (an ImportError) where an official plugin should have claimed it.
        """
        self.load()
        prefix = tail
        while prefix:
            if prefix in self._submodules:
                return self._only(self._submodules, prefix).target + tail.removeprefix(prefix)
            prefix = prefix.rpartition(".")[0]
        top = tail.partition(".")[0]
        if top in PROVIDER_OF and top not in self._names:
            error = MissingPluginModuleError(self.reason_missing(top))
            error.name = f"warp.{tail}"
            raise error
        return None

    def array_adapter(self, array_type: type) -> Callable[[Any], Any] | None:
        """Return the function that wraps foreign arrays of a type, or None; asks the plugins once per type."""
        return self._adapters_of(array_type)[0]

    def array_reader(self, array_type: type) -> Callable[[Any], Any] | None:
        """Return the same for the values alone, without their gradient."""
        return self._adapters_of(array_type)[1]

    def _adapters_of(self, array_type: type) -> _Adapters:
        found = self._adapters.get(array_type)
        if found is None:
            self.load()
            adapter = reader = self._manager.hook.warp_array_adapter(array_type=array_type)
            for bridge in self._loaded_bridges() if adapter is None else ():
                if issubclass(array_type, bridge.tensor_types):
                    adapter = derive(bridge)[f"from_{bridge.name}"]
                    reader = partial(adapter, requires_grad=False)
                    break
            found = self._adapters[array_type] = adapter, reader
        return found

    def device_alias(self, device: object) -> str | None:
        """Return the Warp name of a foreign device object, or None."""
        self.load()
        name: str | None = self._manager.hook.warp_device_alias(device=device)
        for bridge in self._loaded_bridges() if name is None else ():
            if isinstance(device, bridge.device_types):
                return bridge.device_from(device)
        return name

    def dtype_alias(self, dtype: object) -> type | None:
        """Return the Warp scalar type of a foreign data type, or None."""
        self.load()
        scalar: type | None = self._manager.hook.warp_dtype_alias(dtype=dtype)
        for bridge in self._loaded_bridges() if scalar is None else ():
            found = bridge.dtypes_from.get(dtype)
            if found is not None:
                return found
        return scalar

    def stream_alias(self, stream: object) -> int | None:
        """Return the native handle of a foreign stream object, or None."""
        self.load()
        handle: int | None = self._manager.hook.warp_stream_alias(stream=stream)
        for bridge in self._loaded_bridges() if handle is None else ():
            if bridge.streams is not None and isinstance(stream, bridge.streams.types):
                return bridge.streams.handle(stream)
        return handle

    def _loaded_bridges(self) -> Iterator[Bridge]:
        """Yield the bridges of the frameworks that are loaded; one that cannot be used is a warning, once."""
        for framework, contributions in self._bridge_targets.items():
            if framework not in sys.modules or len(contributions) > 1:
                continue
            if framework not in self._bridges:
                try:
                    self._bridges[framework] = self.bridge(framework)
                except PluginError as error:
                    self._bridges[framework] = None
                    warnings.warn(str(error), PluginWarning, stacklevel=3)
            bridge = self._bridges[framework]
            if bridge is not None:
                yield bridge

    def states(self) -> list[PluginState]:
        """Return the state of every plugin, found or official, sorted by name."""
        self.load()
        absent = set(OFFICIAL_NAMES) - {state.name for state in self._states}
        missing = [PluginState(name, "", "not installed", how_to_install(name)) for name in absent]
        return sorted([*self._states, *missing], key=lambda state: state.name)

    def conflicts(self) -> list[str]:
        """Return one sentence for each name that more than one plugin contributes."""
        self.load()
        tables = (self._names, self._submodules)
        return [_conflict(name, both) for table in tables for name, both in table.items() if len(both) > 1]

    def reason_missing(self, name: str) -> str:
        """Return why an official name is not there, and what to do about it."""
        plugin = PROVIDER_OF[name]
        for state in self._states:
            if state.name == plugin and state.status != "active":
                return f"warp.{name} comes from plugin {state}"
        return f"warp.{name} needs the {plugin!r} plugin, which is not installed: {how_to_install(plugin)}"

    def load(self) -> None:
        """Load the plugins that were found, once; warn of each that cannot be used."""
        if self._loaded:
            return
        with self._lock:
            if self._loading:  # done meanwhile by another thread, or a plugin uses a contributed name while it loads
                return
            self._loading = True
            self._states += map(self._load_one, self.found.entry_points)
            self._loaded = True
        self._warn()

    def _warn(self) -> None:
        problems = [f"plugin {state}; Warp works without it" for state in self._states if state.status == "broken"]
        names = {entry_point.name for entry_point in self.found.entry_points}
        unknown = sorted((self._selection or frozenset()) - names)
        problems += (f"{_SELECTION_VARIABLE} names {name!r}, which is not installed" for name in unknown)
        for problem in problems:
            warnings.warn(problem, PluginWarning, stacklevel=5)

    def _load_one(self, entry_point: EntryPoint) -> PluginState:
        provider = f"{entry_point.name!r} of {entry_point.distribution} {entry_point.version}".rstrip()
        if self._selection is not None and entry_point.name not in self._selection:
            return PluginState(entry_point.name, provider, "disabled", f"by {_SELECTION_VARIABLE}")
        if self._manager.has_plugin(entry_point.name):
            return PluginState(entry_point.name, provider, "broken", "another plugin has the same name")
        try:
            plugin = _load_object(entry_point.target)
            _check_version(plugin)
            self._register(plugin, entry_point.name, provider)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a plugin, it must not take Warp down
            return PluginState(entry_point.name, provider, "broken", f"{type(error).__name__}: {error}")
        return PluginState(entry_point.name, provider, "active", "")

    def _register(self, plugin: object, name: str, provider: str) -> None:
        self._manager.register(plugin, name=name)
        try:
            self._manager.check_pending()
            bridges = _contributions(self._manager.hook.warp_bridges, plugin, provider)
            derived = {
                name: Contribution(provider, found.target, framework)
                for framework, found in bridges.items()
                for name in bridge_functions(framework)
            }
            names = derived | _contributions(self._manager.hook.warp_namespace, plugin, provider)
            submodules = _contributions(self._manager.hook.warp_submodules, plugin, provider)
            _check_not_own({**names, **submodules})
        except BaseException:
            self._manager.unregister(name=name)
            raise
        tables = ((self._names, names), (self._submodules, submodules), (self._bridge_targets, bridges))
        for table, new in tables:
            for key, contribution in new.items():
                table.setdefault(key, []).append(contribution)

    @staticmethod
    def _only(table: Mapping[str, list[Contribution]], name: str) -> Contribution:
        contributions = table[name]
        if len(contributions) > 1:
            raise PluginConflictError(_conflict(name, contributions))
        return contributions[0]


@dataclass(frozen=True)
class Contribution:
    """Where a contributed name leads, and which plugin says so."""

    provider: str
    target: str
    framework: str | None = None
    """The framework whose bridge, at the target, the name is derived from."""


@dataclass(frozen=True)
class PluginState:
    """What became of a plugin: active, disabled, broken or not installed, and why."""

    name: str
    provider: str
    status: str
    reason: str

    def __str__(self) -> str:
        """Return the state as the rest of a sentence."""
        verb = "could not be loaded" if self.status == "broken" else f"is {self.status}"
        return f"{self.provider or repr(self.name)}, which {verb}: {self.reason}"


def contributed(name: str) -> object:
    """Return what a plugin contributes as `warp.<name>`; raises MissingPluginError or AttributeError."""
    return _HOST.contributed(name)


def contributed_names() -> list[str]:
    """Return the sorted names that active plugins contribute to `warp`."""
    return _HOST.contributed_names()


def contributions() -> list[tuple[str, str]]:
    """Return the contributed names and submodules with their targets, sorted."""
    return _HOST.contributions()


def bridges() -> list[tuple[str, str]]:
    """Return the frameworks that have a bridge and where it lives, sorted."""
    return _HOST.bridges()


def array_adapter(array_type: type) -> Callable[[Any], Any] | None:
    """Return the function that wraps foreign arrays of a type as `warp.array`, or None."""
    return _HOST.array_adapter(array_type)


def array_reader(array_type: type) -> Callable[[Any], Any] | None:
    """Return the function that wraps foreign arrays of a type as `warp.array` without gradient, or None."""
    return _HOST.array_reader(array_type)


def device_alias(device: object) -> str | None:
    """Return the Warp name of a foreign device object, or None."""
    return _HOST.device_alias(device)


def dtype_alias(dtype: object) -> type | None:
    """Return the Warp scalar type of a foreign data type, or None."""
    return _HOST.dtype_alias(dtype)


def stream_alias(stream: object) -> int | None:
    """Return the native handle of a foreign stream object, or None."""
    return _HOST.stream_alias(stream)


def plugin_states() -> list[PluginState]:
    """Return the state of every plugin, installed or official, sorted by name."""
    return _HOST.states()


def plugin_conflicts() -> list[str]:
    """Return one sentence for each name that more than one plugin contributes."""
    return _HOST.conflicts()


def install_finder() -> None:
    """Make the submodules that plugins contribute importable; does nothing the second time."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def refuse_beside_peer() -> None:
    """Raise ImportError if the warp-lang distribution, which also installs a package `warp`, is installed."""
    version = _HOST.found.distributions.get(_PEER_DISTRIBUTION)
    if version is not None:
        raise ImportError(
            f"{_PEER_DISTRIBUTION} {version} is installed in this environment. It also provides a package named "
            "'warp', so one of the two would hide or overwrite the other. Use separate virtual environments, or run "
            f"`pip uninstall {_PEER_DISTRIBUTION}` and then `pip install --force-reinstall --no-deps warp-core`.",
            name="warp",
        )


def _parse_selection(text: str | None) -> frozenset[str] | None:
    """Return the plugins that `WARP_PLUGINS` selects, None for all."""
    if text is None or not text.strip():
        return None
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    return names - {"none"}


def _import_module(contribution: Contribution, module_name: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        message = f"plugin {contribution.provider} failed to import {module_name}: {error}"
        raise MissingPluginError(message) from error


def _load_object(target: str) -> object:
    module_name, _, attributes = target.partition(":")
    found: object = importlib.import_module(module_name)
    for attribute in filter(None, attributes.split(".")):
        found = getattr(found, attribute)
    return found


def _check_version(plugin: object) -> None:
    version = getattr(plugin, "warp_api_version", None)
    if version != API_VERSION:
        age = "no version at all" if version is None else f"version {version}"
        raise PluginError(
            f"it was written for {age} of the plugin interface (warp_api_version), this Warp has version {API_VERSION}"
        )


def _contributions(hook: pluggy.HookCaller, plugin: object, provider: str) -> dict[str, Contribution]:
    contributions = {}
    for implementation in hook.get_hookimpls():
        if implementation.plugin is not plugin:
            continue
        mapping: Any = implementation.function()
        for name, target in mapping.items():
            if not isinstance(name, str) or not isinstance(target, str):
                raise PluginError(f"{hook.name}() must map strings to strings, and has {name!r}: {target!r}")
            contributions[name] = Contribution(provider, target)
    return contributions


def _check_not_own(names: Mapping[str, Contribution]) -> None:
    own = vars(sys.modules["warp"]) if "warp" in sys.modules else {}
    taken = sorted(name for name in names if name in own)
    if taken:
        raise PluginConflictError(f"it contributes {', '.join(taken)}, which Warp itself provides")


def _conflict(name: str, contributions: list[Contribution]) -> str:
    providers = " and ".join(f"plugin {contribution.provider}" for contribution in contributions)
    return f"warp.{name} is provided by both {providers}; uninstall one, or choose with {_SELECTION_VARIABLE}"


def _unknown(name: str) -> AttributeError:
    return AttributeError(f"module 'warp' has no attribute {name!r}", name=name, obj=sys.modules.get("warp"))


_HOST: Final = PluginHost(scan(sys.path, ENTRY_POINT_GROUP), os.environ.get(_SELECTION_VARIABLE))
_FINDER: Final = SubmoduleFinder(_HOST.module_behind)
