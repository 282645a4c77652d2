"""The devices to run tests on."""

from __future__ import annotations

import os

import warp as wp

_VARIABLE = "WARP_TEST_DEVICES"


def available_devices() -> list[str]:
    """Return the names of the devices that tests can run on: all, or those that `WARP_TEST_DEVICES` lists."""
    names = [str(device) for device in wp.get_devices()]
    wanted = os.environ.get(_VARIABLE)
    if not wanted:
        return names
    return [str(wp.get_device(name.strip())) for name in wanted.split(",")]
