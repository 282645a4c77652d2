"""What warp-interop-jax contributes to `warp`. JAX is not imported here."""

from __future__ import annotations

from collections.abc import Mapping

from warp.plugins import hookimpl


class JaxPlugin:
    """Contribute the bridge to JAX, `warp.jax_kernel`, `warp.jax_callable` and `warp.jax_experimental`."""

    warp_api_version = 1

    @hookimpl
    def warp_bridges(self) -> Mapping[str, str]:
        """Return where the bridge lives."""
        return {"jax": "warp_interop_jax.bridge:BRIDGE"}

    @hookimpl
    def warp_namespace(self) -> Mapping[str, str]:
        """Return the names contributed to `warp` besides those of the bridge, or instead of them."""
        return {
            "from_jax": "warp_interop_jax.convert:from_jax",
            "to_jax": "warp_interop_jax.convert:to_jax",
            "get_jax_device": "warp_interop_jax.convert:get_jax_device",
            "jax_callable": "warp_interop_jax.function:jax_callable",
            "jax_kernel": "warp_interop_jax.kernel:jax_kernel",
        }

    @hookimpl
    def warp_submodules(self) -> Mapping[str, str]:
        """Return the submodules contributed to `warp`."""
        examples = ("example_jax_kernel", "example_jax_callable", "example_jax_ffi_callback")
        return {
            "jax": "warp_interop_jax.convert",
            "jax_experimental": "warp_interop_jax.experimental",
            "examples.benchmarks.benchmark_interop_jax": "warp_interop_jax.benchmark_interop_jax",
            **{f"examples.interop.{name}": f"warp_interop_jax.examples.{name}" for name in examples},
        }


plugin = JaxPlugin()
