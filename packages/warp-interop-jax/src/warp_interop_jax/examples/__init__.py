"""Programs that show kernels inside JAX; they run as `python -m warp.examples.interop.example_jax_kernel`."""
