"""What warp-interop-torch contributes to `warp`. PyTorch is not imported here."""

from __future__ import annotations

from collections.abc import Mapping

from warp.plugins import hookimpl


class TorchPlugin:
    """Contribute the bridge to PyTorch, and `warp.torch_op`."""

    warp_api_version = 1

    @hookimpl
    def warp_bridges(self) -> Mapping[str, str]:
        """Return where the bridge lives."""
        return {"torch": "warp_interop_torch.bridge:BRIDGE"}

    @hookimpl
    def warp_namespace(self) -> Mapping[str, str]:
        """Return the names contributed to `warp` besides those of the bridge, or instead of them."""
        return {"to_torch": "warp_interop_torch.convert:to_torch", "torch_op": "warp_interop_torch.op:torch_op"}

    @hookimpl
    def warp_submodules(self) -> Mapping[str, str]:
        """Return the submodules contributed to `warp`."""
        return {"examples.benchmarks.benchmark_interop_torch": "warp_interop_torch.benchmark_interop_torch"}


plugin = TorchPlugin()
