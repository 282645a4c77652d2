"""The names of older programs: `warp.jax_experimental.jax_kernel`, and the newer ones in its module `ffi`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import warp as wp
from warp.errors import ArgumentError
from warp_interop_jax.experimental import ffi as ffi
from warp_interop_jax.kernel import JaxKernel
from warp_interop_jax.kernel import jax_kernel as _jax_kernel

__all__ = ["ffi", "jax_kernel"]


class OldJaxKernel:
    """A kernel as an operation of JAX whose arguments tell how many outputs there are."""

    def __init__(self, kernel: Any, launch_dims: int | Sequence[int] | None) -> None:
        self._kernel = kernel
        self._launch_dims = launch_dims
        self._made: dict[int, JaxKernel] = {}

    def __call__(self, *args: Any) -> list[Any]:
        """Return the outputs: those of the kernel's parameters for which no argument is given."""
        count = self._kernel.parameter_count - len(args)
        if not args or count < 1:
            raise ArgumentError(
                f"{self._kernel.key} has {self._kernel.parameter_count} parameters, inputs and then outputs, and there "
                f"must be one of each; got {len(args)} inputs"
            )
        if count not in self._made:
            self._made[count] = _jax_kernel(self._kernel, num_outputs=count, launch_dims=self._launch_dims)
        return self._made[count](*args)


def jax_kernel(kernel: Any, launch_dims: int | Sequence[int] | None = None) -> OldJaxKernel:
    """Make an operation of JAX from a kernel whose parameters are arrays. Deprecated: use `warp.jax_kernel`.

    The number of outputs is that of the kernel's parameters less that of the arguments of a call. `launch_dims`, by
    default the shape of the first input, is also the shape of the outputs.
    """
    warnings.warn(
        "warp.jax_experimental.jax_kernel is deprecated; use warp.jax_kernel, which takes num_outputs",
        DeprecationWarning,
        stacklevel=2,
    )
    if not isinstance(kernel, wp.Kernel):
        raise ArgumentError(f"jax_kernel takes a kernel, got {type(kernel).__qualname__}")
    return OldJaxKernel(kernel, launch_dims)
