"""Settings of the whole test run: hypothesis profiles and a kernel cache of its own."""

from __future__ import annotations

import os
import shutil
import tempfile

import hypothesis
import pytest

_CACHE_VARIABLE = "WARP_CACHE_PATH"

hypothesis.settings.register_profile("dev", max_examples=25, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("nightly", max_examples=1000, deadline=None)
# Five tests of random programs: 100,000 programs in all.
hypothesis.settings.register_profile("campaign", max_examples=20_000, deadline=None, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Give the run an empty kernel cache; worker processes inherit the one of the process that started them."""
    if not hasattr(config, "workerinput"):
        os.environ[_CACHE_VARIABLE] = tempfile.mkdtemp(prefix="warp-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the run's kernel cache."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[_CACHE_VARIABLE], ignore_errors=True)
