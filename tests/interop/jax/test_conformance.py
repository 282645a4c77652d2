"""The bridge passes the tests that every bridge passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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

    def make_tensor(self, values: Any) -> Any:
        return jnp.asarray(np.array(values))

    def values_of(self, tensor: Any) -> Any:
        return np.asarray(tensor)
