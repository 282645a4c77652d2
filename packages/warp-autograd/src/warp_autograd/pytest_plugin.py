"""What warp-autograd adds to pytest: tests with an argument `warp_device` run once for every device."""

from __future__ import annotations

import importlib

import pytest

_ARGUMENT = "warp_device"
_OPTION = "--warp-device"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses devices."""
    group = parser.getgroup("warp")
    group.addoption(
        _OPTION,
        action="append",
        default=[],
        metavar="NAME",
        help=f"device for tests with an argument '{_ARGUMENT}'; may be repeated; all that are available by default",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a device on each of them."""
    if _ARGUMENT in metafunc.fixturenames:
        names = metafunc.config.getoption(_OPTION) or importlib.import_module("warp.testing").available_devices()
        metafunc.parametrize(_ARGUMENT, names)
