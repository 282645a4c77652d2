"""What this distribution contributes to `warp`; imports neither Warp itself nor the framework."""

from __future__ import annotations

from collections.abc import Mapping

from warp.plugins import hookimpl


class ToyPlugin:
    """Contribute `warp.from_toy` and its kin, and `warp.toy_op`."""

    warp_api_version = 1

    @hookimpl
    def warp_bridges(self) -> Mapping[str, str]:
        """Say where the bridge is."""
        return {"toy": "warp_interop_toy.bridge:BRIDGE"}

    @hookimpl
    def warp_namespace(self) -> Mapping[str, str]:
        """Return other names contributed to `warp`."""
        return {"toy_op": "warp_interop_toy.op:toy_op"}


plugin = ToyPlugin()
