"""The bridge passes the tests that every bridge passes; gradients go through its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import warp as wp
from warp.testing import BridgeConformance
from warp_interop_jax import BRIDGE


@pytest.fixture(autouse=True)
def _numbers_of_64_bits() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


class TestJax(BridgeConformance):
    bridge = BRIDGE
    is_writable = False
    max_dimensions = 4
    takes_no_inputs = True
    layouts: ClassVar[Any] = {
        "turned": (lambda x: x[::-1].T, lambda x: x[::-1].T),
        "repeated": (lambda x: jnp.repeat(x[:1], 3, axis=0), lambda x: np.repeat(x[:1], 3, axis=0)),
        "computed": (lambda x: jnp.tanh(2 * x), lambda x: np.tanh(2 * x)),
    }

    def make_tensor(self, values: Any) -> Any:
        return jnp.asarray(np.array(values))

    def values_of(self, tensor: Any) -> Any:
        return np.asarray(tensor)

    def make_operator(self, function: Any, **options: Any) -> Any:
        """Return an operation that gives a single result as it is; a function decides about its launches."""
        if isinstance(function, wp.Kernel):
            operation: Any = wp.jax_kernel(function, **options)
        else:
            launch_dims = options.pop("launch_dims", None)
            operation = wp.jax_callable(function, **{"output_dims": launch_dims, **options})

        def run(*arguments: Any, **keywords: Any) -> Any:
            found = operation(*arguments, **keywords)
            return found[0] if len(found) == 1 else tuple(found)

        return run

    def differentiate(self, run: Callable[..., Any], inputs: Sequence[Any], adjoints: Sequence[Any]) -> Any:
        def differentiable(*arrays: Any) -> Any:
            results = run(*arrays)
            results = results if isinstance(results, tuple) else (results,)
            return tuple(y for y, g in zip(results, adjoints, strict=True) if g is not None)

        _, pull_back = jax.vjp(differentiable, *map(self.make_tensor, inputs))
        found = pull_back(tuple(self.make_tensor(g) for g in adjoints if g is not None))
        return [self.values_of(gradient) for gradient in found]


class TestCompiled(TestJax):
    """The same inside `jax.jit`."""

    def differentiate(self, run: Callable[..., Any], inputs: Sequence[Any], adjoints: Sequence[Any]) -> Any:
        return super().differentiate(jax.jit(run), inputs, adjoints)
