"""The public contract between Warp and its plugins: hook specifications and their markers.

A plugin is an object with an integer `warp_api_version` and methods marked with `hookimpl`. It is announced through
an entry point of the group `warp.plugins`; the entry point's name is the plugin's name. Warp loads it when one of the
names that only plugins provide is first used, so its module should import nothing but this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pluggy

__all__ = ["API_VERSION", "ENTRY_POINT_GROUP", "HookSpecifications", "hookimpl", "hookspec"]

API_VERSION = 1
"""The version of this contract; a plugin states the one it was written for as `warp_api_version`."""

ENTRY_POINT_GROUP = "warp.plugins"
"""The entry-point group under which plugins are announced."""

hookspec = pluggy.HookspecMarker("warp")
hookimpl = pluggy.HookimplMarker("warp")


class HookSpecifications:
    """Specify every hook that a plugin may implement; all are optional."""

    @hookspec
    def warp_namespace(self) -> Mapping[str, str]:  # type: ignore[empty-body]
        """Map public names to where they live, as `{"Tape": "warp_autograd.tape:Tape"}`.

        `warp.Tape` imports `warp_autograd.tape` when it is first used.
        """

    @hookspec
    def warp_submodules(self) -> Mapping[str, str]:  # type: ignore[empty-body]
        """Map submodules of `warp` to the modules they stand for, as `{"autograd": "warp_autograd"}`.

        `warp.autograd` and everything below it are then the very module objects of `warp_autograd`.
        """

    @hookspec(firstresult=True)
    def warp_array_adapter(self, array_type: type) -> Callable[[Any], Any] | None:
        """Return a function that wraps an instance of `array_type` as a `warp.array` of the same memory, or None.

        Asked once per type. Must not import the framework: an instance of its type implies that it is loaded.
        """

    @hookspec(firstresult=True)
    def warp_device_alias(self, device: object) -> str | None:
        """Return the Warp name ("cpu", "cuda:0") of a foreign device object, or None if it is not known."""

    @hookspec(firstresult=True)
    def warp_dtype_alias(self, dtype: object) -> type | None:
        """Return the Warp scalar type of a foreign data type, or None if it is not known."""

    @hookspec(firstresult=True)
    def warp_stream_alias(self, stream: object) -> int | None:
        """Return the native handle of a foreign stream object, or None if it is not known."""
