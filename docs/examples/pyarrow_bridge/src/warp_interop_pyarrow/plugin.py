"""What this distribution contributes to `warp`; imports neither Warp itself nor the framework."""

from __future__ import annotations

from collections.abc import Mapping

from warp.plugins import hookimpl


class ArrowPlugin:
    """Contribute `warp.from_pyarrow` and its kin."""

    warp_api_version = 1

    @hookimpl
    def warp_bridges(self) -> Mapping[str, str]:
        """Say where the bridge is."""
        return {"pyarrow": "warp_interop_pyarrow.bridge:BRIDGE"}


plugin = ArrowPlugin()
