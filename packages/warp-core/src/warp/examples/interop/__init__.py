"""Examples that bridges to frameworks contribute: `python -m warp.examples.interop.example_jax_kernel`."""
