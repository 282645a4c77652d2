"""A Python function as a target of `jax.ffi.ffi_call`: `python -m warp.examples.interop.example_jax_ffi_callback`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import warp as wp
from warp.jax_experimental.ffi import register_ffi_callback


@wp.kernel
def scale(a: wp.array(dtype=float), s: float, output: wp.array(dtype=float)):
    """Multiply by a number."""
    i = wp.tid()
    output[i] = a[i] * s


def scale_all(inputs: list[Any], outputs: list[Any], attrs: dict[str, Any], ctx: Any) -> None:
    """Scale every input; JAX says by how much, and on which device and stream."""
    with wp.ScopedStream(wp.Stream(ctx.device, cuda_stream=ctx.stream)):
        for a, output in zip(inputs, outputs, strict=True):
            wp.launch(scale, dim=a.shape, inputs=[a, attrs["scale"]], outputs=[output], device=ctx.device)


def main() -> None:
    """Register the function and call it inside jit."""
    register_ffi_callback("example_scale_all", scale_all)
    a, b = jnp.arange(3, dtype=jnp.float32), jnp.arange(5, dtype=jnp.float32)
    types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (a, b)]
    call = jax.ffi.ffi_call("example_scale_all", types)
    for result in jax.jit(lambda a, b: call(a, b, scale=2.0))(a, b):
        print("scaled:", result)


if __name__ == "__main__":
    main()
