"""What warp-interop-paddle contributes to `warp`. Paddle is not imported here."""

from __future__ import annotations

from collections.abc import Mapping

from warp.plugins import hookimpl


class PaddlePlugin:
    """Contribute the bridge to Paddle, and `warp.paddle_op`."""

    warp_api_version = 1

    @hookimpl
    def warp_bridges(self) -> Mapping[str, str]:
        """Return where the bridge lives."""
        return {"paddle": "warp_interop_paddle.bridge:BRIDGE"}

    @hookimpl
    def warp_namespace(self) -> Mapping[str, str]:
        """Return the names contributed to `warp` besides those of the bridge, or instead of them."""
        return {"to_paddle": "warp_interop_paddle.convert:to_paddle", "paddle_op": "warp_interop_paddle.op:paddle_op"}

    @hookimpl
    def warp_submodules(self) -> Mapping[str, str]:
        """Return the submodules contributed to `warp`."""
        return {"examples.benchmarks.benchmark_interop_paddle": "warp_interop_paddle.benchmark_interop_paddle"}


plugin = PaddlePlugin()
