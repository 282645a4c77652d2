"""Stand-ins of CUDA devices."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from tests.cuda.fake_driver import FakeDriver, install

from warp._src.runtime import cuda
from warp._src.runtime.driver import CudaDriver


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    """Two stand-in devices, for one test; what they would have forgiven fails the test."""
    made = install()
    yield made
    gc.collect()
    made.run_all()
    cuda.use_driver(CudaDriver)
    assert made.violations == []
