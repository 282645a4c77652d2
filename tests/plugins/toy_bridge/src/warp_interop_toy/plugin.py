"""What this distribution contributes to `warp`; imports neither Warp itself nor the framework."""

from __future__ import annotations

from collections.abc import Mapping

from warp.plugins import hookimpl


class ToyPlugin:
    """Contribute `warp.from_toy` and its kin."""

    warp_api_version = 1

    @hookimpl
    def warp_bridges(self) -> Mapping[str, str]:
        """Say where the bridge is."""
        return {"toy": "warp_interop_toy.bridge:BRIDGE"}


plugin = ToyPlugin()
