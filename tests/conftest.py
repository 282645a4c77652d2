"""Settings of the whole test run: hypothesis profiles and a kernel cache of its own."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

_CACHE_VARIABLE = "WARP_CACHE_PATH"

# Tests do not fail because the machine is busy.
_PATIENT = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("dev", _PATIENT, max_examples=25)
hypothesis.settings.register_profile("ci", _PATIENT, max_examples=50, derandomize=True, database=None)
hypothesis.settings.register_profile("nightly", _PATIENT, max_examples=1000)
# Five tests of random programs: 100,000 programs in all.
hypothesis.settings.register_profile("campaign", _PATIENT, max_examples=20_000, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--on`: where tests run that do not say so, and `--arch`: what NVRTC compiles for."""
    parser.addoption("--on", default="cpu", help='the device of the tests: "cpu", "cuda", or "stand-in" for tests/cuda')
    parser.addoption("--arch", action="append", help='an architecture for NVRTC, "sm_80" by default; may be repeated')


def pytest_configure(config: pytest.Config) -> None:
    """Give the run an empty kernel cache; worker processes inherit the one of the process that started them."""
    if not hasattr(config, "workerinput"):
        os.environ[_CACHE_VARIABLE] = tempfile.mkdtemp(prefix="warp-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the run's kernel cache."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[_CACHE_VARIABLE], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on other devices, what is about the CPU."""
    if config.getoption("--on") != "cpu":
        chosen = [item for item in items if item.get_closest_marker("cpu") is None]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


@pytest.fixture(scope="session", autouse=True)
def _stand_in(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Make the device that `--on` names current; gives the driver if it is a stand-in."""
    where = request.config.getoption("--on")
    if where == "cpu":
        yield None
        return
    driver = importlib.import_module("tests.cuda.fake_driver").install() if where == "stand-in" else None
    warp = importlib.import_module("warp")
    warp.config.verify_cuda = True
    warp.set_device("cuda:0")
    yield driver
    warp.set_device("cpu")


@pytest.fixture(autouse=True)
def _on_device(_stand_in: Any) -> Iterator[None]:
    """Let a test fail if its stand-in device has seen something go wrong."""
    yield
    if _stand_in is not None:
        gc.collect()
        _stand_in.run_all()
        violations = list(_stand_in.violations)
        _stand_in.violations.clear()
        assert violations == []
