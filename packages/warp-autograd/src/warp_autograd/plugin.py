"""What warp-autograd contributes to `warp`."""

from __future__ import annotations

from collections.abc import Mapping

from warp.plugins import hookimpl


class AutogradPlugin:
    """Contribute `warp.Tape` and `warp.autograd`."""

    warp_api_version = 1

    @hookimpl
    def warp_namespace(self) -> Mapping[str, str]:
        """Return the names contributed to `warp`."""
        return {"Tape": "warp_autograd.tape:Tape"}

    @hookimpl
    def warp_submodules(self) -> Mapping[str, str]:
        """Return the submodules contributed to `warp`."""
        return {"autograd": "warp_autograd"}


plugin = AutogradPlugin()
